package datatype

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// SyntaxError says where an expression is wrong.
type SyntaxError struct {
	Offset int // bytes from the start
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("at character %d: %s", e.Offset+1, e.Reason) }

// kind is what sort of token it is.
type kind int

const (
	end     kind = iota
	punct        // one of [ ] { } ( ) , = or the arrow =>
	name         // starts with an upper-case letter: a type
	word         // starts with a lower-case letter
	number       // as written
	quoted       // a string; text is its value
	pattern      // a regular expression; text is what stands between the slashes
)

type token struct {
	kind   kind
	text   string
	offset int
}

func (t token) String() string {
	if t.kind == end {
		return "the end"
	}
	return fmt.Sprintf("%.40q", t.text)
}

// scanner cuts an expression into tokens.
type scanner struct {
	text string
	at   int
}

func (s *scanner) fail(at int, format string, args ...any) error {
	return &SyntaxError{at, fmt.Sprintf(format, args...)}
}

func (s *scanner) next() (token, error) {
	s.skip()
	start := s.at
	if start == len(s.text) {
		return token{end, "", start}, nil
	}
	switch c := s.text[start]; {
	case isUpper(c):
		return s.take(name, func(c byte) bool { return isWord(c) || c == ':' }), nil
	case isLower(c) || c == '_':
		return s.take(word, func(c byte) bool { return isWord(c) || c == ':' }), nil
	case isDigit(c) || c == '-':
		return s.number(), nil
	case c == '\'' || c == '"':
		return s.quoted(c)
	case c == '/':
		return s.pattern()
	case strings.HasPrefix(s.text[start:], "=>"):
		s.at += 2
		return token{punct, "=>", start}, nil
	case strings.IndexByte("[]{}(),=", c) >= 0:
		s.at++
		return token{punct, s.text[start:s.at], start}, nil
	default:
		r, _ := utf8.DecodeRuneInString(s.text[start:])
		return token{}, s.fail(start, "%q does not belong into a type", r)
	}
}

// skip passes white space and comments.
func (s *scanner) skip() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		case '#':
			if i := strings.IndexByte(s.text[s.at:], '\n'); i >= 0 {
				s.at += i
			} else {
				s.at = len(s.text)
			}
		default:
			return
		}
	}
}

func (s *scanner) take(k kind, belongs func(byte) bool) token {
	start := s.at
	for s.at < len(s.text) && belongs(s.text[s.at]) {
		s.at++
	}
	return token{k, s.text[start:s.at], start}
}

// number takes what may be one; whether it is, the parser sees.
func (s *scanner) number() token {
	start := s.at
	s.at++
	for s.at < len(s.text) {
		c := s.text[s.at]
		exponent := (c == '-' || c == '+') && strings.IndexByte("eE", s.text[s.at-1]) >= 0
		if !isWord(c) && c != '.' && !exponent {
			break
		}
		s.at++
	}
	return token{number, s.text[start:s.at], start}
}

// quoted reads a string. Escapes are those of single quotes; in double quotes
// also \n, \r, \t, \s and \$. Interpolation has no meaning in a type.
func (s *scanner) quoted(quote byte) (token, error) {
	start := s.at
	var value strings.Builder
	for s.at++; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case c == quote:
			s.at++
			return token{quoted, value.String(), start}, nil
		case c == '\\' && s.at+1 < len(s.text):
			s.at++
			value.WriteString(unescape(s.text[s.at], quote))
		case c == '$' && quote == '"' && s.at+1 < len(s.text) && (s.text[s.at+1] == '{' || isWord(s.text[s.at+1])):
			return token{}, s.fail(s.at, "a type cannot hold a variable")
		default:
			value.WriteByte(c)
		}
	}
	return token{}, s.fail(start, "the string does not end")
}

func unescape(c, quote byte) string {
	if quote == '"' {
		switch c {
		case 'n':
			return "\n"
		case 'r':
			return "\r"
		case 't':
			return "\t"
		case 's':
			return " "
		case '$', '\'':
			return string(c)
		}
	}
	if c == quote || c == '\\' {
		return string(c)
	}
	return `\` + string(c)
}

// pattern reads what stands between slashes; \/ is a slash.
func (s *scanner) pattern() (token, error) {
	start := s.at
	var value strings.Builder
	for s.at++; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case c == '/':
			s.at++
			return token{pattern, value.String(), start}, nil
		case c == '\n':
			return token{}, s.fail(start, "the regular expression does not end on its line")
		case c == '\\' && s.at+1 < len(s.text):
			s.at++
			if s.text[s.at] != '/' {
				value.WriteByte('\\')
			}
			value.WriteByte(s.text[s.at])
		default:
			value.WriteByte(c)
		}
	}
	return token{}, s.fail(start, "the regular expression does not end")
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isWord(c byte) bool  { return isUpper(c) || isLower(c) || isDigit(c) || c == '_' }
