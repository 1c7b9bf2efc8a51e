package rbacapi

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The page has a row with both other columns for each route, and for nothing else.
func TestThePageHasEveryRoute(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/enterprise-api-compatibility.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var served, listed []string
	for pattern := range (&Handler{service: &service{}}).table() {
		served = append(served, strings.Replace(pattern, " ", " "+v1, 1))
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ "+regexp.QuoteMeta(v1)+"[^`]*)` \\| [^|]+ \\| [^|]+ \\|$").FindAllSubmatch(text, -1) {
		listed = append(listed, string(row[1]))
	}
	slices.Sort(served)
	slices.Sort(listed)
	if diff := cmp.Diff(served, listed); diff != "" {
		t.Errorf("%s (-served +listed):\n%s", page, diff)
	}
}
