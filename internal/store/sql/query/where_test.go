package query

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What matches begins with the beginning, and lies before what is behind it.
func TestMatchesHaveTheBeginningOfTheirPattern(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"^user2[0-9]$": "user2", `^node-0001`: "node-0001", "^a$": "a", "^ab*": "a", "^é": "é", `^10\.0\.`: "10.0.",
		"user": "", "(?i)^user": "", "^(a|b)c": "", "^a|b": "", "^": "", "": "", "[": "", "^\U0010ffff": "", "^.a": "", "^a*": "", "(?m)^a": "",
	} {
		if first, _ := beginning(pattern); first != want {
			t.Errorf("all that matches %q begins with %q, not %q", pattern, first, want)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		pattern := rapid.StringMatching(`\^[ab.é]{1,3}(\*|\+|\?|\||\$|[ab])?[ab]{0,2}`).Draw(r, "pattern")
		first, after := beginning(pattern)
		text := rapid.StringMatching(`[abé]{0,5}`).Draw(r, "text")
		if first == "" || !regexp.MustCompile(pattern).MatchString(text) {
			return
		}
		if !strings.HasPrefix(text, first) || text < first || text >= after {
			r.Errorf("%q matches %q and is not between %q and %q", text, pattern, first, after)
		}
	})
}
