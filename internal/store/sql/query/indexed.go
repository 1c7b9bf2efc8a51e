package query

import (
	"strconv"

	"github.com/tutti-project/tutti/internal/pql"
)

// IndexedLength is how many characters of a value are in the index of facts.
const IndexedLength = 64

// compareFact compares the fact at a path. The index of facts answers it for a text, where it has that path: all of it, unless
// the text is longer than what the index knows of one.
func (s scope) compareFact(c pql.Compare) string {
	compared := func() string {
		return s.leaf(c.Field, func(kind, value, number string) string { return s.compareLeaf(kind, value, number, c.Op, c.Value) })
	}
	if c.Op != "=" || c.Value.Kind != pql.String || hasMatch(c.Field) {
		return compared()
	}
	path := leafPath(c.Field)
	s.Compared = append(s.Compared, path)
	id, ok := s.Indexed[path]
	if !ok {
		return compared()
	}
	text := []rune(Clean(c.Value.Text))
	whole := len(text) < IndexedLength
	if !whole {
		text = text[:IndexedLength]
	}
	found := "(" + s.node + " IN (SELECT k.node_id FROM indexed_facts k WHERE k.path_id = " + strconv.FormatInt(id, 10) + // a number of ours, no input
		" AND k.value = " + s.arg(string(text)) + "))"
	if whole {
		return found
	}
	return "(" + found + " AND " + compared() + ")"
}
