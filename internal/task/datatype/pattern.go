package datatype

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// patternTime is how long one match may take: expressions that are allowed to
// look around can be made to run for ages.
const patternTime = time.Second

// maxPattern is how long a regular expression may be.
const maxPattern = 4096

// compilePattern compiles a regular expression as Ruby means it: ^ and $ are ends
// of lines, (?m) lets the dot match a line's end.
func compilePattern(source string) (*regexp2.Regexp, error) {
	if len(source) > maxPattern {
		return nil, fmt.Errorf("a regular expression has at most %d bytes", maxPattern)
	}
	re, err := regexp2.Compile(translate(source), regexp2.Multiline)
	if err != nil {
		return nil, fmt.Errorf("the regular expression is wrong or has what is not supported here: %w", err)
	}
	re.MatchTimeout = patternTime
	return re, nil
}

// translate writes Ruby's own words in those of the library.
func translate(source string) string {
	source = options.ReplaceAllStringFunc(source, func(group string) string {
		return strings.ReplaceAll(group, "m", "s")
	})
	var out strings.Builder
	bracket := 0
	for i := 0; i < len(source); i++ {
		c := source[i]
		switch {
		case c == '\\' && i+1 < len(source):
			i++
			out.WriteString(escape(source[i], bracket > 0))
			continue
		case c == '[' && bracket > 0:
			if name, ok := class(source[i:]); ok {
				out.WriteString(classes[name])
				i += len(name) + len("[::]") - 1
				continue
			}
			out.WriteString(`\[`)
			continue
		case c == '[':
			bracket++
		case c == ']' && bracket > 0:
			bracket--
		}
		out.WriteByte(c)
	}
	return out.String()
}

// options is the beginning of a group that sets options, such as (?mi-x:
var options = regexp.MustCompile(`\(\?[mix]*(-[mix]+)?[:)]`)

func escape(c byte, inBracket bool) string {
	switch {
	case c == 'h' && inBracket:
		return "0-9a-fA-F"
	case c == 'h':
		return "[0-9a-fA-F]"
	case c == 'H' && !inBracket:
		return "[^0-9a-fA-F]"
	case c == 'R' && !inBracket:
		return `(?:\r\n|[\n-\r])`
	default:
		return `\` + string(c)
	}
}

// classes are POSIX's names, as they may stand within brackets.
var classes = map[string]string{
	"alpha": `\p{L}\p{M}`, "digit": `\d`, "alnum": `\p{L}\p{M}\p{N}`, "upper": `\p{Lu}`, "lower": `\p{Ll}`, "space": `\s`, "word": `\w`,
	"xdigit": "0-9a-fA-F", "blank": ` \t`, "cntrl": `\p{Cc}`, "punct": `\p{P}\p{S}`, "print": `\P{C}`, "graph": `\p{L}\p{M}\p{N}\p{P}\p{S}`,
}

// class reads [:name:] at the beginning of text.
func class(text string) (string, bool) {
	name, _, ok := strings.Cut(strings.TrimPrefix(text, "[:"), ":]")
	if !ok || !strings.HasPrefix(text, "[:") {
		return "", false
	}
	_, known := classes[name]
	return name, known
}
