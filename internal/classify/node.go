package classify

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Node is what rules look at.
type Node struct {
	Name    fleet.Certname
	facts   any
	parts   map[string]any // instead of facts: those of some paths
	trusted any
}

// NewNode reads a node's facts and trusted data: JSON objects, or nothing.
func NewNode(name fleet.Certname, facts, trusted json.RawMessage) (Node, error) {
	node := Node{Name: name}
	var err error
	if node.facts, err = decode(facts); err != nil {
		return Node{}, fault.Wrap(fault.Invalid, err, "the facts of %s are not JSON", name)
	}
	if node.trusted, err = decode(trusted); err != nil {
		return Node{}, fault.Wrap(fault.Invalid, err, "the trusted data of %s are not JSON", name)
	}
	return node, nil
}

// decode reads one JSON value and keeps the spelling of its numbers.
func decode(text []byte) (value any, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil //nolint:nilnil // nothing is known
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return value, nil
}

// text is the value at path as rules see it; false when there is none.
func (n Node) text(path Path) (string, bool) {
	value, ok := n.value(path)
	if !ok {
		return "", false
	}
	switch value := value.(type) {
	case string:
		return value, true
	case json.Number:
		return value.String(), true
	case bool:
		if value {
			return "true", true
		}
		return "false", true
	}
	return "", false
}

func (n Node) value(path Path) (any, bool) {
	var at any
	switch path.Root {
	case Name:
		return string(n.Name), len(path.Steps) == 0
	case Fact:
		if n.parts != nil {
			value, ok := n.parts[path.String()]
			return value, ok
		}
		at = n.facts
	case Trusted:
		at = n.trusted
	}
	for _, step := range path.Steps {
		switch inner := at.(type) {
		case map[string]any:
			value, ok := inner[step.Key]
			if !ok || step.IsIndex {
				return nil, false
			}
			at = value
		case []any:
			if !step.IsIndex || step.Index < 0 || step.Index >= len(inner) {
				return nil, false
			}
			at = inner[step.Index]
		default:
			return nil, false
		}
	}
	return at, len(path.Steps) > 0
}
