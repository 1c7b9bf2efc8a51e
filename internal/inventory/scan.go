package inventory

import (
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fault"
)

// maxDepth is how deep objects and arrays may nest in what nodes send.
const maxDepth = 100

// scanner reads JSON front to back without building a tree. It works on a
// string, so that what it returns costs no copy. Facts and reports arrive by the
// thousand a second: this is three to five times as fast as encoding/json.
type scanner struct {
	src   string
	pos   int
	depth int
	what  string // "facts", "report": for errors
}

// newScanner prepares body. PSON is JSON whose strings may hold raw bytes that
// are not UTF-8; those are taken for Latin-1. A string is not copied.
func newScanner[T string | []byte | json.RawMessage](what string, body T, limit int) (*scanner, error) {
	if len(body) > limit {
		return nil, fault.New(fault.Invalid, "the %s has %d bytes, at most %d are allowed", what, len(body), limit)
	}
	return &scanner{what: what, src: validText(string(body))}, nil
}

func validText(body string) string {
	if utf8.ValidString(body) {
		return body
	}
	var b strings.Builder
	b.Grow(len(body) + len(body)/8)
	for i := 0; i < len(body); {
		r, size := utf8.DecodeRuneInString(body[i:])
		if r == utf8.RuneError && size == 1 {
			r = rune(body[i])
		}
		b.WriteRune(r)
		i += size
	}
	return b.String()
}

func (s *scanner) fail(format string, args ...any) error {
	args = append([]any{s.what}, append(args, s.pos)...)
	return fault.New(fault.Invalid, "the %s cannot be read: "+format+" (at byte %d)", args...)
}

// peek returns the next byte that is not white space; zero at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.src) {
		c := s.src[s.pos]
		if c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.pos++
	}
	return 0
}

// expect consumes c.
func (s *scanner) expect(c byte) error {
	if got := s.peek(); got != c {
		return s.unexpected(strconv.QuoteRune(rune(c)))
	}
	s.pos++
	return nil
}

func (s *scanner) unexpected(wanted string) error {
	if s.pos >= len(s.src) {
		return s.fail("it ends where %s should be; was it cut off?", wanted)
	}
	return s.fail("found %q where %s should be", s.src[s.pos], wanted)
}

// end checks that nothing follows.
func (s *scanner) end() error {
	if s.peek() != 0 || s.pos < len(s.src) {
		return s.fail("something follows after its end")
	}
	return nil
}

// enter and leave count nesting.
func (s *scanner) enter(c byte) error {
	if err := s.expect(c); err != nil {
		return err
	}
	if s.depth++; s.depth > maxDepth {
		return s.fail("it nests deeper than %d", maxDepth)
	}
	return nil
}

// more says whether another member or element follows, and consumes the comma or
// the closing bracket.
func (s *scanner) more(first bool, closing byte) (bool, error) {
	c := s.peek()
	if c == closing {
		s.pos++
		s.depth--
		return false, nil
	}
	if first {
		return true, nil
	}
	if c != ',' {
		return false, s.unexpected("a comma or " + strconv.QuoteRune(rune(closing)))
	}
	s.pos++
	if s.peek() == closing {
		return false, s.unexpected("another value")
	}
	return true, nil
}

// object calls member for each key; member must consume the value.
func (s *scanner) object(member func(key string) error) error {
	if err := s.enter('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.more(first, '}')
		if err != nil || !more {
			return err
		}
		key, err := s.key()
		if err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
	}
}

// array calls element for each element; element must consume it.
func (s *scanner) array(element func() error) error {
	if err := s.enter('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.more(first, ']')
		if err != nil || !more {
			return err
		}
		if err := element(); err != nil {
			return err
		}
	}
}

func (s *scanner) key() (string, error) {
	key, err := s.str()
	if err != nil {
		return "", err
	}
	return key, s.expect(':')
}

// str reads a string.
func (s *scanner) str() (string, error) {
	raw, escaped, err := s.rawStr()
	if err != nil || !escaped {
		return raw, err
	}
	return unescape(raw), nil
}

// rawStr reads what is between the quotes and checks it.
func (s *scanner) rawStr() (raw string, escaped bool, err error) {
	if err := s.expect('"'); err != nil {
		return "", false, err
	}
	for start := s.pos; ; {
		s.pos += plainBytes(s.src[s.pos:], 0)
		switch s.at() {
		case '"':
			s.pos++
			return s.src[start : s.pos-1], escaped, nil
		case '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return "", false, err
			}
		default:
			if s.pos < len(s.src) {
				return "", false, s.fail("a string holds a bare control character")
			}
			return "", false, s.unexpected("the end of a string")
		}
	}
}

// Each byte of a word, and its top bit.
const (
	eachByte = 0x0101010101010101
	topBits  = 0x8080808080808080
)

// plainBytes counts the bytes before the first quote, backslash or control
// character; with topBits also before the first that is not ASCII. Most strings are
// short: testing eight bytes at once in place is quicker than calls that search for
// one byte after the other. In each test the difference borrows into the top bit of a
// byte that matches; the lowest is right.
func plainBytes(s string, high uint64) int {
	n := 0
	for ; len(s)-n >= 8; n += 8 {
		w := s[n : n+8]
		word := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		quote, slash := word^'"'*eachByte, word^'\\'*eachByte
		found := (word-' '*eachByte)&^word | (quote-eachByte)&^quote | (slash-eachByte)&^slash | word&high
		if found &= topBits; found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(s) && s[n] >= ' ' && s[n] != '"' && s[n] != '\\' && (s[n] < utf8.RuneSelf || high == 0) {
		n++
	}
	return n
}

func (s *scanner) escape() error {
	s.pos++
	if s.pos >= len(s.src) {
		return s.unexpected("an escape")
	}
	switch s.src[s.pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return nil
	case 'u':
		if len(s.src)-s.pos < 5 || !isHex(s.src[s.pos+1:s.pos+5]) {
			return s.fail("an escape \\u lacks its four digits")
		}
		s.pos += 5
		return nil
	default:
		return s.fail("a string holds an unknown escape")
	}
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; (s[i] < '0' || s[i] > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// unescape decodes a checked string. NUL is left out, as PuppetDB does, because
// PostgreSQL cannot keep it.
func unescape(raw string) string {
	b := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			b = append(b, c)
			i++
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r, used := unicodeEscape(raw[i+1:])
			if r != 0 {
				b = utf8.AppendRune(b, r)
			}
			i += used
		default:
			b = append(b, raw[i])
		}
		i++
	}
	return string(b)
}

// unicodeEscape decodes the digits after \u, and a low surrogate after a high one.
func unicodeEscape(s string) (rune, int) {
	r := hex4(s)
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(s) >= 10 && s[4] == '\\' && s[5] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(s[6:])); pair != utf8.RuneError {
			return pair, 10
		}
	}
	return utf8.RuneError, 4
}

func hex4(s string) rune {
	n, _ := strconv.ParseUint(s[:4], 16, 16)
	return rune(n)
}

// scalar reads a number, true, false or null and returns its text.
func (s *scanner) scalar() (string, error) {
	c := s.peek()
	start := s.pos
	switch {
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	case c == '-' || c >= '0' && c <= '9':
		if err := s.number(); err != nil {
			return "", err
		}
		return s.src[start:s.pos], nil
	default:
		return "", s.unexpected("a value")
	}
}

func (s *scanner) literal(w string) (string, error) {
	if !strings.HasPrefix(s.src[s.pos:], w) {
		return "", s.unexpected(w)
	}
	s.pos += len(w)
	return w, nil
}

func (s *scanner) number() error {
	if s.src[s.pos] == '-' {
		s.pos++
	}
	if s.at() == '0' {
		s.pos++
	} else if s.digits() == 0 {
		return s.unexpected("a digit")
	}
	if s.at() == '.' {
		s.pos++
		if s.digits() == 0 {
			return s.unexpected("a digit")
		}
	}
	if s.at()|0x20 == 'e' {
		s.pos++
		if c := s.at(); c == '+' || c == '-' {
			s.pos++
		}
		if s.digits() == 0 {
			return s.unexpected("a digit")
		}
	}
	return nil
}

func (s *scanner) at() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

func (s *scanner) digits() int {
	start := s.pos
	for s.pos < len(s.src) && s.src[s.pos] >= '0' && s.src[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - start
}

// skip consumes one value of any kind.
func (s *scanner) skip() error {
	switch s.peek() {
	case '{':
		return s.object(func(string) error { return s.skip() })
	case '[':
		return s.array(s.skip)
	case '"':
		_, _, err := s.rawStr()
		return err
	default:
		_, err := s.scalar()
		return err
	}
}

// raw consumes one value and returns its text.
func (s *scanner) raw() (string, error) {
	s.peek()
	start := s.pos
	err := s.skip()
	return s.src[start:s.pos], err
}

// isNull consumes a null, if one is next.
func (s *scanner) isNull() bool {
	if s.peek() == 'n' && strings.HasPrefix(s.src[s.pos:], "null") {
		s.pos += 4
		return true
	}
	return false
}
