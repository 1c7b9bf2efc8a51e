package print

import (
	"strings"
	"unicode/utf8"
)

// Wrapped is text whose paragraphs are filled anew to lines of at most width characters; 0: it stays as it is. Lines
// that are indented, as commands and lists are, keep their beginnings and go on below them where they are too long.
func Wrapped(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out strings.Builder
	var words []string
	flush := func() {
		fill(&out, words, "", width)
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
			if utf8.RuneCountInString(line) <= width {
				out.WriteString(line + "\n")
				continue
			}
			out.WriteString(indent)
			fill(&out, strings.Fields(trimmed), indent+"    ", width-utf8.RuneCountInString(indent))
		default:
			words = append(words, strings.Fields(trimmed)...)
		}
	}
	flush()
	return out.String()
}

// fill writes words as lines of at most width characters; all but the first begin with indent.
func fill(out *strings.Builder, words []string, indent string, width int) {
	used := 0
	for i, word := range words {
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+length > width:
			out.WriteString("\n" + indent)
			used = min(utf8.RuneCountInString(indent), width/2)
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
