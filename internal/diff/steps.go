package diff

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// kind is what happened to a thing.
type kind string

const (
	added     kind = "added"
	removed   kind = "removed"
	changed   kind = "changed"
	reordered kind = "reordered" // the keys of a hash came in another order
)

// step is one place in a value that differs. Where a list is on the way, the
// position of what was added is the one in the new list, that of everything else is
// the one in the old list: what was changed is changed first, then what was
// removed is taken out, then what was added is put in from the front.
type step struct {
	path     []place
	kind     kind
	old, new *value // nil where there is none
}

// place is a key of a hash or a position in a list.
type place struct {
	key    string
	index  int
	inList bool
}

// pathText writes where something is: .key, ["odd key"], [0].
func pathText(path []place) string {
	var b strings.Builder
	for _, p := range path {
		switch {
		case p.inList:
			b.WriteString("[" + strconv.Itoa(p.index) + "]")
		case isWord(p.key):
			b.WriteString("." + p.key)
		default:
			b.WriteString("[" + strconv.Quote(p.key) + "]")
		}
	}
	return b.String()
}

func isWord(key string) bool {
	for _, r := range key {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return key != ""
}

// compareValues lists the places where two values differ, in the order of the old
// one; none if they are equal.
func compareValues(a, b *value) []step {
	var c comparison
	c.compare(nil, a, b)
	return c.steps
}

type comparison struct{ steps []step }

func (c *comparison) note(path []place, k kind, a, b *value) {
	c.steps = append(c.steps, step{slices.Clone(path), k, a, b})
}

func (c *comparison) compare(path []place, a, b *value) {
	switch {
	case a.kind == '{' && b.kind == '{':
		c.compareHashes(path, a, b)
	case a.kind == '[' && b.kind == '[':
		c.compareLists(path, a, b)
	case a.kind != b.kind || a.text != b.text:
		c.note(path, changed, a, b)
	}
}

func (c *comparison) compareHashes(path []place, a, b *value) {
	var common []string // in a's order
	for i, key := range a.keys {
		here := append(slices.Clip(path), place{key: key})
		if other := b.member(key); other != nil {
			common = append(common, key)
			c.compare(here, a.items[i], other)
		} else {
			c.note(here, removed, a.items[i], nil)
		}
	}
	n := 0
	for i, key := range b.keys {
		switch {
		case a.member(key) == nil:
			c.note(append(slices.Clip(path), place{key: key}), added, nil, b.items[i])
		case n >= 0 && common[n] == key:
			n++
		default:
			n = -1
		}
	}
	if n < 0 {
		c.note(path, reordered, a, b)
	}
}

// compareLists finds what lists have in common; what is left between, one for one,
// was changed, and the rest of it was removed or added.
func (c *comparison) compareLists(path []place, a, b *value) {
	for _, gap := range lcs.DiffLines(canonicals(a.items), canonicals(b.items)) {
		pairs := min(gap.End-gap.Start, gap.ReplEnd-gap.ReplStart)
		if !alike(a.items[gap.Start:gap.Start+pairs], b.items[gap.ReplStart:gap.ReplStart+pairs]) {
			pairs = 0
		}
		for i := range pairs {
			c.compare(append(slices.Clip(path), at(gap.Start+i)), a.items[gap.Start+i], b.items[gap.ReplStart+i])
		}
		for i := gap.Start + pairs; i < gap.End; i++ {
			c.note(append(slices.Clip(path), at(i)), removed, a.items[i], nil)
		}
		for i := gap.ReplStart + pairs; i < gap.ReplEnd; i++ {
			c.note(append(slices.Clip(path), at(i)), added, nil, b.items[i])
		}
	}
	c.keyOrders(path, a, b)
}

// keyOrders finds elements that are equal but for the order of their keys. Lists
// of the same length are looked at element by element; in others it is not asked.
func (c *comparison) keyOrders(path []place, a, b *value) {
	if len(a.items) != len(b.items) {
		return
	}
	for i := range a.items {
		if a.items[i].canonical() == b.items[i].canonical() && a.items[i].plain() != b.items[i].plain() {
			c.compare(append(slices.Clip(path), at(i)), a.items[i], b.items[i])
		}
	}
}

func at(i int) place { return place{index: i, inList: true} }

// alike says whether elements may have become each other: containers of one kind,
// or none of them a container.
func alike(a, b []*value) bool {
	for i := range a {
		if a[i].kind != b[i].kind && (nested(a[i]) || nested(b[i])) {
			return false
		}
	}
	return true
}

func nested(v *value) bool { return v.kind == '{' || v.kind == '[' }

func canonicals(items []*value) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = item.canonical()
	}
	return texts
}
