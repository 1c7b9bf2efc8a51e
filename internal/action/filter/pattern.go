package filter

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/tutti-project/tutti/internal/fleet"
)

// pattern is a name, or a regular expression between slashes.
type pattern struct {
	text string
	re   *regexp.Regexp // nil: it is a name
}

// parsePattern reads NAME or /RE/.
func parsePattern(text string) (pattern, *mistake) {
	if !strings.HasPrefix(text, "/") {
		return pattern{text: text}, nil
	}
	if len(text) < 2 || !strings.HasSuffix(text, "/") {
		return pattern{}, &mistake{at: characters(text), detail: "a regular expression ends with /", hint: "write it like /^web/"}
	}
	re, wrong := parseRegexp(text[1 : len(text)-1])
	if wrong != nil {
		wrong.at++
		return pattern{}, wrong
	}
	return pattern{text, re}, nil
}

// parseRegexp reads a regular expression without its slashes.
func parseRegexp(text string) (*regexp.Regexp, *mistake) {
	if text == "" {
		return nil, &mistake{at: 1, detail: "the regular expression is empty, it would be found everywhere"}
	}
	re, err := regexp.Compile(text)
	if err == nil {
		return re, nil
	}
	m := &mistake{at: 1, detail: "the regular expression cannot be read", hint: "regular expressions are those of RE2: no look-around, no references back"}
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		m.detail += ": " + e.Code.String()
		if i := strings.Index(text, e.Expr); i >= 0 && e.Expr != "" {
			m.at = characters(text[:i]) + 1
			m.detail += " " + shorten(e.Expr)
		}
	}
	return nil, m
}

func (p pattern) matches(name string) bool {
	if p.re != nil {
		return p.re.MatchString(name)
	}
	return p.text == name
}

// parseName reads the name of a node, or a regular expression of names.
func parseName(text string) (pattern, *mistake) {
	p, wrong := parsePattern(text)
	if wrong != nil || p.re != nil {
		return p, wrong
	}
	if _, err := fleet.ParseCertname(text); err != nil {
		return p, &mistake{at: 1, detail: err.Error(), hint: examples["names"]}
	}
	return p, nil
}

// parseClass reads the name of a class, in any case, or a regular expression of names.
func parseClass(text string) (pattern, *mistake) {
	p, wrong := parsePattern(text)
	if wrong != nil || p.re != nil {
		return p, wrong
	}
	if at := strings.IndexFunc(text, notIn(":_-.")); at >= 0 {
		return p, &mistake{at: characters(text[:at]) + 1, detail: shorten(text[at:]) + " cannot be in the name of a class", hint: examples["classes"]}
	}
	p.text = className(text)
	if p.text == "" {
		return p, &mistake{at: 1, detail: "the name of a class is expected", hint: examples["classes"]}
	}
	return p, nil
}

// className is a class as classes.txt has it: in small letters, from the top.
func className(name string) string { return strings.ToLower(strings.TrimPrefix(name, "::")) }

// parseModule reads the name of a module, or a regular expression of names.
func parseModule(text string) (pattern, *mistake) {
	p, wrong := parsePattern(text)
	if wrong != nil || p.re != nil {
		return p, wrong
	}
	if at := strings.IndexFunc(text, notIn("_-.")); at >= 0 {
		return p, &mistake{at: characters(text[:at]) + 1, detail: shorten(text[at:]) + " cannot be in the name of a module", hint: examples["modules"]}
	}
	return p, nil
}

// notIn are all characters but letters, digits, and those that are named.
func notIn(others string) func(rune) bool {
	return func(c rune) bool {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		return !letter && !strings.ContainsRune(others, c)
	}
}
