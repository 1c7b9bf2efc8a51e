package scan

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Canonical writes a value in the one form that equal values share: keys
// sorted bytewise, the last of repeated keys, no white space, fewest escapes.
// Numbers stay as they were written, so that none loses precision.
type Canonical struct {
	*Scanner
	Out     []byte
	members []member // a stack, shared by all depths
	scratch []byte
	Leaves  int
	Limit   int          // most leaves
	path    int          // bytes of the keys above the current value
	Order   *Arrangement // nil: the order in which members came does not matter
	// asWritten leaves members in the order in which they came, unless a key is repeated.
	AsWritten bool
}

// MaxPath is how long the path to a value may be: databases index it.
const MaxPath = 2000

type member struct {
	key        string
	start, end int // of `"key":value` in out
	came       int // its place among the members of its object as they came
}

// Value consumes one value and adds its canonical form to Out.
func (c *Canonical) Value() error {
	switch c.Peek() {
	case '{':
		return c.objectValue()
	case '[':
		return c.arrayValue()
	case '"':
		text, err := c.String()
		if err != nil {
			return err
		}
		c.Out = AppendQuoted(c.Out, text)
	default:
		text, err := c.Scalar()
		if err != nil {
			return err
		}
		c.Out = append(c.Out, text...)
	}
	return c.count()
}

func (c *Canonical) count() error {
	if c.Leaves++; c.Leaves > c.Limit {
		return c.Fail("it holds more than %d values", c.Limit)
	}
	return nil
}

func (c *Canonical) arrayValue() error {
	c.Out = append(c.Out, '[')
	first := true
	err := c.Array(func() error {
		if !first {
			c.Out = append(c.Out, ',')
		}
		first = false
		return c.Value()
	})
	c.Out = append(c.Out, ']')
	if err == nil && first {
		err = c.count()
	}
	return err
}

func (c *Canonical) objectValue() error {
	c.Out = append(c.Out, '{')
	base, start, part := len(c.members), len(c.Out), c.Order.begin()
	err := c.Object(func(key string) error {
		if len(c.members) > base {
			c.Out = append(c.Out, ',')
		}
		m := member{key: key, start: len(c.Out), came: len(c.members) - base}
		c.Out = append(AppendQuoted(c.Out, key), ':')
		if c.path += len(key) + 1; c.path > MaxPath {
			return c.Fail("the path to a value has more than %d bytes", MaxPath)
		}
		if err := c.Value(); err != nil {
			return err
		}
		c.path -= len(key) + 1
		m.end = len(c.Out)
		c.members = append(c.members, m)
		return nil
	})
	if err != nil {
		return err
	}
	if len(c.members) == base {
		c.Out = append(c.Out, '}')
		return c.count()
	}
	if !sorted(c.members[base:]) && (!c.AsWritten || !distinct(c.members[base:])) {
		c.arrange(c.members[base:], start)
		c.Order.note(part, c.members[base:])
	}
	c.members = c.members[:base]
	c.Out = append(c.Out, '}')
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
func (c *Canonical) arrange(members []member, start int) {
	slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	c.scratch = append(c.scratch[:0], c.Out[start:]...)
	c.Out = c.Out[:start]
	for i, m := range members {
		if i+1 < len(members) && members[i+1].key == m.key {
			continue // the last one counts
		}
		if len(c.Out) > start {
			c.Out = append(c.Out, ',')
		}
		c.Out = append(c.Out, c.scratch[m.start-start:m.end-start]...)
	}
}

const hexDigits = "0123456789abcdef"

// AppendQuoted writes s, which is valid UTF-8 or made so, as a JSON string.
func AppendQuoted(dst []byte, s string) []byte {
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
