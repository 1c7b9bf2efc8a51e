package pql

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// node is one value of a JSON text, with its place: the AST's raw form.
type node struct {
	pos   Pos
	kind  ValueKind
	text  string
	items []node
}

// readJSON reads arrays, strings, numbers, booleans and null. Objects have no
// place in a query.
func readJSON(text string) (node, *Error) {
	if len(text) > MaxBytes {
		return node{}, wrong(Pos{}, "the query has %d bytes, at most %d are allowed", len(text), MaxBytes)
	}
	if !utf8.ValidString(text) {
		return node{}, wrong(Pos{}, "the query is not valid UTF-8")
	}
	r := jsonReader{scan: scan{text: text}, lines: 1}
	r.space()
	n, err := r.node()
	if err != nil {
		return n, err
	}
	r.space()
	if r.at < len(text) {
		r.miss("the end of the query")
		return n, r.fail()
	}
	return n, nil
}

// jsonReader counts lines as it goes: places are asked for at every value.
type jsonReader struct {
	scan
	seen, lines, column int // place of the byte `seen`
}

func (r *jsonReader) here() Pos {
	for _, c := range r.text[r.seen:r.at] {
		if r.column++; c == '\n' {
			r.lines, r.column = r.lines+1, 0
		}
	}
	r.seen = r.at
	return Pos{r.lines, r.column + 1}
}

func (r *jsonReader) node() (node, *Error) {
	n := node{pos: r.here()}
	var ok bool
	switch c := r.peek(); {
	case c == '[':
		return n, r.array(&n)
	case c == '"':
		n.text, ok = r.str()
	case c == '-' || c >= '0' && c <= '9':
		n.text, ok = r.number()
		n.kind = Integer
		if strings.ContainsAny(n.text, ".eE") {
			n.kind = Real
		}
	default:
		for w, kind := range map[string]ValueKind{"true": Boolean, "false": Boolean, "null": NullValue} {
			if !ok && strings.HasPrefix(r.rest(), w) {
				n.text, n.kind, ok = w, kind, true
				r.at += len(w)
			}
		}
	}
	if !ok {
		r.miss("an array")
		r.miss("a string")
		r.miss("a number")
		return n, r.fail()
	}
	return n, nil
}

func (r *jsonReader) peek() byte {
	if r.at >= len(r.text) {
		return 0
	}
	return r.text[r.at]
}

func (r *jsonReader) array(n *node) *Error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.leave()
	n.kind, n.items = List, []node{}
	r.at++ // the bracket
	r.space()
	if r.take("]") {
		return nil
	}
	for {
		item, err := r.node()
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
		r.space()
		if r.take("]") {
			return nil
		}
		if !r.take(",") {
			return r.fail()
		}
		r.space()
	}
}

func (r *jsonReader) str() (string, bool) {
	for i := r.at + 1; i < len(r.text); i++ {
		switch r.text[i] {
		case '\\':
			i++
		case '"':
			var out string
			if json.Unmarshal([]byte(r.text[r.at:i+1]), &out) != nil {
				return "", false
			}
			r.at = i + 1
			return out, true
		}
	}
	return "", false
}

func (r *jsonReader) number() (string, bool) {
	end := r.at
	for end < len(r.text) && strings.IndexByte("+-.eE0123456789", r.text[end]) >= 0 {
		end++
	}
	text := r.text[r.at:end]
	if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
		return "", false
	}
	r.at = end
	return text, true
}
