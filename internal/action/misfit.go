package action

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxPlaces bounds the places that one error names.
const maxPlaces = 5

// where names the places that do not fit, and what is expected there: never the values, which may be secret.
func where(err error) string {
	var places []string
	for _, leaf := range leaves(err) {
		if len(places) < maxPlaces {
			places = append(places, place(leaf))
		}
	}
	if len(places) == 0 {
		return "it does not fit the schema"
	}
	return strings.Join(places, "; ")
}

// leaves are the misfits that have no cause among the others, in the order of their places.
func leaves(err error) []*jsonschema.ValidationError {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return nil
	}
	var found []*jsonschema.ValidationError
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if len(e.Causes) == 0 {
			found = append(found, e)
		}
	}
	walk(invalid)
	slices.SortStableFunc(found, func(a, b *jsonschema.ValidationError) int {
		return slices.Compare(a.InstanceLocation, b.InstanceLocation)
	})
	return found
}

// CodeOf is the code of an error that Check or Arguments returned: missing data if nothing else is wrong.
func CodeOf(err error) Code {
	found := leaves(err)
	if len(found) == 0 {
		return InvalidData
	}
	for _, leaf := range found {
		if _, missing := leaf.ErrorKind.(*kind.Required); !missing {
			return InvalidData
		}
	}
	return MissingData
}

func place(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return each(e, k.Missing, "it is missing")
	case *kind.AdditionalProperties:
		return each(e, k.Properties, "the action takes no such field")
	}
	return "field " + pathOf(e.InstanceLocation) + ": " + expected(e)
}

// each says the same of several fields of the object at a place.
func each(e *jsonschema.ValidationError, names []string, what string) string {
	var said []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		said = append(said, "field "+pathOf(append(slices.Clone(e.InstanceLocation), fmt.Sprintf("%.80s", name)))+": "+what)
	}
	return strings.Join(said[:min(len(said), maxPlaces)], "; ")
}

func pathOf(location []string) string {
	if len(location) == 0 {
		return "/"
	}
	return strings.Join(location, "/")
}

// expected is what the schema wants at a place, in words.
func expected(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return "it must be of the type " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		var values []string
		for _, value := range k.Want {
			values = append(values, text(value))
		}
		return "it must be one of " + strings.Join(values, ", ")
	case *kind.Const:
		return "it must be " + text(k.Want)
	case *kind.Format:
		return "it must be " + describeFormat(k.Want)
	case *kind.Pattern:
		return "it must match the regular expression " + k.Want
	case *kind.MaxLength:
		return fmt.Sprintf("it has %d characters, at most %d are allowed", k.Got, k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("it has %d characters, at least %d are needed", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("it has %d elements, at most %d are allowed", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("it has %d elements, at least %d are needed", k.Got, k.Want)
	case *kind.Minimum:
		return "it must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "it must be at most " + k.Want.RatString()
	}
	return "it does not fit " + strings.Join(e.ErrorKind.KeywordPath(), "/") + " of the schema"
}
