package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tutti-project/tutti/internal/fault"
)

// parameterName is how parameters are named in Puppet code. A node sends them: nothing else gets into a manifest.
var parameterName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// manifest is a resource as Puppet code: ensure first, then by name. What cannot stand in code is said in a comment: secrets, and contents of which only a
// checksum is known.
func manifest(kind, title string, parameters json.RawMessage) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(parameters))
	decoder.UseNumber()
	var values map[string]any
	if err := decoder.Decode(&values); err != nil {
		return "", fault.Wrap(fault.Internal, err, "parameters of %s[%.80s]", kind, title)
	}
	kind = strings.ToLower(kind)
	names := slices.Sorted(maps.Keys(values))
	if i := slices.Index(names, "ensure"); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, "ensure")
	}
	widest := 0
	var comments []string
	var kept []string
	for _, name := range names {
		switch why := notInCode(kind, name, values[name]); why {
		case "":
			kept, widest = append(kept, name), max(widest, len(name))
		case unsettable:
		default:
			comments = append(comments, fmt.Sprintf("  # %s: %s\n", strings.Trim(strconv.QuoteToASCII(name), `"`), why))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s { %s:\n", kind, inPuppetQuotes(title))
	for _, name := range kept {
		fmt.Fprintf(&b, "  %-*s => %s,\n", widest, name, puppetValue(values[name]))
	}
	for _, comment := range comments {
		b.WriteString(comment)
	}
	b.WriteString("}\n")
	return b.String(), nil
}

// unsettable is why what a file has by itself is in no code, and in no comment.
const unsettable = "unsettable"

// notInCode says why a parameter is left out; empty: it is not.
func notInCode(kind, name string, value any) string {
	text, _ := value.(string)
	switch {
	case kind == "file" && slices.Contains([]string{"ctime", "mtime", "type"}, name), value == nil:
		return unsettable
	case !parameterName.MatchString(name):
		return "no name of a parameter"
	case kind == "file" && name == "content" && isChecksum.MatchString(text):
		return "only the checksum is known: " + text
	case withheld(value):
		return "secret, the node does not show it"
	}
	return ""
}

// isChecksum fits a content of which a node tells the checksum.
var isChecksum = regexp.MustCompile(`^\{[a-z0-9]+\}[0-9A-Za-z :+-]*$`)

// withheld says whether a value, or a part of it, was not shown by the node.
func withheld(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.EqualFold(v, "[redacted]")
	case []any:
		return slices.ContainsFunc(v, withheld)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), withheld)
	}
	return false
}

// puppetValue is a value in Puppet's language.
func puppetValue(value any) string {
	switch v := value.(type) {
	case nil:
		return "undef"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return puppetNumber(v.String())
	case []any:
		parts := make([]string, len(v))
		for i, part := range v {
			parts[i] = puppetValue(part)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, inPuppetQuotes(key)+" => "+puppetValue(v[key]))
		}
		if len(parts) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return inPuppetQuotes(value.(string))
}

// puppetNumber is a number of JSON in Puppet's spelling: no plus in an exponent. One that Puppet's integers cannot hold is a text.
func puppetNumber(text string) string {
	if strings.ContainsAny(text, ".eE") {
		return strings.NewReplacer("e+", "e", "E+", "e").Replace(text)
	}
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return inPuppetQuotes(text)
	}
	return text
}

// inPuppetQuotes is a text in quotes: single ones, in which nothing but \ and ' means anything; double ones where characters have to be escaped to be seen.
func inPuppetQuotes(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case strings.ContainsRune(`"\$`, r):
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u{%X}`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
