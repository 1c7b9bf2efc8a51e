package server

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/tutti-project/tutti/internal/classify"
)

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// groupChange replaces before, if there is such a group, by after.
func groupChange(before *classify.Group, after classify.Group) classify.Change {
	if before == nil {
		return classify.Change{Kind: classify.Create, Group: after}
	}
	return classify.Change{Kind: classify.Update, Group: after}
}

// number reads an environment variable.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// After each of many random changes every node's catalog is what a compilation of
// everything from scratch gives, whether it was compiled or used again. TUTTI_SEED
// and TUTTI_CHANGES choose others: `make soak` makes 200.
func TestReusedCatalogsEqualFreshOnes(t *testing.T) {
	t.Parallel()
	seed, changes := number(t, "TUTTI_SEED", 1), number(t, "TUTTI_CHANGES", 25)
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	w := newReuseWorld(t)
	if !w.check("the start") {
		return
	}
	for node, catalog := range w.current() {
		if catalog == "failed" {
			t.Fatalf("%s does not compile", node)
		}
	}
	same := 0
	for n := range changes {
		what := w.change(r, n)
		t.Logf("change %d: %s", n, what)
		before := w.compiled - w.p.reuser.Stats().Reused
		if !w.check(what) {
			t.Fatalf("seed %d, change %d: %s", seed, n, what)
		}
		if w.compiled-w.p.reuser.Stats().Reused == before {
			same++
		}
	}
	stats := w.p.reuser.Stats()
	t.Logf("seed %d: %d changes, %d catalogs finished, %d of them used again (%d for another version)", seed, changes, w.compiled, stats.Reused, stats.Restated)
}
