package facts

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/facts/scan"
)

// Kind is the type of a leaf.
type Kind int8

// The kinds of leaf; the numbers are stored and only ever appended. An object or
// array is a leaf when it is empty.
const (
	Null Kind = iota
	Boolean
	Integer
	Float
	String
	EmptyObject
	EmptyArray
)

// Leaf is one value in a fact set, with the path to it. Keys are joined by dots,
// array positions are in brackets, and a key that holds anything but letters,
// digits, dash, underscore, colon and slash stands in quotes: os.release.full,
// processors.models[0], mountpoints."/srv/a b".size.
type Leaf struct {
	Path string
	Kind Kind
	Text string // the decoded string, or the number or word as written
}

// Change is a leaf that differs between two fact sets. Of a removed one the value
// is the old one.
type Change struct {
	Leaf
	Removed bool
}

// Name is the top-level fact that a path belongs to.
func (l Leaf) Name() string {
	if strings.HasPrefix(l.Path, `"`) {
		s := scan.Scanner{Src: l.Path}
		name, _ := s.String()
		return name
	}
	if i := strings.IndexAny(l.Path, ".["); i >= 0 {
		return l.Path[:i]
	}
	return l.Path
}

// Flatten lists the leaves of a JSON object of facts, in the order of their
// appearance.
func Flatten(values json.RawMessage) ([]Leaf, error) {
	s, err := scan.New("facts", values, MaxBytes)
	if err != nil {
		return nil, err
	}
	f := flattener{Scanner: s, leaves: make([]Leaf, 0, 64)}
	if err := f.value(); err != nil {
		return nil, err
	}
	return f.leaves, s.End()
}

type flattener struct {
	*scan.Scanner
	path   []byte
	leaves []Leaf
}

func (f *flattener) add(kind Kind, text string) error {
	if len(f.leaves) >= MaxLeaves {
		return f.Fail("it holds more than %d values", MaxLeaves)
	}
	f.leaves = append(f.leaves, Leaf{Path: string(f.path), Kind: kind, Text: text})
	return nil
}

func (f *flattener) value() error {
	switch f.Peek() {
	case '{':
		return f.objectLeaves()
	case '[':
		return f.arrayLeaves()
	case '"':
		text, err := f.String()
		if err != nil {
			return err
		}
		return f.add(String, text)
	default:
		text, err := f.Scalar()
		if err != nil {
			return err
		}
		return f.add(scalarKind(text), text)
	}
}

func (f *flattener) objectLeaves() error {
	size, empty := len(f.path), true
	err := f.Object(func(key string) error {
		empty = false
		f.path = appendKey(f.path, key)
		err := f.value()
		f.path = f.path[:size]
		return err
	})
	if err == nil && empty && size > 0 {
		return f.add(EmptyObject, "{}")
	}
	return err
}

func (f *flattener) arrayLeaves() error {
	size, n := len(f.path), 0
	err := f.Array(func() error {
		f.path = appendIndex(f.path, n)
		n++
		err := f.value()
		f.path = f.path[:size]
		return err
	})
	if err == nil && n == 0 {
		return f.add(EmptyArray, "[]")
	}
	return err
}

func scalarKind(text string) Kind {
	switch text[0] {
	case 'n':
		return Null
	case 't', 'f':
		return Boolean
	}
	if strings.ContainsAny(text, ".eE") {
		return Float
	}
	return Integer
}

func appendIndex(path []byte, n int) []byte {
	return append(strconv.AppendInt(append(path, '['), int64(n), 10), ']')
}

func appendKey(path []byte, key string) []byte {
	if len(path) > 0 {
		path = append(path, '.')
	}
	if plainKey(key) {
		return append(path, key...)
	}
	return scan.AppendQuoted(path, key)
}

func plainKey(key string) bool {
	for i := range len(key) {
		c := key[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') &&
			c != '_' && c != '-' && c != ':' && c != '/' {
			return false
		}
	}
	return key != ""
}

// Diff lists the leaves in which two canonical fact objects differ, sorted by
// path; empty values stand for no facts. Equal subtrees are compared as text and
// never taken apart, so the cost is that of what changed.
func Diff(before, after json.RawMessage) ([]Change, error) {
	var d differ
	err := d.diff(string(before), string(after))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(d.changes, func(a, b Change) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		if a.Removed == b.Removed {
			return 0
		}
		if a.Removed {
			return -1
		}
		return 1
	})
	return d.changes, nil
}

type differ struct {
	path    []byte
	changes []Change
}

func (d *differ) diff(before, after string) error {
	switch {
	case before == after:
		return nil
	case before == "" || after == "" || before[0] != after[0]:
		return d.replace(before, after)
	case before[0] == '{' && before != "{}" && after != "{}":
		return d.objects(before, after)
	case before[0] == '[' && before != "[]" && after != "[]":
		return d.arrays(before, after)
	default:
		return d.replace(before, after)
	}
}

// replace takes the old leaves away and puts the new ones there. A leaf that
// stays under its path is a change of value, not a removal.
func (d *differ) replace(before, after string) error {
	if isScalar(before) && isScalar(after) { // most changes are of one value
		leaf, err := d.leaf(after)
		d.changes = append(d.changes, Change{Leaf: leaf})
		return err
	}
	old, err := d.leaves(before)
	if err != nil {
		return err
	}
	fresh, err := d.leaves(after)
	if err != nil {
		return err
	}
	d.changes = slices.Grow(d.changes, len(fresh))
	for _, leaf := range fresh {
		d.changes = append(d.changes, Change{Leaf: leaf})
	}
	if len(old) == 0 { // as in a node's first set
		return nil
	}
	kept := make(map[string]bool, len(fresh))
	for _, leaf := range fresh {
		kept[leaf.Path] = true
	}
	for _, leaf := range old {
		if !kept[leaf.Path] {
			d.changes = append(d.changes, Change{Leaf: leaf, Removed: true})
		}
	}
	return nil
}

// isScalar tells a value that is neither missing nor an object or array.
func isScalar(text string) bool {
	return text != "" && text[0] != '{' && text[0] != '['
}

func (d *differ) leaf(text string) (Leaf, error) {
	s := scan.Scanner{What: "facts", Src: text}
	if text[0] == '"' {
		value, err := s.String()
		return Leaf{Path: string(d.path), Kind: String, Text: value}, err
	}
	value, err := s.Scalar()
	if err != nil {
		return Leaf{}, err
	}
	return Leaf{Path: string(d.path), Kind: scalarKind(value), Text: value}, nil
}

func (d *differ) leaves(text string) ([]Leaf, error) {
	if text == "" || text == "{}" && len(d.path) == 0 {
		return nil, nil
	}
	f := flattener{Scanner: &scan.Scanner{What: "facts", Src: text}, path: slices.Clone(d.path)}
	err := f.value()
	return f.leaves, err
}

// objects walks two objects with sorted keys side by side.
func (d *differ) objects(before, after string) error {
	a, b := cursor{Scanner: scan.Scanner{What: "facts", Src: before}}, cursor{Scanner: scan.Scanner{What: "facts", Src: after}}
	if err := a.next(); err != nil {
		return err
	}
	if err := b.next(); err != nil {
		return err
	}
	for a.ok || b.ok {
		step := a.step(&b)
		if err := d.member(step, &a, &b); err != nil {
			return err
		}
		if err := advance(step, &a, &b); err != nil {
			return err
		}
	}
	return nil
}

// advance steps over the member that came first, or over that of both sides.
func advance(step int, a, b *cursor) error {
	if step > 0 {
		return b.next()
	}
	if err := a.next(); err != nil || step < 0 {
		return err
	}
	if b.follow(a) {
		return nil
	}
	return b.next()
}

// member compares one member: before zero only the old side has it, after zero
// only the new one.
func (d *differ) member(step int, a, b *cursor) error {
	size := len(d.path)
	defer func() { d.path = d.path[:size] }()
	switch {
	case step < 0:
		d.path = appendKey(d.path, a.name)
		return d.replace(a.value, "")
	case step > 0:
		d.path = appendKey(d.path, b.name)
		return d.replace("", b.value)
	case a.value == b.value:
		return nil
	default:
		d.path = appendKey(d.path, a.name)
		return d.diff(a.value, b.value)
	}
}

func (d *differ) arrays(before, after string) error {
	old, err := elements(before)
	if err != nil {
		return err
	}
	fresh, err := elements(after)
	if err != nil {
		return err
	}
	size := len(d.path)
	for i := range max(len(old), len(fresh)) {
		var was, is string
		if i < len(old) {
			was = old[i]
		}
		if i < len(fresh) {
			is = fresh[i]
		}
		d.path = appendIndex(d.path, i)
		err := d.diff(was, is)
		d.path = d.path[:size]
		if err != nil {
			return err
		}
	}
	return nil
}

func elements(text string) ([]string, error) {
	s := scan.Scanner{What: "facts", Src: text}
	var out []string
	err := s.Array(func() error {
		raw, err := s.Raw()
		out = append(out, raw)
		return err
	})
	return out, err
}

// cursor steps through an object's members.
type cursor struct {
	scan.Scanner
	name, value string
	member      string // `"name":value`
	started, ok bool
}

func (c *cursor) next() error {
	first := !c.started
	if first {
		c.started = true
		if err := c.Enter('{'); err != nil {
			return err
		}
	} else if !c.ok {
		return nil
	}
	more, err := c.More(first, '}')
	if c.ok = more && err == nil; !c.ok {
		return err
	}
	start := c.Pos
	if c.name, err = c.Key(); err != nil {
		return err
	}
	c.value, err = c.Raw()
	c.member = c.Src[start:c.Pos]
	return err
}

// follow steps to the next member if it is the one that other is at. Canonical
// objects have no white space, so it need not be taken apart for that: most
// members of two fact sets are the same.
func (c *cursor) follow(other *cursor) bool {
	rest, comma := strings.CutPrefix(c.Src[c.Pos:], ",")
	if !comma || !c.ok || !other.ok || !strings.HasPrefix(rest, other.member) {
		return false
	}
	if end := len(other.member); end == len(rest) || rest[end] != ',' && rest[end] != '}' {
		return false // 1 is no prefix of 12 that counts
	}
	c.Pos += len(",") + len(other.member)
	c.name, c.value, c.member = other.name, other.value, other.member
	return true
}

// step says whose member comes first: negative a's, positive b's, zero both.
func (c *cursor) step(b *cursor) int {
	switch {
	case !c.ok:
		return 1
	case !b.ok:
		return -1
	default:
		return strings.Compare(c.name, b.name)
	}
}

// Paths lists the paths of changes, each once.
func Paths(changes []Change) []string {
	paths := make([]string, len(changes))
	for i, c := range changes {
		paths[i] = c.Path
	}
	return slices.Compact(paths)
}
