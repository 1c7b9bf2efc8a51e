package ruby

import (
	"os"
	"regexp"
	"testing"
)

// moreModules are compiled beside the stock compiler, as Debian packs them, each on a node of its own that testdata/modules names after
// it: the list is the nodes there.
func moreModules(t *testing.T) (names []string) {
	t.Helper()
	site, err := os.ReadFile("testdata/modules/manifests/site.pp")
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range regexp.MustCompile(`(?m)^node /\^(\w+)\\\.`).FindAllSubmatch(site, -1) {
		names = append(names, string(node[1]))
	}
	if len(names) < 25 {
		t.Fatalf("testdata/modules has %d nodes, want 25", len(names))
	}
	return names
}

func TestModulesEqualTheStockCompilers(t *testing.T) {
	t.Parallel()
	names := moreModules(t)
	for _, name := range names {
		if _, err := os.Stat(debianModules + "/" + name); err != nil {
			t.Fatalf("no Puppet module %s here: make test-deps", name)
		}
	}
	checkEqual(t, "modules", names)
}
