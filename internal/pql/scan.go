package pql

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// scan walks over a text and remembers what it missed at the furthest place, which
// is where a mistake most likely is.
type scan struct {
	text     string
	at       int
	depth    int
	furthest int
	missed   []string
}

// miss notes that what could stand here.
func (s *scan) miss(what string) {
	switch {
	case s.at > s.furthest || s.missed == nil:
		s.furthest, s.missed = s.at, []string{what}
	case s.at == s.furthest:
		s.missed = append(s.missed, what)
	}
}

// fail is the error at the furthest place.
func (s *scan) fail() *Error {
	e := &Error{Pos: place(s.text, s.furthest), Detail: found(s.text, s.furthest), Expected: anyOf(s.missed)}
	if slices.Contains(e.Expected, "a string") && isWordAt(s.text, s.furthest) {
		e.Detail += " (text stands in quotes)" // what newcomers forget most
	}
	if e.Hint = foreign(s.text, s.furthest); e.Hint == "" && isWordAt(s.text, s.furthest) {
		e = e.near(wordAt(s.text, s.furthest), e.Expected)
	}
	return e.in(s.text)
}

// wordAt is the word at a place.
func wordAt(text string, at int) string {
	rest := text[min(at, len(text)):]
	if end := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// failAt is an error that the grammar does not tell by itself.
func (s *scan) failAt(offset int, detail, expected string) *Error {
	e := &Error{Pos: place(s.text, offset), Detail: detail, Expected: []string{expected}}
	return e.in(s.text)
}

func (s *scan) pos() Pos { return place(s.text, s.at) }

func (s *scan) rest() string { return s.text[s.at:] }

// space skips white space and says whether there was any.
func (s *scan) space() bool {
	start := s.at
	for s.at < len(s.text) && isSpace(s.text[s.at]) {
		s.at++
	}
	return s.at > start
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// take reads a fixed text.
func (s *scan) take(what string) bool {
	if strings.HasPrefix(s.rest(), what) {
		s.at += len(what)
		return true
	}
	s.miss(what)
	return false
}

// word reads a keyword, which no letter may follow.
func (s *scan) word(what string) bool {
	end := s.at + len(what)
	if strings.HasPrefix(s.rest(), what) && (end == len(s.text) || !isWord(s.text[end])) {
		s.at = end
		return true
	}
	s.miss(what)
	return false
}

// words reads keywords with white space between them.
func (s *scan) words(first, second string) bool {
	start := s.at
	if strings.HasPrefix(s.rest(), first) {
		s.at += len(first)
		if s.space() && strings.HasPrefix(s.rest(), second) && !isWordAt(s.text, s.at+len(second)) {
			s.at += len(second)
			return true
		}
	}
	s.at = start
	s.miss(first + " " + second)
	return false
}

func isWordAt(text string, at int) bool { return at < len(text) && isWord(text[at]) }

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// name reads letters, digits and underscores.
func (s *scan) name(what string) (string, bool) {
	start := s.at
	for s.at < len(s.text) && isWord(s.text[s.at]) {
		s.at++
	}
	if s.at == start {
		s.miss(what)
	}
	return s.text[start:s.at], s.at > start
}

// peekName looks at a name without reading it.
func (s *scan) peekName() string {
	end := s.at
	for isWordAt(s.text, end) {
		end++
	}
	return s.text[s.at:end]
}

// bare reads a key that needs no quotes.
func (s *scan) bare() (string, bool) {
	start := s.at
	for s.at < len(s.text) {
		r, size := utf8.DecodeRuneInString(s.rest())
		if !isBare(r) || r == utf8.RuneError && size == 1 {
			break
		}
		s.at += size
	}
	if s.at == start {
		s.miss("a key")
	}
	return s.text[start:s.at], s.at > start
}

// digits reads a whole number without a sign.
func (s *scan) digits(what string) (string, bool) {
	start := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	if s.at == start {
		s.miss(what)
	}
	return s.text[start:s.at], s.at > start
}

// enter and leave bound how deep a query nests.
func (s *scan) enter() *Error {
	if s.depth++; s.depth > MaxDepth {
		e := wrong(s.pos(), "the query nests more than %d deep", MaxDepth)
		return e.in(s.text)
	}
	return nil
}

func (s *scan) leave() { s.depth-- }
