package action

import (
	"bytes"
	"encoding/json"
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
	open, hidden, err := s.parts(object)
	if err != nil {
		return nil, nil, err
	}
	if len(hidden) == 0 {
		return object, nil, nil
	}
	if shown, err = json.Marshal(open); err != nil {
		return nil, nil, err
	}
	secret, err = json.Marshal(hidden)
	return shown, secret, err
}

// Shown is an object as it may be shown: what is hidden is its name alone.
func (s *Schema) Shown(object jsontext.Value) (jsontext.Value, error) {
	all, hidden, err := s.parts(object)
	if err != nil {
		return nil, err
	}
	if len(hidden) == 0 {
		return object, nil
	}
	for name := range hidden {
		all[name] = asText(Hidden)
	}
	return json.Marshal(all)
}

// parts are the members of an object that may be shown, and those that must not.
func (s *Schema) parts(object jsontext.Value) (open, hidden map[string]json.RawMessage, err error) {
	if len(object) == 0 {
		return nil, nil, nil
	}
	if err := json.Unmarshal(object, &open); err != nil {
		return nil, nil, err
	}
	hidden = map[string]json.RawMessage{}
	for _, f := range s.fields {
		if value, given := open[f.Name]; given && f.Hidden {
			hidden[f.Name] = value
			delete(open, f.Name)
		}
	}
	return open, hidden, nil
}
