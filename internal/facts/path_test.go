package facts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/facts"
)

func TestPathsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) any { return strings.ReplaceAll(s, "\x00", "") }), // facts have no such character
			rapid.Map(rapid.Int64Range(0, 1000), func(n int64) any { return n })), 1, 5).Draw(r, "steps")
		if _, ok := steps[0].(int64); ok {
			steps[0] = "name"
		}
		text := facts.PathText(steps...)
		if diff := cmp.Diff(steps, facts.PathSteps(text)); diff != "" {
			r.Errorf("%q (-want +got):\n%s", text, diff)
		}
	})
}
