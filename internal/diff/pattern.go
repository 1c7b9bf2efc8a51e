package diff

import "strings"

// The words that stand for a node's own names in keys and titles of groups: what
// nodes have in common is the same change, though each has it under its own name.
const (
	nodeWord = "<node>"
	hostWord = "<host>"
)

// minHost is the shortest host name that is looked for: shorter ones are found by
// accident.
const minHost = 3

// names are a node's own names.
type names struct{ node, host string }

func namesOf(certname string) names {
	host, _, dotted := strings.Cut(certname, ".")
	if !dotted || len(host) < minHost {
		host = ""
	}
	return names{certname, host}
}

// TitleFor is a title as groups of changes have it: with words in place of a node's own names.
func TitleFor(certname, title string) string { return cutText(namesOf(certname).pattern(title), 500) }

// pattern is a text with words in place of the node's own names.
func (n names) pattern(text string) string {
	text = replaceWord(text, n.node, nodeWord)
	return replaceWord(text, n.host, hostWord)
}

// replaceWord replaces a word where it stands alone.
func replaceWord(text, word, by string) string {
	if word == "" || !strings.Contains(text, word) {
		return text
	}
	var b strings.Builder
	rest := text
	for {
		before, after, found := strings.Cut(rest, word)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		start := len(text) - len(rest) + len(before)
		if alone(text, start, start+len(word)) {
			b.WriteString(by)
		} else {
			b.WriteString(word)
		}
		rest = after
	}
}

// alone says whether text[from:to] is not part of a longer word.
func alone(text string, from, to int) bool {
	return (from == 0 || !inWord(text[from-1])) && (to == len(text) || !inWord(text[to]))
}

func inWord(c byte) bool {
	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}
