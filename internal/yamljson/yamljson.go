// Package yamljson turns YAML into JSON and back. It keeps the spelling of numbers, and texts
// stay texts. JSON is YAML, too.
//
// Its input is bounded in depth and in the number of values that aliases unfold to. Errors name the line; they
// are about the text and may be shown. Everything here may be called concurrently.
package yamljson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The bounds of what a text of aliases can unfold to.
const (
	maxYAMLValues = 1_000_000
	maxYAMLDepth  = 1_000
)

// ToJSON turns one YAML document into JSON; 1.0 stays 1.0.
func ToJSON(text []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	w := jsonWriter{}
	if err := w.value(&document); err != nil {
		return nil, err
	}
	return w.out.Bytes(), nil
}

type jsonWriter struct {
	out   bytes.Buffer
	count int
	depth int
}

func (w *jsonWriter) value(n *yaml.Node) error {
	if w.count++; w.count > maxYAMLValues {
		return fmt.Errorf("line %d: the text unfolds to more than %d values", n.Line, maxYAMLValues)
	}
	if w.depth++; w.depth > maxYAMLDepth {
		return fmt.Errorf("line %d: the values are nested more than %d deep", n.Line, maxYAMLDepth)
	}
	defer func() { w.depth-- }()
	switch n.Kind {
	case yaml.DocumentNode:
		return w.value(n.Content[0])
	case yaml.AliasNode:
		return w.value(n.Alias)
	case yaml.MappingNode:
		return w.mapping(n)
	case yaml.SequenceNode:
		return w.list(n)
	case yaml.ScalarNode:
		return w.scalar(n)
	}
	return errors.New("the text is empty")
}

func (w *jsonWriter) mapping(n *yaml.Node) error {
	seen := map[string]bool{}
	w.out.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return fmt.Errorf("line %d: a key must be a plain name", key.Line)
		}
		if seen[key.Value] {
			return fmt.Errorf("line %d: the key %.80q is there twice", key.Line, key.Value)
		}
		seen[key.Value] = true
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.text(key.Value)
		w.out.WriteByte(':')
		if err := w.value(n.Content[i+1]); err != nil {
			return err
		}
	}
	w.out.WriteByte('}')
	return nil
}

func (w *jsonWriter) list(n *yaml.Node) error {
	w.out.WriteByte('[')
	for i, item := range n.Content {
		if i > 0 {
			w.out.WriteByte(',')
		}
		if err := w.value(item); err != nil {
			return err
		}
	}
	w.out.WriteByte(']')
	return nil
}

func (w *jsonWriter) text(s string) {
	quoted, _ := json.Marshal(s) // a string is JSON
	w.out.Write(quoted)
}

func (w *jsonWriter) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		w.out.WriteString("null")
	case "!!bool", "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			w.out.WriteString(n.Value)
			return nil
		}
		var value any // a spelling that JSON does not know: yes, 0x1F, .5
		if err := n.Decode(&value); err != nil {
			return fmt.Errorf("line %d: %w", n.Line, err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("line %d: %.40q has no place in JSON", n.Line, n.Value)
		}
		w.out.Write(text)
	case "!!binary":
		return fmt.Errorf("line %d: binary values are not supported", n.Line)
	default: // dates too: groups give text
		w.text(n.Value)
	}
	return nil
}

// FromJSON writes JSON as YAML for people, in the same order.
func FromJSON(text []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(escaped(text), &document); err != nil {
		return nil, err
	}
	block(&document)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// escaped spells out the characters that JSON texts may hold as they are, and
// YAML texts may not.
func escaped(text []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(text) {
		if r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

// block takes JSON's braces and quotes away; the encoder puts quotes where a text
// would be read as something else.
func block(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode && len(n.Content) == 0 || n.Value == "<<" || strings.Contains(n.Value, "\t") {
		return // these need them; a tab at the beginning of a line would be taken for its indentation
	}
	n.Style = 0
	for _, inner := range n.Content {
		block(inner)
	}
}
