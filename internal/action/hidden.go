package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Hidden stands for a value that is not shown.
const Hidden = "(hidden)"

// hiding finds what a schema marks as not to be shown: "writeOnly" as JSON Schema has it, or "sensitive" as Puppet's tasks have it.
type hiding struct{ document any }

// marked says whether a schema, or one inside of it or that it refers to, is marked: then nothing of the value is shown.
func (h hiding) marked(schema any, passed []string) bool {
	switch s := schema.(type) {
	case []any:
		return slices.ContainsFunc(s, func(one any) bool { return h.marked(one, passed) })
	case map[string]any:
		if s["writeOnly"] == true || s["sensitive"] == true {
			return true
		}
		if ref, is := s["$ref"].(string); is && !slices.Contains(passed, ref) && h.marked(h.at(ref), append(slices.Clone(passed), ref)) {
			return true
		}
		for name, inner := range s {
			if name != "default" && name != "enum" && name != "const" && h.marked(inner, passed) {
				return true
			}
		}
	}
	return false
}

// at is what a reference inside the document names; nil: nothing.
func (h hiding) at(ref string) any {
	path, inside := strings.CutPrefix(ref, "#")
	if !inside {
		return nil
	}
	here := h.document
	for _, step := range strings.Split(path, "/")[1:] {
		object, is := here.(map[string]any)
		if !is {
			return nil
		}
		here = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return here
}

// hiddenFields are the names of the properties that are marked.
func hiddenFields(text []byte) map[string]bool {
	var document map[string]any
	if json.Unmarshal(bytes.TrimSpace(text), &document) != nil {
		return nil // it was compiled: it is a boolean
	}
	h := hiding{document}
	properties, _ := document["properties"].(map[string]any)
	found := map[string]bool{}
	for name, schema := range properties {
		found[name] = h.marked(schema, nil)
	}
	return found
}

// Split parts what may be shown of an object from what must not: two objects. secret is nil if nothing is.
func (s *Schema) Split(object jsontext.Value) (shown, secret jsontext.Value, err error) {
	var members map[string]json.RawMessage
	if len(object) > 0 {
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, nil, err
		}
	}
	hidden := map[string]json.RawMessage{}
	for _, f := range s.fields {
		if value, given := members[f.Name]; given && f.Hidden {
			hidden[f.Name] = value
			delete(members, f.Name)
		}
	}
	if len(hidden) == 0 {
		return object, nil, nil
	}
	if shown, err = json.Marshal(members); err != nil {
		return nil, nil, err
	}
	secret, err = json.Marshal(hidden)
	return shown, secret, err
}

// Shown is an object as it may be shown: what is hidden is its name alone.
func (s *Schema) Shown(object jsontext.Value) (jsontext.Value, error) {
	shown, secret, err := s.Split(object)
	if err != nil || secret == nil {
		return shown, err
	}
	var members, hidden map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(shown, &members), json.Unmarshal(secret, &hidden)); err != nil {
		return nil, err
	}
	for name := range hidden {
		members[name] = asText(Hidden)
	}
	return json.Marshal(members)
}
