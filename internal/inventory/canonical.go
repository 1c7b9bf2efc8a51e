package inventory

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// canonicalizer writes a value in the one form that equal values share: keys
// sorted bytewise, the last of repeated keys, no white space, fewest escapes.
// Numbers stay as they were written, so that none loses precision.
type canonicalizer struct {
	*scanner
	out     []byte
	members []member // a stack, shared by all depths
	scratch []byte
	leaves  int
	limit   int       // most leaves
	path    int       // bytes of the keys above the current value
	order   *arranger // nil: the order in which members came does not matter
	// asWritten leaves members in the order in which they came, unless a key is repeated.
	asWritten bool
}

// maxPath is how long the path to a value may be: databases index it.
const maxPath = 2000

type member struct {
	key        string
	start, end int // of `"key":value` in out
	came       int // its place among the members of its object as they came
}

func (c *canonicalizer) value() error {
	switch c.peek() {
	case '{':
		return c.objectValue()
	case '[':
		return c.arrayValue()
	case '"':
		text, err := c.str()
		if err != nil {
			return err
		}
		c.out = appendQuoted(c.out, text)
	default:
		text, err := c.scalar()
		if err != nil {
			return err
		}
		c.out = append(c.out, text...)
	}
	return c.count()
}

func (c *canonicalizer) count() error {
	if c.leaves++; c.leaves > c.limit {
		return c.fail("it holds more than %d values", c.limit)
	}
	return nil
}

func (c *canonicalizer) arrayValue() error {
	c.out = append(c.out, '[')
	first := true
	err := c.array(func() error {
		if !first {
			c.out = append(c.out, ',')
		}
		first = false
		return c.value()
	})
	c.out = append(c.out, ']')
	if err == nil && first {
		err = c.count()
	}
	return err
}

func (c *canonicalizer) objectValue() error {
	c.out = append(c.out, '{')
	base, start, part := len(c.members), len(c.out), c.order.begin()
	err := c.object(func(key string) error {
		if len(c.members) > base {
			c.out = append(c.out, ',')
		}
		m := member{key: key, start: len(c.out), came: len(c.members) - base}
		c.out = append(appendQuoted(c.out, key), ':')
		if c.path += len(key) + 1; c.path > maxPath {
			return c.fail("the path to a value has more than %d bytes", maxPath)
		}
		if err := c.value(); err != nil {
			return err
		}
		c.path -= len(key) + 1
		m.end = len(c.out)
		c.members = append(c.members, m)
		return nil
	})
	if err != nil {
		return err
	}
	if len(c.members) == base {
		c.out = append(c.out, '}')
		return c.count()
	}
	if !sorted(c.members[base:]) && (!c.asWritten || !distinct(c.members[base:])) {
		c.arrange(c.members[base:], start)
		c.order.note(part, c.members[base:])
	}
	c.members = c.members[:base]
	c.out = append(c.out, '}')
	return nil
}

// distinct tells whether no key is repeated.
func distinct(members []member) bool {
	seen := make(map[string]bool, len(members))
	for _, m := range members {
		seen[m.key] = true
	}
	return len(seen) == len(members)
}

// arrange puts the members that lie in out from start on in order.
func (c *canonicalizer) arrange(members []member, start int) {
	slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	c.scratch = append(c.scratch[:0], c.out[start:]...)
	c.out = c.out[:start]
	for i, m := range members {
		if i+1 < len(members) && members[i+1].key == m.key {
			continue // the last one counts
		}
		if len(c.out) > start {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, c.scratch[m.start-start:m.end-start]...)
	}
}

const hexDigits = "0123456789abcdef"

// appendQuoted writes s, which is valid UTF-8 or made so, as a JSON string.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := plainBytes(s, topBits); i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += size - 1
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[start:]...), '"')
}
