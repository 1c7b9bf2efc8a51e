package pql

import (
	"errors"
	"regexp"
	"regexp/syntax"
)

// maxPattern is how long a regular expression may be.
const maxPattern = 4096

// Regexp compiles a regular expression as queries mean it: unanchored, `.` also
// matches a line's end, ^ and $ are the ends of the whole text. What PostgreSQL
// has beyond RE2 (back references, look-around) is refused, so that every
// database gives the same answer.
func Regexp(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, errors.New("a regular expression has at most 4096 bytes")
	}
	re, err := regexp.Compile("(?s)" + pattern)
	if err != nil {
		if e, ok := errors.AsType[*syntax.Error](err); ok {
			err = errors.New(e.Code.String())
		}
		return nil, explainRegexp(pattern, err)
	}
	return re, nil
}

// Syntax is the pattern's syntax tree, simplified; the pattern compiles.
func Syntax(pattern string) (*syntax.Regexp, error) {
	tree, err := syntax.Parse("(?s)"+pattern, syntax.Perl)
	if err != nil {
		return nil, explainRegexp(pattern, err)
	}
	return tree.Simplify(), nil
}
