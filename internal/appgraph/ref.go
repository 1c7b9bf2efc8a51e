package appgraph

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fault"
)

// MaxRefBytes bounds a reference.
const MaxRefBytes = 500

// Ref names an application, a component or a capability: Type[title].
type Ref struct {
	Type  string // each part begins with a capital letter
	Title string
}

// String is the form that ParseRef reads.
func (r Ref) String() string { return r.Type + "[" + r.Title + "]" }

// Compare orders references by type, then title.
func (r Ref) Compare(other Ref) int {
	if c := strings.Compare(r.Type, other.Type); c != 0 {
		return c
	}
	return strings.Compare(r.Title, other.Title)
}

// ParseRef reads Type[title]; the title may stand in quotes. Invalid says what is wrong.
func ParseRef(text string) (Ref, error) {
	kind, rest, found := strings.Cut(text, "[")
	title, closed := strings.CutSuffix(rest, "]")
	switch {
	case len(text) > MaxRefBytes:
		return Ref{}, fault.New(fault.Invalid, "a reference has at most %d bytes, this one has %d", MaxRefBytes, len(text))
	case !found || !closed:
		return Ref{}, fault.New(fault.Invalid, "%q is no reference: write Type[title], such as Shop[eu]", text)
	}
	title = unquoted(title)
	name, ok := typeName(kind)
	if !ok || !isTitle(title) {
		return Ref{},
			fault.New(fault.Invalid, "%q is no reference: its type is words of letters, digits and _, separated by ::, and its title is a line of text without brackets",
				text)
	}
	return Ref{name, title}, nil
}

// unquoted is a title without the quotes around it.
func unquoted(title string) string {
	for _, quote := range []string{"'", `"`} {
		if inner, opens := strings.CutPrefix(title, quote); opens {
			if inner, closes := strings.CutSuffix(inner, quote); closes {
				return inner
			}
		}
	}
	return title
}

// typeName is a type as Puppet writes it in references.
func typeName(kind string) (string, bool) {
	parts := strings.Split(kind, "::")
	for i, part := range parts {
		if part == "" || !isLetter(part[0]) {
			return "", false
		}
		for _, c := range []byte(part) {
			if !isLetter(c) && c != '_' && (c < '0' || c > '9') {
				return "", false
			}
		}
		parts[i] = strings.ToUpper(part[:1]) + part[1:]
	}
	return strings.Join(parts, "::"), true
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isTitle(title string) bool {
	return title != "" && utf8.ValidString(title) && strings.TrimSpace(title) == title && !strings.ContainsAny(title, "[]'\"") &&
		!strings.ContainsFunc(title, func(r rune) bool { return unicode.IsControl(r) })
}
