package fleet_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fleet"
)

func TestGlobFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		glob, text string
		fits       bool
	}{
		{"", "anything", true},
		{"/etc/motd", "/etc/motd", true},
		{"/etc/motd", "/etc/motd2", false},
		{"/etc/*", "/etc/a/b", true},
		{"*", "", true},
		{"*.conf", "/etc/a.conf", true},
		{"a*a", "a", false},
		{"*b*", "abc", true},
		{"a?c", "abc", false},
	} {
		if got := fleet.Glob(c.glob).Fits(c.text); got != c.fits {
			t.Errorf("%q fits %q: %v", c.glob, c.text, got)
		}
	}
}

// TestGlobIsItsRegexp compares with a regular expression that says the same.
func TestGlobIsItsRegexp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		glob := rapid.StringMatching(`[ab.*]{1,8}`).Draw(t, "glob")
		text := rapid.StringMatching(`[ab.]{0,10}`).Draw(t, "text")
		same := regexp.MustCompile(`^` + strings.ReplaceAll(regexp.QuoteMeta(glob), `\*`, `.*`) + `$`)
		if got, want := fleet.Glob(glob).Fits(text), same.MatchString(text); got != want {
			t.Errorf("%q fits %q: %v, want %v", glob, text, got, want)
		}
		if text != "" && !fleet.Numberless(text+"17").Fits(text+"4") {
			t.Errorf("numbers matter in %q", text)
		}
	})
}
