package query

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/internal/facts"
)

// Renderer writes rows as JSON objects. Its buffers are used again for each row.
type Renderer struct {
	unpack  func([]byte) ([]byte, error)
	outputs []output
	Targets []any
	cells   []cell
	out     []byte
	packed  []byte // the last document that was unpacked, and what was in it
	opened  []byte
}

// cell is one column of a row, of whatever type the database has it.
type cell struct{ value any }

// Scan implements sql.Scanner. Bytes are copied: they are the driver's.
func (c *cell) Scan(v any) error {
	if b, ok := v.([]byte); ok {
		v = bytes.Clone(b)
	}
	c.value = v
	return nil
}

var _ sql.Scanner = (*cell)(nil)

func (c cell) text() string {
	switch v := c.value.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case nil:
		return ""
	}
	return fmt.Sprint(c.value)
}

func (c cell) bytes() []byte {
	b, _ := c.value.([]byte)
	return b
}

// instant is a time as it is stored: microseconds, zero for none.
func (c cell) instant() time.Time {
	if us := c.integer(); us != 0 {
		return time.UnixMicro(us).UTC()
	}
	return time.Time{}
}

func (c cell) integer() int64 {
	switch v := c.value.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	n, _ := strconv.ParseInt(c.text(), 10, 64)
	return n
}

// NewRenderer writes rows of a statement with these outputs; unpack opens documents as they are stored.
func NewRenderer(unpack func([]byte) ([]byte, error), outputs []output) *Renderer {
	r := &Renderer{unpack: unpack, outputs: outputs}
	count := 0
	for _, o := range outputs {
		count += len(o.cols)
	}
	r.cells, r.Targets = make([]cell, count), make([]any, count)
	for i := range r.cells {
		r.Targets[i] = &r.cells[i]
	}
	return r
}

// Row writes what was scanned into Targets. It holds until the next row.
func (r *Renderer) Row() (json.RawMessage, error) {
	r.out = append(r.out[:0], '{')
	for i, o := range r.outputs {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		r.out = append(appendString(r.out, o.name), ':')
		if err := r.value(o); err != nil {
			return nil, fmt.Errorf("show %s: %w", o.name, err)
		}
	}
	r.out = append(r.out, '}')
	return r.out, nil
}

func (r *Renderer) value(o output) error {
	c := r.cells[o.cols[0]]
	if c.value == nil && o.as != asFacts && o.as != asTrusted && o.as != asFactList && o.as != asReport && o.as != asRows {
		r.out = append(r.out, "null"...)
		return nil
	}
	switch o.as {
	case asText:
		r.out = appendString(r.out, c.text())
	case asFlag:
		r.out = strconv.AppendBool(r.out, c.integer() != 0)
	case asInt:
		r.out = strconv.AppendInt(r.out, c.integer(), 10)
	case asFloat:
		r.out = appendFloat(r.out, c)
	case asAverage:
		whole := len(r.out)
		if r.out = appendFloat(r.out, c); !bytes.ContainsAny(r.out[whole:], ".e") {
			r.out = append(r.out, ".0"...)
		}
	case asTime:
		r.out = append(r.out, '"')
		r.out = append(c.instant().AppendFormat(r.out, "2006-01-02T15:04:05.000Z"), '"')
	case asList, asJSON:
		r.out = append(r.out, c.text()...)
	case asPath:
		return r.marshal(facts.PathSteps(c.text()))
	case asLeaf:
		r.out = appendLeaf(r.out, c.integer(), r.cells[o.cols[1]].text())
	case asLeafValue:
		return r.leaves(c.text(), o.part)
	case asFacts, asTrusted, asFactList:
		return r.facts(o, c)
	case asReport:
		return r.report(o, c)
	case asRows:
		return r.rows(o, c)
	}
	return nil
}

func (r *Renderer) marshal(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	r.out = append(r.out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
	return nil
}

func appendString(dst []byte, s string) []byte {
	if isPlain(s) {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"')
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// isPlain says whether a text stands in JSON as it is: nearly all do.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func appendFloat(dst []byte, c cell) []byte {
	f, ok := c.value.(float64)
	if !ok {
		return append(dst, c.text()...)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

// appendLeaf writes a stored leaf; numbers and words are stored as JSON has them.
func appendLeaf(dst []byte, kind int64, text string) []byte {
	if facts.Kind(kind) == facts.String { //nolint:gosec // there are seven
		return appendString(dst, text)
	}
	return append(dst, text...)
}

// leaves puts together what was stored as leaves: below the path prefix, or of a
// whole fact.
func (r *Renderer) leaves(list, prefix string) error {
	rows, err := readLeaves(list)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		r.out = append(r.out, "null"...)
		return nil
	}
	skip := 1
	if prefix != "" {
		skip = len(facts.PathSteps(prefix))
	}
	var root any
	for _, row := range rows {
		steps := facts.PathSteps(row.path)[skip:]
		if len(rows) == 1 && len(steps) == 0 {
			r.out = appendLeaf(r.out, row.kind, row.text)
			return nil
		}
		root = plant(root, steps, json.RawMessage(appendLeaf(nil, row.kind, row.text)))
	}
	r.out = appendTree(r.out, root)
	return nil
}

// appendTree writes what plant put together.
func appendTree(dst []byte, tree any) []byte {
	switch tree := tree.(type) {
	case json.RawMessage:
		return append(dst, tree...)
	case map[string]any:
		dst = append(dst, '{')
		for i, key := range sortedKeys(tree) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, key), ':')
			dst = appendTree(dst, tree[key])
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for i, item := range tree {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendTree(dst, item)
		}
		return append(dst, ']')
	}
	return append(dst, "null"...) // a place in a list that no leaf is at
}

// plant puts a leaf where its path leads to.
func plant(root any, path []any, leaf json.RawMessage) any {
	if len(path) == 0 {
		return leaf
	}
	switch step := path[0].(type) {
	case string:
		object, ok := root.(map[string]any)
		if !ok {
			object = map[string]any{}
		}
		object[step] = plant(object[step], path[1:], leaf)
		return object
	case int64:
		list, _ := root.([]any)
		for int64(len(list)) <= step {
			list = append(list, nil)
		}
		list[step] = plant(list[step], path[1:], leaf)
		return list
	}
	return root
}

// open unpacks a document; columns of one row often share one.
func (r *Renderer) open(packed []byte) ([]byte, error) {
	if packed == nil {
		return nil, nil
	}
	if r.opened != nil && bytes.Equal(packed, r.packed) {
		return r.opened, nil
	}
	var err error
	if r.opened, err = r.unpack(packed); err != nil {
		return nil, err
	}
	r.packed = packed
	return r.opened, nil
}

func (r *Renderer) facts(o output, c cell) error {
	document, err := r.open(c.bytes())
	if err != nil {
		return err
	}
	if document == nil {
		document = []byte("{}")
	}
	if o.as == asFacts {
		r.out = append(r.out, document...)
		return nil
	}
	var facts map[string]json.RawMessage
	if err := json.Unmarshal(document, &facts); err != nil {
		return err
	}
	if o.as == asTrusted {
		return r.marshal(facts["trusted"])
	}
	type fact struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"`
	}
	list := make([]fact, 0, len(facts))
	for _, name := range sortedKeys(facts) {
		list = append(list, fact{name, facts[name]})
	}
	return r.expanded(list, "/pdb/query/v4/factsets/"+r.cells[o.cols[1]].text()+"/facts")
}

// expanded is a list with the address where it can be had by itself.
func (r *Renderer) expanded(data any, href string) error {
	return r.marshal(struct {
		Data any    `json:"data"`
		Href string `json:"href"`
	}{data, href})
}

// wireTime is how PuppetDB writes times.
func wireTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format("2006-01-02T15:04:05.000Z")
	return &text
}

// present is nil for the empty text.
func present(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
