package fleet

import (
	"regexp"
	"strings"
)

// Glob is a pattern in which * stands for any text, also for none and with any
// characters, and everything else for itself. The empty pattern fits everything.
type Glob string

// MaxGlob is the longest pattern, in bytes.
const MaxGlob = 500

// Fits says whether all of text is as the pattern says. It takes time in proportion to both lengths.
func (g Glob) Fits(text string) bool {
	if g == "" {
		return true
	}
	parts := strings.Split(string(g), "*")
	last := len(parts) - 1
	if last == 0 {
		return text == string(g)
	}
	rest, begins := strings.CutPrefix(text, parts[0])
	if !begins || !strings.HasSuffix(rest, parts[last]) {
		return false
	}
	rest = rest[:len(rest)-len(parts[last])]
	for _, part := range parts[1:last] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return true
}

// digits is what is counted up, or is a date, in names.
var digits = regexp.MustCompile(`[0-9]+`)

// Numberless is a pattern that fits text whatever numbers are in it.
func Numberless(text string) Glob { return Glob(digits.ReplaceAllString(text, "*")) }
