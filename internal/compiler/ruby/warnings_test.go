package ruby

import (
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/compile"
)

// Puppet says a deprecation once in a process. A worker compiles for many nodes, and the zygote before it has learned from one: each
// catalog's log has it nevertheless.
func TestEveryCatalogHasItsDeprecations(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"manifests/site.pp": "notify { hiera('nothing', 'x'): }\n"})
	pool := running(t, Config{Workers: 1, NoJIT: true}, directories{version("old"): root})
	taught := order(t, "production", "old", "taught.example.org")
	if err := pool.Warm(t.Context(), "production", version("old"), []compile.Order{taught}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		out, err := pool.Compile(t.Context(), order(t, "production", "old", "n.example.org"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(out.Logs, func(l compile.Log) bool { return strings.Contains(l.Message, "'hiera' is deprecated") }) {
			t.Errorf("the log is %+v", out.Logs)
		}
	}
}
