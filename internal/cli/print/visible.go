package print

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// longestWord is how many characters a word has at most that people are shown whole.
const longestWord = 400

// Visible is a text for people in which nothing steers the terminal: a control character stands as \x1b, but for ends of
// lines and tabs. Of a word that nobody reads to its end the beginning stands, and how long it is.
func Visible(text string) string {
	var out strings.Builder
	word := 0 // where it begins
	end := func(at int) {
		if n := utf8.RuneCountInString(text[word:at]); n > longestWord {
			fmt.Fprintf(&out, "%s… (%d characters)", shown(string([]rune(text[word:at])[:longestWord/4])), n)
			return
		}
		out.WriteString(shown(text[word:at]))
	}
	for i, r := range text {
		if r == ' ' || r == '\n' || r == '\t' {
			end(i)
			out.WriteRune(r)
			word = i + 1
		}
	}
	end(len(text))
	return out.String()
}

// shown is a word whose control characters are seen.
func shown(word string) string {
	steers := func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }
	if !strings.ContainsFunc(word, steers) {
		return word
	}
	var out strings.Builder
	for _, r := range word {
		if steers(r) {
			fmt.Fprintf(&out, `\x%02x`, r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
