package diff

import (
	"bytes"
	"strings"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"
)

// unified compares two texts line by line and shows a few lines around what
// differs. It says so if it had to leave something out.
func unified(old, fresh string, l Limits) (text, note string) {
	if len(old)+len(fresh) > l.TextBytes {
		return "", "too large for a diff"
	}
	text, err := udiff.ToUnified("old", "new", old, udiff.Lines(old, fresh), l.ContextLines)
	if err != nil {
		return "", "the diff cannot be shown"
	}
	_, text, _ = strings.Cut(text, "\n") // --- old
	_, text, _ = strings.Cut(text, "\n") // +++ new
	return bounded(text, l)
}

// bounded cuts a diff after whole lines, and long lines in themselves.
func bounded(text string, l Limits) (string, string) {
	lines := strings.SplitAfter(text, "\n")
	left := 0
	if len(lines) > l.DiffLines+1 {
		left = len(lines) - l.DiffLines
		lines = lines[:l.DiffLines]
	}
	var b strings.Builder
	cut := false
	for _, line := range lines {
		if len(line) > l.ValueBytes {
			line, cut = cutText(line, l.ValueBytes)+"…\n", true
		}
		b.WriteString(line)
	}
	switch {
	case left > 0:
		return b.String(), countOf(left, "more line", "more lines")
	case cut:
		return b.String(), "long lines are cut"
	}
	return b.String(), ""
}

// cutText is at most n bytes of a text, and no half of a letter.
func cutText(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// isBinary says whether content is not for reading.
func isBinary(content []byte) bool { return bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content) }
