package delivertest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func testHad(t *testing.T, b Backend) {
	t.Helper()
	c, n, err := b.Had(t.Context(), "web-1")
	check(t, err)
	same(t, "of a node that is not known", deliver.Catalog{}, c)
	same(t, "its resources", 0, n)
	b.Gave("web-1", CatalogOf("one"), 3)
	c, n, err = b.Had(t.Context(), "web-1")
	check(t, err)
	same(t, "catalog", CatalogOf("one"), c)
	same(t, "resources", 3, n)
}

// lossOf is a loss of what a node has.
func lossOf(node fleet.Certname, ruling deliver.Ruling, kept, text string) deliver.Loss {
	return deliver.Loss{Node: node, Ruling: ruling, Catalog: CatalogOf(text), Kept: CatalogOf(kept), Was: 38, Left: 1, At: epoch}
}

func listed(t *testing.T, b Backend, f deliver.LossFilter) []deliver.Loss {
	t.Helper()
	list, err := b.Losses(t.Context(), f)
	check(t, err)
	return list
}

// open is the open loss of a node; zero without one. Its ID is left out.
func open(t *testing.T, b Backend, node fleet.Certname) (l deliver.Loss) {
	t.Helper()
	list := listed(t, b, deliver.LossFilter{Nodes: []fleet.Certname{node}})
	if len(list) > 1 {
		t.Fatalf("%d open losses of %s", len(list), node)
	}
	for _, l = range list {
		l.ID = 0
	}
	return l
}

func testLosses(t *testing.T, b Backend) {
	t.Helper()
	kind(t, "of a node without a catalog", fault.Conflict, b.NoteLoss(t.Context(), lossOf("web-1", deliver.Hold, "one", "two")))
	for _, node := range []fleet.Certname{"web-2", "web-1"} {
		b.Gave(node, CatalogOf("one"), 38)
	}
	kind(t, "over another catalog", fault.Conflict, b.NoteLoss(t.Context(), lossOf("web-1", deliver.Hold, "zero", "two")))
	same(t, "nothing is stored", 0, len(listed(t, b, deliver.LossFilter{Past: true})))
	two := lossOf("web-1", deliver.Hold, "one", "two")
	check(t, b.NoteLoss(t.Context(), two))
	same(t, "as it was noted", two, open(t, b, "web-1"))
	three := lossOf("web-1", deliver.Hold, "one", "three")
	check(t, b.NoteLoss(t.Context(), three))
	same(t, "in the place of the other", three, open(t, b, "web-1"))
	check(t, b.NoteLoss(t.Context(), lossOf("web-2", deliver.Warn, "one", "two")))
	same(t, "a warning of what is not given", deliver.Loss{}, open(t, b, "web-2"))
	b.Gave("web-2", CatalogOf("two"), 1)
	same(t, "a warning of what is given", lossOf("web-2", deliver.Warn, "one", "two"), open(t, b, "web-2"))
	for what, c := range map[string]struct {
		f    deliver.LossFilter
		want int
	}{
		"all open":          {deliver.LossFilter{}, 2},
		"all":               {deliver.LossFilter{Past: true}, 3},
		"holds":             {deliver.LossFilter{Ruling: deliver.Hold}, 1},
		"an environment":    {deliver.LossFilter{Environment: "production"}, 2},
		"another one":       {deliver.LossFilter{Environment: "testing", Past: true}, 0},
		"a version":         {deliver.LossFilter{Version: CatalogOf("three").Version}, 1},
		"holds of a node":   {deliver.LossFilter{Ruling: deliver.Hold, Nodes: []fleet.Certname{"web-2", "web-9"}}, 0},
		"losses of a node":  {deliver.LossFilter{Nodes: []fleet.Certname{"web-2"}}, 1},
		"all of both nodes": {deliver.LossFilter{Nodes: []fleet.Certname{"web-2", "web-1"}, Past: true}, 3},
	} {
		same(t, what, c.want, len(listed(t, b, c.f)))
	}
	all := listed(t, b, deliver.LossFilter{Past: true})
	same(t, "by node, newest first", []deliver.Catalog{CatalogOf("three"), CatalogOf("two")}, []deliver.Catalog{all[0].Catalog, all[1].Catalog})
}

func testLossesEnd(t *testing.T, b Backend) {
	t.Helper()
	b.Gave("web-1", CatalogOf("one"), 38)
	for what, end := range map[string]func(){
		"another catalog": func() { b.Gave("web-1", grown("other"), 38) },
		"the held one":    func() { b.Gave("web-1", grown("two"), 0) },
		"what it has": func() {
			check(t, b.EndHold(t.Context(), "web-1", CatalogOf("else").Digest, epoch))
			if open(t, b, "web-1").Node == "" {
				t.Error("ended by a catalog that it does not keep")
			}
			had, _, err := b.Had(t.Context(), "web-1")
			check(t, err)
			check(t, b.EndHold(t.Context(), "web-1", had.Digest, epoch))
		},
		"released mode": func() { enter(t, b, "web-1", deliver.Released); enter(t, b, "web-1", deliver.Live) },
	} {
		had, _, err := b.Had(t.Context(), "web-1")
		check(t, err)
		l := deliver.Loss{Node: "web-1", Ruling: deliver.Hold, Catalog: CatalogOf("two"), Kept: had, Was: 38, At: epoch}
		check(t, b.NoteLoss(t.Context(), l))
		same(t, "held before "+what, l, open(t, b, "web-1"))
		end()
		same(t, "held after "+what, deliver.Loss{}, open(t, b, "web-1"))
		last := listed(t, b, deliver.LossFilter{Past: true})[0]
		if last.Ended.IsZero() || last.By != "" {
			t.Errorf("%s: ended %s by %q, want a time and nobody", what, last.Ended, last.By)
		}
		b.Gave("web-1", grown("one"), 38)
	}
}

var compilations atomic.Int64

// grown is a made-up catalog of a compilation that is newer than all before.
func grown(text string) deliver.Catalog {
	c := CatalogOf(text)
	c.Compilation = 1000 + compilations.Add(1)
	return c
}

func testLet(t *testing.T, b Backend) {
	t.Helper()
	confirmed := func(node fleet.Certname, text string) bool {
		ok, err := b.Confirmed(t.Context(), node, CatalogOf(text).Digest, CatalogOf(text).Version)
		check(t, err)
		return ok
	}
	for i := range 3 {
		node := fleet.Certname(fmt.Sprintf("web-%d", i))
		b.Gave(node, CatalogOf("one"), 38)
		check(t, b.NoteLoss(t.Context(), lossOf(node, deliver.Hold, "one", "two")))
	}
	_, err := b.Let(t.Context(), deliver.Let{Node: "web-9", At: epoch, By: "ann"})
	kind(t, "a node that has none held", fault.NotFound, err)
	_, err = b.Let(t.Context(), deliver.Let{Version: CatalogOf("nine").Version, At: epoch, By: "ann"})
	kind(t, "a version of which none is held", fault.NotFound, err)
	same(t, "nothing is confirmed yet", false, confirmed("web-0", "nine") || confirmed("web-0", "two"))

	let := epoch.Add(time.Hour)
	nodes, err := b.Let(t.Context(), deliver.Let{Node: "web-1", At: let, By: "ann"})
	check(t, err)
	same(t, "let go for a node", []fleet.Certname{"web-1"}, nodes)
	same(t, "it is not held", deliver.Loss{}, open(t, b, "web-1"))
	past := listed(t, b, deliver.LossFilter{Nodes: nodes, Past: true})[0]
	same(t, "who let it go, and when", []any{"ann", true}, []any{past.By, past.Ended.Equal(let)})
	same(t, "confirmed for this catalog of this node", []bool{true, false, false},
		[]bool{confirmed("web-1", "two"), confirmed("web-1", "three"), confirmed("web-2", "two")})

	nodes, err = b.Let(t.Context(), deliver.Let{Version: CatalogOf("two").Version, At: let, By: "bob"})
	check(t, err)
	same(t, "let go of a version", []fleet.Certname{"web-0", "web-2"}, nodes)
	same(t, "confirmed for all of the version", []bool{true, true, false},
		[]bool{confirmed("web-2", "two"), confirmed("web-8", "two"), confirmed("web-2", "three")})
	_, err = b.Let(t.Context(), deliver.Let{Version: CatalogOf("two").Version, At: let, By: "bob"})
	kind(t, "a second time", fault.NotFound, err)
}

func testPruneLosses(t *testing.T, b Backend) {
	t.Helper()
	b.Gave("web-1", CatalogOf("one"), 38)
	check(t, b.NoteLoss(t.Context(), lossOf("web-1", deliver.Hold, "one", "two")))
	_, err := b.Let(t.Context(), deliver.Let{Node: "web-1", At: epoch.Add(time.Hour), By: "ann"})
	check(t, err)
	check(t, b.NoteLoss(t.Context(), lossOf("web-1", deliver.Hold, "one", "three")))
	for _, c := range []struct {
		before time.Time
		pruned int
	}{{epoch.Add(time.Hour), 0}, {epoch.Add(2 * time.Hour), 1}, {epoch.Add(2 * time.Hour), 0}} {
		n, err := b.PruneLosses(t.Context(), c.before)
		check(t, err)
		same(t, "pruned", c.pruned, n)
	}
	same(t, "what is held stays", lossOf("web-1", deliver.Hold, "one", "three"), open(t, b, "web-1"))
}
