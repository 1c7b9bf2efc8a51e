package server

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

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
	seed, changes := number(t, "TUTTI_SEED", 1), number(t, "TUTTI_CHANGES", 8)
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
	begin := time.Now()
	for n := range changes {
		what := w.change(r, n)
		t.Logf("change %d, at %.0f s: %s", n, time.Since(begin).Seconds(), what)
		if !w.check(what) {
			t.Fatalf("seed %d, change %d: %s", seed, n, what)
		}
	}
	stats := w.p.reuser.Stats()
	if stats.Reused < uint64(changes) || stats.Restated == 0 {
		t.Errorf("only %d catalogs were used again, %d of them for another version: this test compared nothing", stats.Reused, stats.Restated)
	}
	if changes >= 20 && w.failed > w.asked/4 {
		t.Errorf("for %d of %d questions there was no catalog: broken code proves little", w.failed, w.asked)
	}
	t.Logf("seed %d: %d changes in %.0f s, %d compilations, %d catalogs used again (%d for another version), in %d of %d cases there was none (code that was broken)",
		seed, changes, time.Since(begin).Seconds(), w.compiled, stats.Reused, stats.Restated, w.failed, w.asked)
}
