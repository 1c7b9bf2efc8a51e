package server

import (
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const (
	fourNotifies = "notify { ['one', 'two', 'three', 'four']: }\n"
	oneNotify    = "notify { 'one': }\n"
	nothing      = "$unused = $facts['role']\n"
)

// held is the hold of a node; the test fails unless it has one exactly if that is wanted.
func (w *deliverWorld) held(what string, node fleet.Certname, want bool) (l deliver.Loss) {
	w.Helper()
	open, err := w.p.deliver.Losses(w.Context(), deliver.LossFilter{Nodes: []fleet.Certname{node}, Ruling: deliver.Hold})
	w.must(err)
	if (len(open) == 1) != want {
		w.Errorf("%s: %d catalogs of %s are held: %+v", what, len(open), node, open)
	}
	if len(open) > 0 {
		l = open[0]
	}
	return l
}

// compiled counts what was compiled, and not used again.
func (w *deliverWorld) compiled() (n int) {
	w.Helper()
	rows, err := w.p.store.Queue.List(w.Context(), compile.Filter{Limit: 1000})
	w.must(err)
	for _, row := range rows {
		if row.Cost.Wall > 0 {
			n++
		}
	}
	return n
}

// A site manifest is emptied by mistake: a stock agent is given what its node has, again and again, and nothing is compiled for that.
// What the node then says of files it has, too. The manifest is mended: the hold is over by itself.
func TestACatalogThatLostAllIsHeldFromAStockAgent(t *testing.T) {
	t.Parallel()
	w := newDeliverWorld(t)
	first := w.deploy(fourNotifies)
	before := w.gives("a first catalog", heldNode, "Notify")
	w.held("a first catalog", heldNode, false)
	emptied := w.deploy(nothing)
	after := w.gives("what lost all", heldNode, "four")
	if after.CodeID != string(first) || after.Environment != "production" || string(after.Document) != string(before.Document) {
		t.Errorf("given %+v, want what it had: %+v", after, before)
	}
	hold := w.held("what lost all", heldNode, true)
	if hold.Was != 4 || hold.Left != 0 || hold.Catalog.Version != emptied || hold.Kept.Version != first {
		t.Errorf("the hold is %+v", hold)
	}
	n := w.compiled()
	w.gives("asked again", heldNode, "four")
	if again := w.held("asked again", heldNode, true); again.ID != hold.ID {
		t.Errorf("asked again, another hold was noted: %+v", again)
	}
	if more := w.compiled(); more != n || n != 2 {
		t.Errorf("%d compilations, then %d; want 2", n, more)
	}
	release, ok, err := w.p.checkin.HeldAt(t.Context(), heldNode)
	if err != nil || !ok || release.Version != first {
		t.Errorf("its files are of %+v (%v, %v), want of %s", release, ok, err, first)
	}
	mended := w.deploy(fourNotifies + "notify { 'five': }\n")
	if got := w.gives("mended", heldNode, "five"); got.CodeID != string(mended) {
		t.Errorf("given version %s, want the mended one", got.CodeID)
	}
	w.held("mended", heldNode, false)
	w.deploy(nothing)
	w.gives("emptied once more", heldNode, "five")
	w.held("emptied once more", heldNode, true)
	w.deploy(fourNotifies + "notify { 'five': }\n")
	w.gives("taken back", heldNode, "five")
	w.held("taken back", heldNode, false)
}

// Nobody asks: what is compiled ahead is held too, the pointer of tutti agent stays, nobody is told, and compiling comes to rest.
// Let go, it is given by itself.
func TestACatalogThatLostAllIsHeldAhead(t *testing.T) {
	t.Parallel()
	w := newDeliverWorld(t)
	heard := w.ahead()
	const other fleet.Certname = "db-1.example"
	w.facts(other, "db")
	w.deploy(fourNotifies)
	for _, node := range []fleet.Certname{heldNode, other} {
		w.gives("at first", node, "four")
	}
	pointer, err := w.p.deliver.Pointer(t.Context(), heldNode)
	w.must(err)
	emptied := w.deploy(nothing)
	w.until("both are held", func() bool {
		open, err := w.p.deliver.Losses(t.Context(), deliver.LossFilter{Ruling: deliver.Hold, Version: emptied})
		w.must(err)
		return len(open) == 2
	})
	w.settled()
	got, err := w.p.deliver.Pointer(t.Context(), heldNode)
	if got.FactsRead = pointer.FactsRead; err != nil || got != pointer { // facts that what is held read matter, too
		t.Errorf("the pointer is %+v (%v), want %+v", got, err, pointer)
	}
	if may, err := w.p.deliver.MayHave(t.Context(), heldNode, w.held("ahead", heldNode, true).Catalog.Digest); may || err != nil {
		t.Errorf("the node may fetch what is held: %v", err)
	}
	for len(heard) > 0 {
		if h := <-heard; h.pointer.Version == emptied {
			t.Errorf("%s was told of what is held", h.node)
		}
	}
	if _, err := w.p.deliver.LetGo(t.Context(), deliver.Let{Node: "nobody", By: "ann"}); fault.Of(err) != fault.NotFound {
		t.Errorf("let go of what nobody has: %v", err)
	}
	nodes, err := w.p.deliver.LetGo(t.Context(), deliver.Let{Node: heldNode, By: "ann"})
	if err != nil || len(nodes) != 1 {
		t.Fatalf("let go of %v: %v", nodes, err)
	}
	if h := w.told(heard, emptied); h.node != heldNode {
		t.Errorf("told %s, want %s", h.node, heldNode)
	}
	w.settled()
	w.held("let go", heldNode, false)
	w.held("of another node", other, true)
	if got := w.gives("let go", heldNode, "resources"); got.CodeID != string(emptied) {
		t.Errorf("given version %s, want what was let go", got.CodeID)
	}
	if _, err := w.p.deliver.LetGo(t.Context(), deliver.Let{Version: emptied, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if h := w.told(heard, emptied); h.node != other {
		t.Errorf("told %s, want %s", h.node, other)
	}
}

// until waits for a condition.
func (w *deliverWorld) until(what string, ok func() bool) {
	w.Helper()
	for begun := time.Now(); !ok(); {
		if time.Since(begun) > 10*time.Minute {
			w.Fatalf("it never came that %s", what)
		}
		select {
		case <-w.Context().Done():
			w.Fatal("the test was ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// settled waits until nothing is wanted, and nothing that changed is left to be looked at: a hold must not be compiled over and over.
func (w *deliverWorld) settled() {
	w.Helper()
	w.until("nothing is to be done", func() bool {
		changes, err := w.p.store.Wants.NotedChanges(w.Context(), 10)
		w.must(err)
		wanted, leased, _, err := w.p.store.Queue.Depth(w.Context(), time.Now())
		w.must(err)
		return len(changes) == 0 && wanted+leased == 0
	})
}

// The node moves to an environment that gives it nothing: it keeps the catalog of the one that it came from, and its files. An agent that
// names that environment is given the catalog and not sent on.
func TestAHoldOverAnEnvironment(t *testing.T) {
	t.Parallel()
	w := newDeliverWorld(t)
	w.deploy(fourNotifies)
	w.gives("at first", heldNode, "four")
	moved := checkin.Visit{
		Request: checkin.Request{Node: heldNode, Requested: "testing", Stays: true, Static: true},
		Place:   checkin.Place{Environment: "testing"}, Trusted: []byte(`{}`),
	}
	w.deployTo("testing", map[string]string{"manifests/site.pp": nothing})
	answer, err := w.p.checkin.Catalog(t.Context(), moved)
	if err != nil || answer.Environment != "production" {
		t.Errorf("given a catalog of %s (%v), want the one that it has", answer.Environment, err)
	}
	hold := w.held("moved", heldNode, true)
	if hold.Catalog.Environment != "testing" || hold.Kept.Environment != "production" {
		t.Errorf("the hold is %+v", hold)
	}
}

// One that lost most is given, with a warning that stays as long as the catalog; settings decide what is too much.
func TestWarningsAndSettings(t *testing.T) {
	t.Parallel()
	w := newDeliverWorld(t)
	w.deploy(fourNotifies)
	w.gives("at first", heldNode, "four")
	version := w.deploy(oneNotify)
	if got := w.gives("what lost most", heldNode, "one"); got.CodeID != string(version) {
		t.Errorf("given version %s, want the newest", got.CodeID)
	}
	warned := func() int {
		open, err := w.p.deliver.Losses(t.Context(), deliver.LossFilter{Ruling: deliver.Warn})
		w.must(err)
		return len(open)
	}
	if warned() != 1 || w.p.deliver.Warned() != 1 {
		t.Errorf("%d warnings are open, %d counted; want one", warned(), w.p.deliver.Warned())
	}
	w.deploy(oneNotify + "# only a comment\n")
	w.gives("the same catalog of other code", heldNode, "one")
	if warned() != 1 {
		t.Error("the warning is gone though the node has that catalog still")
	}
	w.deploy(fourNotifies)
	w.gives("mended", heldNode, "four")
	if warned() != 0 {
		t.Error("the warning stays though the node has another catalog")
	}
	c := *w.p.config.Load()
	c.CatalogHoldBelow = "30%"
	w.p.config.Store(&c)
	w.deploy(oneNotify + "$other = 1\n")
	w.gives("a quarter", heldNode, "four")
	if l := w.held("a quarter", heldNode, true); l.Left != 1 {
		t.Errorf("the hold is %+v", l)
	}
	off := c
	off.CatalogHoldBelow, off.CatalogWarnBelow = "off", "off"
	w.p.config.Store(&off)
	w.gives("the brake is off", heldNode, "one")
	w.held("the brake is off", heldNode, false)
	w.deploy(nothing)
	if _, text := w.asks(heldNode); len(text) == 0 || warned() != 0 {
		t.Error("a warning though it is off")
	}
}

// Released mode is not braked: what somebody reviewed is given. Back in live mode the brake is there again.
func TestTheBrakeAndReleasedMode(t *testing.T) {
	t.Parallel()
	w := newDeliverWorld(t)
	w.deploy(fourNotifies)
	w.gives("at first", heldNode, "four")
	emptied := w.deploy(nothing)
	w.gives("emptied", heldNode, "four")
	w.held("emptied", heldNode, true)
	w.mode(deliver.ModeSet{Node: heldNode, Mode: deliver.Released, By: "ann"})
	w.held("in released mode", heldNode, false)
	w.gives("in released mode", heldNode, "four")
	w.mode(deliver.ModeSet{Node: heldNode, By: "ann"})
	w.gives("live again", heldNode, "four")
	w.held("live again", heldNode, true)
	w.mode(deliver.ModeSet{Node: heldNode, Mode: deliver.Released, By: "ann"})
	staged := w.stage(emptied, "t-1")
	if outcome := w.release(staged); outcome.Generation == 0 {
		t.Fatalf("the release is %+v", outcome)
	}
	if got := w.gives("released", heldNode, "resources"); got.CodeID != string(emptied) {
		t.Errorf("given version %s, want what was released", got.CodeID)
	}
}
