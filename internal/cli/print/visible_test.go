package print

import (
	"strings"
	"testing"
)

func TestNothingSteersTheTerminal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3000)
	for text, want := range map[string]string{
		"a\x1b[31mb\a":      `a\x1b[31mb\x07`,
		"one\n\ttwo  three": "one\n\ttwo  three",
		"\u009b2J":          `\x9b2J`,
		"größer":            "größer",
		"a " + long + " b":  "a " + long[:100] + "… (3000 characters) b",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%.40q: %.200q, want %.200q", text, got, want)
		}
	}
}
