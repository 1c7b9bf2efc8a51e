package delivertest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Backend is a store and the world around it.
type Backend struct {
	deliver.Store
	Gave func(node fleet.Certname, c deliver.Catalog, resources int) // makes a catalog with so many resources the newest of a node
	Ran  func(node fleet.Certname, uuid string, at time.Time)        // makes a node say that it applied one
}

var epoch = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// CatalogOf is a made-up catalog.
func CatalogOf(text string) deliver.Catalog {
	return deliver.Catalog{
		Digest: fleet.DigestOf([]byte(text)), Environment: "production", Version: fleet.DigestOf([]byte("code of " + text)),
		UUID: "uuid-of-" + text, Compilation: int64(len(text)), CompiledAt: epoch,
	}
}

// RunStore holds the store that open returns to the port's contract. open is called
// once a test; it returns a new store and cleans up after itself.
func RunStore(t *testing.T, open func(t *testing.T) Backend) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Backend){
		"modes":                 testModes,
		"a node that is new":    testNew,
		"steps":                 testSteps,
		"a step from elsewhere": testStale,
		"steps at once":         testRace,
		"generations":           testGenerations,
		"retention":             testRetention,
		"pins":                  testPins,
		"promotion":             testPromotion,
		"what a node applied":   testApplied,
		"heads in environments": testHeads,
		"what nodes may have":   testHeld,
		"what nodes had":        testHad,
		"losses":                testLosses,
		"losses end":            testLossesEnd,
		"letting go":            testLet,
		"losses are forgotten":  testPruneLosses,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func testModes(t *testing.T, b Backend) {
	t.Helper()
	sets := []deliver.ModeSet{
		{Group: "g-1", Mode: deliver.Live, At: epoch, By: "ann"},
		{Group: "g-2", Mode: deliver.Released, At: epoch, By: "ann"},
		{Node: "db-1", Mode: deliver.Released, At: epoch, By: "bob"},
		{Node: "web-1", Mode: deliver.Live, At: epoch, By: "bob"},
	}
	for i := range sets {
		check(t, b.SetMode(t.Context(), sets[len(sets)-1-i]))
	}
	got, err := b.ModesSet(t.Context())
	check(t, err)
	same(t, "what is set", sets, got)
	groups, nodes, err := b.Modes(t.Context())
	check(t, err)
	same(t, "modes of groups", []deliver.GroupMode{{Group: "g-1", Mode: deliver.Live}, {Group: "g-2", Mode: deliver.Released}}, groups)
	same(t, "nodes with a mode", 2, nodes)
	same(t, "own mode", deliver.Live, standing(t, b, "web-1").Own)

	sets[3].Mode, sets[3].By = deliver.Released, "eve"
	check(t, b.SetMode(t.Context(), sets[3]))
	check(t, b.SetMode(t.Context(), deliver.ModeSet{Group: "g-1"}))
	check(t, b.SetMode(t.Context(), deliver.ModeSet{Node: "db-1"}))
	check(t, b.SetMode(t.Context(), deliver.ModeSet{Node: "nobody"}))
	got, err = b.ModesSet(t.Context())
	check(t, err)
	same(t, "what is set after changes", []deliver.ModeSet{sets[1], sets[3]}, got)
	same(t, "own mode that is gone", deliver.Mode(""), standing(t, b, "db-1").Own)
}

func testNew(t *testing.T, b Backend) {
	t.Helper()
	same(t, "of a node that is not known", deliver.Standing{Node: "web-1", Force: deliver.Live}, standing(t, b, "web-1"))
	c := CatalogOf("one")
	b.Gave("web-1", c, 1)
	got := standing(t, b, "web-1")
	if got.Newest == nil {
		t.Fatal("its newest catalog is not there")
	}
	same(t, "newest catalog", c, *got.Newest)
	list, err := b.Generations(t.Context(), "web-1")
	check(t, err)
	same(t, "generations", 0, len(list))
}

func testSteps(t *testing.T, b Backend) {
	t.Helper()
	s := enter(t, b, "web-1", deliver.Released)
	same(t, "without a catalog", deliver.Standing{Node: "web-1", Force: deliver.Released}, s)
	first := release(t, b, "web-1", "one")
	second := release(t, b, "web-1", "two")
	same(t, "numbers", []int64{1, 2}, []int64{first.Number, second.Number})
	same(t, "head", second, *standing(t, b, "web-1").Head)
	s = enter(t, b, "web-1", deliver.Live)
	same(t, "mode", deliver.Live, s.Force)
	same(t, "head in live mode", second, *s.Head)
	b.Gave("web-1", CatalogOf("three"), 1)
	s = enter(t, b, "web-1", deliver.Released)
	same(t, "what it comes in with", int64(3), s.Head.Number)
	same(t, "its catalog", CatalogOf("three"), s.Head.Catalog)
}

func testStale(t *testing.T, b Backend) {
	t.Helper()
	enter(t, b, "web-1", deliver.Released)
	release(t, b, "web-1", "one")
	before := standing(t, b, "web-1")
	for name, step := range map[string]deliver.Step{
		"an older base": {Node: "web-1", From: deliver.Released, To: deliver.Released, Base: 0, Next: &deliver.Generation{Catalog: CatalogOf("x")}},
		"a newer base":  {Node: "web-1", From: deliver.Released, To: deliver.Released, Base: 2, Next: &deliver.Generation{Catalog: CatalogOf("x")}},
		"another mode":  {Node: "web-1", From: deliver.Live, To: deliver.Released, Base: 1},
		"of a new node": {Node: "web-2", From: deliver.Released, To: deliver.Live},
	} {
		kind(t, name, fault.Conflict, b.Take(t.Context(), step))
	}
	same(t, "what is stored", before, standing(t, b, "web-1"))
	same(t, "of the other node", deliver.Live, standing(t, b, "web-2").Force)
}

func testRace(t *testing.T, b Backend) {
	t.Helper()
	enter(t, b, "web-1", deliver.Released)
	var won sync.Map
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			step := deliver.Step{Node: "web-1", From: deliver.Released, To: deliver.Released, Next: &deliver.Generation{
				Node: "web-1", Number: 1, Catalog: CatalogOf(fmt.Sprint(i)), At: epoch,
			}}
			switch err := b.Take(t.Context(), step); {
			case err == nil:
				won.Store(i, true)
			case fault.Of(err) != fault.Conflict:
				t.Errorf("step %d: %v", i, err)
			}
		})
	}
	all.Wait()
	winners := 0
	won.Range(func(key, _ any) bool {
		winners++
		same(t, "the winner's catalog", CatalogOf(fmt.Sprint(key)), standing(t, b, "web-1").Head.Catalog)
		return true
	})
	same(t, "winners", 1, winners)
}

func testGenerations(t *testing.T, b Backend) {
	t.Helper()
	enter(t, b, "web-1", deliver.Released)
	enter(t, b, "web-2", deliver.Released)
	one, two, three := release(t, b, "web-1", "one"), release(t, b, "web-1", "two"), release(t, b, "web-1", "one")
	release(t, b, "web-2", "other")
	list, err := b.Generations(t.Context(), "web-1")
	check(t, err)
	same(t, "newest first", []deliver.Generation{three, two, one}, list)
	for text, want := range map[string]bool{"one": true, "two": true, "other": false} {
		got, err := b.Keeps(t.Context(), "web-1", CatalogOf(text).Digest)
		check(t, err)
		same(t, "keeps "+text, want, got)
	}
	digests, err := b.GenerationCatalogs(t.Context())
	check(t, err)
	want := []fleet.Digest{CatalogOf("one").Digest, CatalogOf("two").Digest, CatalogOf("other").Digest}
	same(t, "catalogs", slices.Sorted(slices.Values(want)), digests)
}

func testRetention(t *testing.T, b Backend) {
	t.Helper()
	enter(t, b, "web-1", deliver.Released)
	enter(t, b, "web-2", deliver.Released)
	for i := range 5 {
		release(t, b, "web-1", fmt.Sprint(i))
	}
	release(t, b, "web-2", "only")
	for _, c := range []struct{ keep, pruned, left int }{{3, 2, 3}, {3, 0, 3}, {0, 2, 1}} {
		n, err := b.PruneGenerations(t.Context(), c.keep)
		check(t, err)
		same(t, "pruned", c.pruned, n)
		list, err := b.Generations(t.Context(), "web-1")
		check(t, err)
		same(t, "left", c.left, len(list))
		same(t, "the newest", int64(5), list[0].Number)
	}
	same(t, "the next number", int64(6), release(t, b, "web-1", "next").Number)
	same(t, "the other node's", CatalogOf("only"), standing(t, b, "web-2").Head.Catalog)
}

func testPins(t *testing.T, b Backend) {
	t.Helper()
	pin := deliver.Pin{At: epoch, By: "ann", Why: "waits for a fix"}
	kind(t, "pin of a live node", fault.Conflict, b.SetPin(t.Context(), "web-1", pin))
	check(t, b.SetPin(t.Context(), "web-1", deliver.Pin{}))
	enter(t, b, "web-1", deliver.Released)
	kind(t, "pin to nothing", fault.Conflict, b.SetPin(t.Context(), "web-1", pin))
	release(t, b, "web-1", "one")
	check(t, b.SetPin(t.Context(), "web-1", pin))
	same(t, "pin", pin, standing(t, b, "web-1").Pin)
	check(t, b.SetPin(t.Context(), "web-1", deliver.Pin{}))
	same(t, "no pin", deliver.Pin{}, standing(t, b, "web-1").Pin)
	check(t, b.SetPin(t.Context(), "web-1", pin))
	same(t, "pin in live mode", deliver.Pin{}, enter(t, b, "web-1", deliver.Live).Pin)
}

func testPromotion(t *testing.T, b Backend) {
	t.Helper()
	for _, node := range []fleet.Certname{"web-2", "web-1", "web-3"} {
		enter(t, b, node, deliver.Released)
		release(t, b, node, "one of "+string(node))
	}
	second := release(t, b, "web-1", "two")
	check(t, b.Promoted(t.Context(), "web-1", 1)) // comes late
	check(t, b.Promoted(t.Context(), "web-2", 1))
	check(t, b.Promoted(t.Context(), "web-2", 7))
	check(t, b.Promoted(t.Context(), "nobody", 1))
	for after, want := range map[fleet.Certname]int{"web-0": 1, "web-1": 1, "web-3": 0} {
		rest, err := b.Unpromoted(t.Context(), after, 1)
		check(t, err)
		same(t, "not promoted after "+string(after), want, len(rest))
	}
	enter(t, b, "web-3", deliver.Live)
	rest, err := b.Unpromoted(t.Context(), "", 10)
	check(t, err)
	same(t, "not promoted", []deliver.Generation{second}, rest)
	check(t, b.Promoted(t.Context(), "web-1", 2))
	rest, err = b.Unpromoted(t.Context(), "", 10)
	check(t, err)
	same(t, "all promoted", 0, len(rest))
	same(t, "that it is", true, standing(t, b, "web-1").Head.Promoted)
}

func testApplied(t *testing.T, b Backend) {
	t.Helper()
	applied := func() deliver.Applied {
		a, err := b.Applied(t.Context(), "web-1")
		check(t, err)
		return a
	}
	same(t, "nothing said", deliver.Applied{}, applied())
	c := CatalogOf("one")
	b.Gave("web-1", c, 1)
	b.Ran("web-1", c.UUID, epoch)
	same(t, "the newest", deliver.Applied{UUID: c.UUID, Catalog: c.Digest, At: epoch}, applied())
	b.Ran("web-1", "uuid-of-a-stranger", epoch.Add(time.Hour))
	same(t, "a stranger's", deliver.Applied{UUID: "uuid-of-a-stranger", At: epoch.Add(time.Hour)}, applied())
	enter(t, b, "web-1", deliver.Released)
	two := release(t, b, "web-1", "two")
	b.Ran("web-1", two.UUID, epoch.Add(2*time.Hour))
	same(t, "a generation", deliver.Applied{UUID: two.UUID, Catalog: two.Digest, Generation: two.Number, At: epoch.Add(2 * time.Hour)}, applied())
}

func testHeads(t *testing.T, b Backend) {
	t.Helper()
	for _, node := range []fleet.Certname{"web-1", "web-2", "web-3"} {
		enter(t, b, node, deliver.Released)
		release(t, b, node, "one")
	}
	enter(t, b, "web-3", deliver.Live)
	for env, want := range map[fleet.Environment]int{"production": 2, "testing": 0} {
		n, err := b.HeadsIn(t.Context(), env)
		check(t, err)
		same(t, "heads in "+string(env), want, n)
	}
}

// testHeld: in released mode it is what was released, however new a catalog was compiled since; in live mode the newest one.
func testHeld(t *testing.T, b Backend) {
	t.Helper()
	one, two := CatalogOf("one"), CatalogOf("two")
	for _, node := range []fleet.Certname{"web-3", "web-2", "web-1", "web-4"} {
		b.Gave(node, two, 1)
	}
	for _, node := range []fleet.Certname{"web-2", "web-3"} {
		enter(t, b, node, deliver.Released)
		release(t, b, node, "one")
	}
	enter(t, b, "web-3", deliver.Live)
	enter(t, b, "web-4", deliver.Released)
	got, err := b.HeldIn(t.Context(), "production")
	check(t, err)
	want := []deliver.Held{{Node: "web-1", Version: two.Version}, {Node: "web-2", Version: one.Version, Released: true}, {Node: "web-3", Version: two.Version}}
	if head := standing(t, b, "web-4").Head; head != nil { // who enters keeps what it has
		want = append(want, deliver.Held{Node: "web-4", Version: head.Version, Released: true})
	}
	same(t, "what nodes may have", want, got)
	got, err = b.HeldIn(t.Context(), "testing")
	check(t, err)
	same(t, "in another environment", 0, len(got))
}

func standing(t *testing.T, b Backend, node fleet.Certname) deliver.Standing {
	t.Helper()
	s, err := b.Standing(t.Context(), node)
	check(t, err)
	return s
}

func enter(t *testing.T, b Backend, node fleet.Certname, mode deliver.Mode) deliver.Standing {
	t.Helper()
	if step := deliver.Enter(standing(t, b, node), mode, epoch, "tutti"); step != nil {
		check(t, b.Take(t.Context(), *step))
	}
	return standing(t, b, node)
}

func release(t *testing.T, b Backend, node fleet.Certname, text string) deliver.Generation {
	t.Helper()
	step, err := deliver.Advance(standing(t, b, node), deliver.Order{Catalog: CatalogOf(text), Release: 7, By: "ann", Why: "it is time"}, epoch)
	check(t, err)
	check(t, b.Take(t.Context(), *step))
	return *standing(t, b, node).Head
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kind(t *testing.T, what string, want fault.Kind, err error) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Errorf("%s: got %v, want a fault of kind %s", what, err, want)
	}
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
