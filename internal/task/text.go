package task

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Typed adds to given, a JSON object, what people typed as texts: a text stays one
// where the parameter's type takes it, and is JSON where the type does not. Of a
// parameter without a type, numbers, true and false are what they look like. Invalid if a name is in both.
func (t Task) Typed(ctx context.Context, v Version, given json.RawMessage, texts map[string]string) (json.RawMessage, error) {
	values, err := decode(given)
	if err != nil {
		return nil, err
	}
	resolve := aliases(ctx, v)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if _, twice := values[name]; twice {
			return nil, fault.New(fault.Invalid, "the parameter %.80s is given twice", name)
		}
		p, known := t.Metadata.Parameters[name]
		switch text := texts[name]; {
		case !known || p.Type == "" || p.Type == "Any":
			values[name] = scalar(text)
		case p.kind.Check(text, resolve) != nil && json.Valid([]byte(text)):
			values[name] = json.RawMessage(text)
		default: // what fits as little as JSON is named by Check
			values[name] = text
		}
	}
	return encode(values)
}

// number is JSON's.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// scalar is a number or truth value if text looks like one.
func scalar(text string) any {
	if text == "true" || text == "false" || number.MatchString(text) {
		return json.RawMessage(text)
	}
	return text
}

// Reserved names parameters that are the tools' own to give: those that begin
// with an underscore.
func Reserved(parameters json.RawMessage) []string {
	values, err := decode(parameters)
	if err != nil {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if strings.HasPrefix(name, "_") {
			names = append(names, name)
		}
	}
	return names
}

// Split parts what must not be shown from what may be: two objects; secret is nil
// if nothing is.
func (t Task) Split(parameters json.RawMessage) (shown, secret json.RawMessage, err error) {
	values, err := decode(parameters)
	if err != nil {
		return nil, nil, err
	}
	hidden := map[string]any{}
	for name, p := range t.Metadata.Parameters {
		if value, given := values[name]; given && p.Secret() {
			hidden[name] = value
			delete(values, name)
		}
	}
	if shown, err = encode(values); err != nil || len(hidden) == 0 {
		return shown, nil, err
	}
	secret, err = encode(hidden)
	return shown, secret, err
}
