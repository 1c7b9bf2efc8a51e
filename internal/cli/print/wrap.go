package print

import (
	"strings"
	"unicode/utf8"
)

// Wrapped is text whose paragraphs are filled anew to lines of at most width characters; 0: it stays as it is. Lines
// that are indented, as lists are, keep their beginnings and go on below them where they are too long. Commands, which are indented and begin
// with tutti, stay whole: people copy them.
func Wrapped(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out strings.Builder
	var words []string
	flush := func() {
		fill(&out, words, 0, "", width)
		words = nil
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		trimmed := strings.TrimLeft(line, " \t")
		indent := line[:len(line)-len(trimmed)]
		switch {
		case trimmed == "":
			flush()
			out.WriteString("\n")
		case indent != "" || strings.HasPrefix(trimmed, "- "):
			flush()
			if utf8.RuneCountInString(line) <= width || strings.HasPrefix(trimmed, "tutti ") {
				out.WriteString(line + "\n")
				continue
			}
			out.WriteString(indent)
			fill(&out, strings.Fields(trimmed), utf8.RuneCountInString(indent), indent+"    ", width)
		default:
			words = append(words, strings.Fields(trimmed)...)
		}
	}
	flush()
	return out.String()
}

// fill writes words as lines of at most width characters. The first line has used characters already, the others begin
// with indent. A word that is longer than a line stands alone.
func fill(out *strings.Builder, words []string, used int, indent string, width int) {
	for i, word := range words {
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+length > width:
			out.WriteString("\n" + indent)
			used = utf8.RuneCountInString(indent)
		default:
			out.WriteString(" ")
			used++
		}
		out.WriteString(word)
		used += length
	}
	if len(words) > 0 {
		out.WriteString("\n")
	}
}
