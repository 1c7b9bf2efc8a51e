package pql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Error says what is wrong with a query, and where.
type Error struct {
	Pos      Pos
	Detail   string   // what is wrong; of a text that cannot be read, what was found
	Expected []string // what could stand there; empty when the text could be read
	Line     string   // the line of the text that Pos is in, if there is one
	Hint     string   // what was meant, probably; it is no part of Error, which says what PuppetDB says
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Detail)
	if len(e.Expected) > 0 {
		b.WriteString("; expected ")
		for i, word := range e.Expected {
			switch {
			case i == 0:
			case i == len(e.Expected)-1:
				b.WriteString(", or ")
			default:
				b.WriteString(", ")
			}
			b.WriteString(word)
		}
	}
	if e.Pos != (Pos{}) {
		fmt.Fprintf(&b, " (line %d, column %d)", e.Pos.Line, e.Pos.Column)
	}
	return b.String()
}

// Unwrap makes an Error an Invalid fault.
func (e *Error) Unwrap() error {
	return &fault.Error{Kind: fault.Invalid, Detail: e.Error(), Hint: e.Hint}
}

// Syntax says whether the text could not be read at all.
func (e *Error) Syntax() bool { return len(e.Expected) > 0 }

// Caret shows the line with a mark below the place; empty without a place.
func (e *Error) Caret() string {
	if e.Pos == (Pos{}) || e.Line == "" {
		return ""
	}
	return e.Line + "\n" + strings.Repeat(" ", e.Pos.Column-1) + "^"
}

// wrong is an error of the schema, at a place in the tree.
func wrong(at Pos, format string, args ...any) *Error {
	return &Error{Pos: at, Detail: fmt.Sprintf(format, args...)}
}

// In adds the line of text that e speaks of.
func (e *Error) in(text string) *Error {
	if lines := strings.Split(text, "\n"); e.Pos.Line > 0 && e.Pos.Line <= len(lines) {
		e.Line = strings.TrimSuffix(lines[e.Pos.Line-1], "\r")
	}
	return e
}

// near adds to e which names stand near one that is none.
func (e *Error) near(name string, names []string) *Error {
	e.Hint = fault.DidYouMean(name, names)
	return e
}

// foreign says of what stands at a place that it belongs to another language: to that of policies, or to SQL.
func foreign(text string, offset int) string {
	before, rest := text[:min(offset, len(text))], text[min(offset, len(text)):]
	switch {
	case strings.HasPrefix(rest, "==") || strings.HasPrefix(rest, "=") && strings.HasSuffix(before, "="):
		return "PQL compares with one =; == belongs to policies"
	case strings.HasPrefix(rest, "&"):
		return "PQL writes and, not &&"
	case strings.HasPrefix(rest, "|"):
		return "PQL writes or, not ||"
	case strings.HasPrefix(rest, "!="):
		return "PQL writes !(field = value)"
	case strings.HasPrefix(strings.ToLower(rest), "select ") && strings.TrimSpace(before) == "":
		return "PQL begins with what is asked for: nodes[certname] { ... }"
	case strings.HasPrefix(strings.ToLower(rest), "like ") || strings.HasPrefix(strings.ToLower(rest), "matches "):
		return "PQL matches a regular expression with ~"
	}
	return ""
}

// place finds the position of a byte.
func place(text string, offset int) Pos {
	before := text[:min(offset, len(text))]
	start := strings.LastIndexByte(before, '\n') + 1
	return Pos{Line: strings.Count(before, "\n") + 1, Column: len([]rune(before[start:])) + 1}
}

// found describes what stands at a place.
func found(text string, offset int) string {
	if offset >= len(text) {
		return "the query ends too early"
	}
	rest := text[offset:]
	if end := strings.IndexAny(rest, " \t\r\n,{}[]()\"'"); end > 0 {
		rest = rest[:end]
	}
	runes := []rune(rest)
	if len(runes) > 30 {
		runes = runes[:30]
	}
	if strings.IndexAny(rest, " \t\r\n,{}[]()\"'") == 0 {
		runes = runes[:1]
	}
	return "unexpected " + strconv.Quote(string(runes))
}

// anyOf lists words for people, each once.
func anyOf(words []string) []string {
	words = slices.Clone(words)
	slices.Sort(words)
	return slices.Compact(words)
}
