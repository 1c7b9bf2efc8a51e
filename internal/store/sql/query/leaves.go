package query

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// listedLeaf is one leaf as the database lists it: [path, kind, text].
type listedLeaf struct {
	path, text string
	kind       int64
}

// readLeaves reads a JSON list of leaves as either database writes it. There are
// hundreds of thousands in a large answer, so nothing is built in between.
func readLeaves(list string) ([]listedLeaf, error) {
	s := leafScanner{rest: list}
	rows := make([]listedLeaf, 0, 1+strings.Count(list, "["))
	if !s.take("[") {
		return nil, s.wrong(list)
	}
	for !s.take("]") {
		var l listedLeaf
		if len(rows) > 0 && !s.take(",") || !s.take("[") || !s.text(&l.path) || !s.take(",") || !s.number(&l.kind) || !s.take(",") ||
			!s.text(&l.text) || !s.take("]") {
			return nil, s.wrong(list)
		}
		rows = append(rows, l)
	}
	return rows, nil
}

type leafScanner struct{ rest string }

func (s *leafScanner) wrong(list string) error {
	return fmt.Errorf("the database listed leaves in a form that cannot be read, at byte %d", len(list)-len(s.rest))
}

// take passes over a word and the spaces before it.
func (s *leafScanner) take(word string) bool {
	s.rest = strings.TrimLeft(s.rest, " \n")
	rest, ok := strings.CutPrefix(s.rest, word)
	s.rest = rest
	return ok
}

func (s *leafScanner) number(into *int64) bool {
	s.take("")
	end := strings.IndexAny(s.rest, ",] ")
	if end < 0 {
		return false
	}
	n, err := strconv.ParseInt(s.rest[:end], 10, 64)
	*into, s.rest = n, s.rest[end:]
	return err == nil
}

// text reads a string, or null as the empty one.
func (s *leafScanner) text(into *string) bool {
	if s.take("null") {
		return true
	}
	if !s.take(`"`) {
		return false
	}
	end := strings.IndexAny(s.rest, `"\\`)
	if end < 0 {
		return false
	}
	if s.rest[end] == '"' {
		*into, s.rest = s.rest[:end], s.rest[end+1:]
		return true
	}
	for end < len(s.rest) && s.rest[end] != '"' {
		if s.rest[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(s.rest) {
		return false
	}
	err := json.Unmarshal([]byte(`"`+s.rest[:end]+`"`), into)
	s.rest = s.rest[end+1:]
	return err == nil
}
