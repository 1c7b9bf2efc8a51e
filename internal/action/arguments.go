package action

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// Arguments makes the input of an action of values as text, by the types of its schema, and of values that are JSON already. A field is
// given in one of them only. What is missing and has a default gets it. The input is checked.
func (s *Schema) Arguments(texts map[string]string, values map[string]json.RawMessage) (jsontext.Value, error) {
	object := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if _, both := values[name]; both {
			return nil, fault.New(fault.Invalid, "field %s: it is given as text and as JSON; give it once", name)
		}
		value, err := s.convert(name, texts[name])
		if err != nil {
			return nil, err
		}
		object[name] = value
	}
	maps.Copy(object, values)
	for _, field := range s.fields {
		if _, given := object[field.Name]; !given && field.Default != nil {
			value, err := json.Marshal(field.Default)
			if err != nil {
				return nil, fault.Wrap(fault.Invalid, err, "field %s: its default is no JSON", field.Name)
			}
			object[field.Name] = value
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the input is not JSON")
	}
	if err := s.Check(text); err != nil {
		return nil, err
	}
	return text, nil
}

// convert makes JSON of a text, as the type of a field wants it. A field of no type, or of several, is JSON if the text is, else a text.
func (s *Schema) convert(name, given string) (json.RawMessage, error) {
	field, known := s.Field(name)
	if !known {
		return asText(given), nil // the check says that there is no such field, or the schema takes any
	}
	wrong := func(what string) (json.RawMessage, error) {
		return nil, fault.New(fault.Invalid, "field %s: it must be %s", name, what)
	}
	trimmed := strings.TrimSpace(given)
	switch field.Type {
	case "string":
		return asText(given), nil
	case "boolean":
		if trimmed != "true" && trimmed != "false" {
			return wrong("true or false")
		}
	case "integer":
		if _, err := strconv.ParseInt(trimmed, 10, 64); err != nil {
			return wrong("an integer")
		}
	case "number":
		if !json.Valid([]byte(trimmed)) || strings.ContainsAny(trimmed, `"[{tfn`) {
			return wrong("a number")
		}
	case "array":
		if !strings.HasPrefix(trimmed, "[") {
			return json.Marshal(strings.Split(given, ","))
		}
		if !json.Valid([]byte(trimmed)) {
			return wrong(`a list: a,b or JSON such as ["a", "b"]`)
		}
	case "object":
		if !strings.HasPrefix(trimmed, "{") || !json.Valid([]byte(trimmed)) {
			return wrong(`an object in JSON such as {"a": 1}`)
		}
	default:
		if !json.Valid([]byte(trimmed)) {
			return asText(given), nil
		}
	}
	return json.RawMessage(trimmed), nil
}

func asText(s string) json.RawMessage {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a text is always JSON
	}
	return text
}
