package ruby

import (
	"encoding/json"
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

// Code that Puppet has nothing to say of gives no warnings: nor does the order in which a server hands its facts over.
func TestGoodCodeGivesNoWarnings(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"manifests/site.pp": "notify { \"${server_facts['environment']} ${environment} ${serverversion}\": }\n"})
	pool := running(t, Config{Workers: 1, NoJIT: true}, directories{version("good"): root})
	o := order(t, "production", "good", "n.example.org")
	o.ServerFacts = json.RawMessage(`{"environment":"production","serverversion":"1.2.3"}`)
	out, err := pool.Compile(t.Context(), o)
	if err != nil || !strings.Contains(string(out.Catalog), "production production 1.2.3") {
		t.Fatalf("%s, %v", out.Catalog, err)
	}
	if warnings := compile.Warnings(out.Logs); len(warnings) > 0 {
		t.Errorf("it warns of %+v", warnings)
	}
}
