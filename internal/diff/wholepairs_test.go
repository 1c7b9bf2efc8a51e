package diff

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wholeNodes are all of the fixture, some with the same code and other facts.
var wholeNodes = []string{
	"apache", "mysql", "ntp", "haproxy", "postgresql", "rabbitmq", "small-servers", "apt", "firewall", "inifile", "concat", "vcsrepo", "stdlib",
	"hiera", "templates", "virtual", "rich", "defines", "types", "other", "pattern1", "pattern2", "pattern3", "pattern4",
}

// TestPairsOfWholeCatalogs compares each of these catalogs with each other one, as they came from the compiler: 552 pairs.
func TestPairsOfWholeCatalogs(t *testing.T) {
	t.Parallel()
	all, err := compileReal("../compiler/ruby/testdata/equality", wholeNodes)
	if err != nil {
		t.Fatalf("%v; the real compiler and Debian's modules are needed: make test-deps", err)
	}
	pairs, touched := 0, 0
	for _, a := range slices.Sorted(maps.Keys(all)) {
		for _, b := range slices.Sorted(maps.Keys(all)) {
			if a == b {
				continue
			}
			d := mustCompare(t, all[a], all[b])
			if diff := cmp.Diff(naiveDifference(t, all[a], all[b]), listed(d)); diff != "" {
				t.Errorf("%s and %s: a naive comparison (-) and ours (+):\n%.3000s", a, b, diff)
			}
			checkApplied(t, mustParse(t, all[a]), mustParse(t, all[b]), d)
			pairs++
			if slices.ContainsFunc(d.resources, func(r resourceChange) bool { return r.kind == changed }) {
				touched++
			}
		}
	}
	t.Logf("%d pairs, %d of them with resources that changed", pairs, touched)
	if pairs < 500 || touched < 40 {
		t.Errorf("%d pairs, %d of them with resources that changed: too few", pairs, touched)
	}
}
