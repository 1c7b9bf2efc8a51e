package filter

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// maxShown is how many characters of a text are shown.
const maxShown = 80

// invalid is the error about a place in a text.
func invalid(what, text string, m *mistake, format string, args ...any) error {
	var b strings.Builder
	b.WriteString(what)
	if text != "" {
		b.WriteString(": " + shorten(text))
	}
	if m.at > 0 {
		line, column := place(text, m.at)
		if line > 1 || strings.Contains(text, "\n") {
			fmt.Fprintf(&b, ", line %d, character %d", line, column)
		} else {
			fmt.Fprintf(&b, ", character %d", column)
		}
	}
	b.WriteString(": ")
	fmt.Fprintf(&b, format, args...)
	return &fault.Error{Kind: fault.Invalid, Detail: b.String(), Hint: m.hint}
}

// place is the line and the character in it, from 1, of the character at, from 1.
func place(text string, at int) (line, column int) {
	line, column = 1, 1
	for _, c := range text {
		if at--; at == 0 {
			break
		}
		column++
		if c == '\n' {
			line, column = line+1, 1
		}
	}
	return line, column
}

// shorten is a text on one line, in quotes, cut.
func shorten(text string) string {
	text = cut(text, maxShown)
	if strings.Contains(text, `"`) && strconv.CanBackquote(text) {
		return "`" + text + "`"
	}
	return quote(text)
}

func cut(text string, most int) string {
	if characters(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
