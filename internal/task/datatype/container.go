package datatype

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// array is Array[T].
type array struct {
	of   shape
	size span
}

func (a array) String() string { return bracketed("Array", a.of.String()+a.size.String()) }

func (a array) check(c *checker, value any) *Mismatch {
	list, ok := value.([]any)
	if !ok || !a.size.holds(len(list)) {
		return verdict(a, value, false)
	}
	for i, item := range list {
		if m := c.fit(a.of, item); m != nil {
			return m.under(fmt.Sprintf("[%d]", i))
		}
	}
	return nil
}

// hash is Hash[K, V].
type hash struct {
	key, of shape
	size    span
}

func (h hash) String() string {
	return bracketed("Hash", h.key.String()+", "+h.of.String()+h.size.String())
}

func (h hash) check(c *checker, value any) *Mismatch {
	object, ok := value.(map[string]any)
	if !ok || !h.size.holds(len(object)) {
		return verdict(h, value, false)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) { // the same mismatch each time
		if m := c.fit(h.key, key); m != nil {
			return &Mismatch{Expected: "keys that are " + h.key.String(), Actual: fmt.Sprintf("the key %.40q", key)}
		}
		if m := c.fit(h.of, object[key]); m != nil {
			return m.under(key)
		}
	}
	return nil
}

// collection is Collection: an array or hash of a size.
type collection struct{ size span }

func (l collection) String() string { return bracketed("Collection", l.size.String()) }

func (l collection) check(_ *checker, value any) *Mismatch {
	length := -1
	switch v := value.(type) {
	case []any:
		length = len(v)
	case map[string]any:
		length = len(v)
	}
	return verdict(l, value, length >= 0 && l.size.holds(length))
}

// tuple is Tuple: a type for each place, the last one for all that follow.
type tuple struct {
	of   []shape
	size span
	said bool // whether the size was written
}

func (t tuple) String() string {
	if !t.said {
		return bracketed("Tuple", join(t.of))
	}
	if t.size == anySize {
		return bracketed("Tuple", join(t.of)+", 0")
	}
	return bracketed("Tuple", join(t.of)+t.size.String())
}

func (t tuple) check(c *checker, value any) *Mismatch {
	list, ok := value.([]any)
	if !ok || !t.size.holds(len(list)) {
		return verdict(t, value, false)
	}
	for i, item := range list {
		if m := c.fit(t.of[min(i, len(t.of)-1)], item); m != nil {
			return m.under(fmt.Sprintf("[%d]", i))
		}
	}
	return nil
}

// structure is Struct.
type structure struct{ members []member }

// member is one key of a Struct.
type member struct {
	key  string
	of   shape
	need presence
}

// presence is whether a key must be there.
type presence int

const (
	asValue presence = iota // unless its value may be undef
	optionalKey
	required
)

func (m member) String() string {
	key := quote(m.key)
	switch m.need {
	case optionalKey:
		key = "Optional[" + key + "]"
	case required:
		key = "NotUndef[" + key + "]"
	case asValue:
	}
	return key + " => " + m.of.String()
}

func (s structure) String() string {
	if len(s.members) == 0 {
		return "Struct"
	}
	return "Struct[{" + join(s.members) + "}]"
}

func (s structure) check(c *checker, value any) *Mismatch {
	object, ok := value.(map[string]any)
	if !ok {
		return verdict(s, value, false)
	}
	found := 0
	for _, m := range s.members {
		item, there := object[m.key]
		if there {
			found++
		}
		if bad := m.check(c, item, there); bad != nil {
			return bad.under(m.key)
		}
	}
	if found < len(object) {
		return &Mismatch{Expected: "no other keys than " + s.keys(), Actual: fmt.Sprintf("the key %.40q", s.stranger(object))}
	}
	return nil
}

func (m member) check(c *checker, item any, there bool) *Mismatch {
	switch {
	case there:
		return c.fit(m.of, item)
	case m.need == optionalKey, m.need == asValue && c.fits(m.of, nil):
		return nil
	default:
		return &Mismatch{Expected: m.of.String(), Actual: "nothing: the key is required"}
	}
}

func (s structure) keys() string {
	names := make([]string, len(s.members))
	for i, m := range s.members {
		names[i] = m.key
	}
	return strings.Join(names, ", ")
}

// stranger is the first key that is not a member's.
func (s structure) stranger(object map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.ContainsFunc(s.members, func(m member) bool { return m.key == key }) {
			return key
		}
	}
	return ""
}
