package scan

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

// Scanner reads JSON front to back without building a tree. It works on a
// string, so that what it returns costs no copy. Facts and reports arrive by the
// thousand a second: this is three to five times as fast as encoding/json.
type Scanner struct {
	Src   string
	Pos   int
	Depth int
	What  string // "facts", "report": for errors
}

// New prepares body. PSON is JSON whose strings may hold raw bytes that
// are not UTF-8; those are taken for Latin-1. A string is not copied.
func New[T string | []byte | json.RawMessage](what string, body T, limit int) (*Scanner, error) {
	if len(body) > limit {
		return nil, fault.New(fault.Invalid, "the %s has %d bytes, at most %d are allowed", what, len(body), limit)
	}
	return &Scanner{What: what, Src: ValidText(string(body))}, nil
}

// ValidText is a body with what is no UTF-8 taken for Latin-1.
func ValidText(body string) string {
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

// Fail is an Invalid fault that says what is wrong, and where.
func (s *Scanner) Fail(format string, args ...any) error {
	args = append([]any{s.What}, append(args, s.Pos)...)
	return fault.New(fault.Invalid, "the %s cannot be read: "+format+" (at byte %d)", args...)
}

// Peek returns the next byte that is not white space; zero at the end.
func (s *Scanner) Peek() byte {
	for s.Pos < len(s.Src) {
		c := s.Src[s.Pos]
		if c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.Pos++
	}
	return 0
}

// expect consumes c.
func (s *Scanner) expect(c byte) error {
	if got := s.Peek(); got != c {
		return s.Unexpected(strconv.QuoteRune(rune(c)))
	}
	s.Pos++
	return nil
}

// Unexpected fails with what should be next.
func (s *Scanner) Unexpected(wanted string) error {
	if s.Pos >= len(s.Src) {
		return s.Fail("it ends where %s should be; was it cut off?", wanted)
	}
	return s.Fail("found %q where %s should be", s.Src[s.Pos], wanted)
}

// End checks that nothing follows.
func (s *Scanner) End() error {
	if s.Peek() != 0 || s.Pos < len(s.Src) {
		return s.Fail("something follows after its end")
	}
	return nil
}

// Enter and leave count nesting.
func (s *Scanner) Enter(c byte) error {
	if err := s.expect(c); err != nil {
		return err
	}
	if s.Depth++; s.Depth > maxDepth {
		return s.Fail("it nests deeper than %d", maxDepth)
	}
	return nil
}

// More says whether another member or element follows, and consumes the comma or
// the closing bracket.
func (s *Scanner) More(first bool, closing byte) (bool, error) {
	c := s.Peek()
	if c == closing {
		s.Pos++
		s.Depth--
		return false, nil
	}
	if first {
		return true, nil
	}
	if c != ',' {
		return false, s.Unexpected("a comma or " + strconv.QuoteRune(rune(closing)))
	}
	s.Pos++
	if s.Peek() == closing {
		return false, s.Unexpected("another value")
	}
	return true, nil
}

// Object calls member for each key; member must consume the value.
func (s *Scanner) Object(member func(key string) error) error {
	if err := s.Enter('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.More(first, '}')
		if err != nil || !more {
			return err
		}
		key, err := s.Key()
		if err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
	}
}

// Array calls element for each element; element must consume it.
func (s *Scanner) Array(element func() error) error {
	if err := s.Enter('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.More(first, ']')
		if err != nil || !more {
			return err
		}
		if err := element(); err != nil {
			return err
		}
	}
}

// Key reads the name of a member and its colon.
func (s *Scanner) Key() (string, error) {
	key, err := s.String()
	if err != nil {
		return "", err
	}
	return key, s.expect(':')
}

// String reads a string.
func (s *Scanner) String() (string, error) {
	raw, escaped, err := s.rawStr()
	if err != nil || !escaped {
		return raw, err
	}
	return unescape(raw), nil
}

// rawStr reads what is between the quotes and checks it.
func (s *Scanner) rawStr() (raw string, escaped bool, err error) {
	if err := s.expect('"'); err != nil {
		return "", false, err
	}
	for start := s.Pos; ; {
		s.Pos += plainBytes(s.Src[s.Pos:], 0)
		switch s.at() {
		case '"':
			s.Pos++
			return s.Src[start : s.Pos-1], escaped, nil
		case '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return "", false, err
			}
		default:
			if s.Pos < len(s.Src) {
				return "", false, s.Fail("a string holds a bare control character")
			}
			return "", false, s.Unexpected("the end of a string")
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

func (s *Scanner) escape() error {
	s.Pos++
	if s.Pos >= len(s.Src) {
		return s.Unexpected("an escape")
	}
	switch s.Src[s.Pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.Pos++
		return nil
	case 'u':
		if len(s.Src)-s.Pos < 5 || !IsHex(s.Src[s.Pos+1:s.Pos+5]) {
			return s.Fail("an escape \\u lacks its four digits")
		}
		s.Pos += 5
		return nil
	default:
		return s.Fail("a string holds an unknown escape")
	}
}

// IsHex tells whether a text has only hexadecimal digits.
func IsHex(s string) bool {
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

// Scalar reads a number, true, false or null and returns its text.
func (s *Scanner) Scalar() (string, error) {
	c := s.Peek()
	start := s.Pos
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
		return s.Src[start:s.Pos], nil
	default:
		return "", s.Unexpected("a value")
	}
}

func (s *Scanner) literal(w string) (string, error) {
	if !strings.HasPrefix(s.Src[s.Pos:], w) {
		return "", s.Unexpected(w)
	}
	s.Pos += len(w)
	return w, nil
}

func (s *Scanner) number() error {
	if s.Src[s.Pos] == '-' {
		s.Pos++
	}
	if s.at() == '0' {
		s.Pos++
	} else if s.digits() == 0 {
		return s.Unexpected("a digit")
	}
	if s.at() == '.' {
		s.Pos++
		if s.digits() == 0 {
			return s.Unexpected("a digit")
		}
	}
	if s.at()|0x20 == 'e' {
		s.Pos++
		if c := s.at(); c == '+' || c == '-' {
			s.Pos++
		}
		if s.digits() == 0 {
			return s.Unexpected("a digit")
		}
	}
	return nil
}

func (s *Scanner) at() byte {
	if s.Pos < len(s.Src) {
		return s.Src[s.Pos]
	}
	return 0
}

func (s *Scanner) digits() int {
	start := s.Pos
	for s.Pos < len(s.Src) && s.Src[s.Pos] >= '0' && s.Src[s.Pos] <= '9' {
		s.Pos++
	}
	return s.Pos - start
}

// Skip consumes one value of any kind.
func (s *Scanner) Skip() error {
	switch s.Peek() {
	case '{':
		return s.Object(func(string) error { return s.Skip() })
	case '[':
		return s.Array(s.Skip)
	case '"':
		_, _, err := s.rawStr()
		return err
	default:
		_, err := s.Scalar()
		return err
	}
}

// Raw consumes one value and returns its text.
func (s *Scanner) Raw() (string, error) {
	s.Peek()
	start := s.Pos
	err := s.Skip()
	return s.Src[start:s.Pos], err
}

// IsNull consumes a null, if one is next.
func (s *Scanner) IsNull() bool {
	if s.Peek() == 'n' && strings.HasPrefix(s.Src[s.Pos:], "null") {
		s.Pos += 4
		return true
	}
	return false
}
