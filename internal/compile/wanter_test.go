package compile_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// inFleet runs a test in a world of nodes that is settled.
func inFleet(t *testing.T, code tree, roles map[fleet.Certname]string, test func(t *testing.T, w *fleetWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newFleetWorld(t)
		w.deploy(code)
		for node, role := range roles {
			w.set(node, map[string]string{"role": role, "addr": "1", "noise": "1"})
		}
		stop := w.start(t.Context())
		defer func() { stop() }()
		w.settle()
		if wrong := w.stale(); len(wrong) > 0 {
			t.Fatalf("before the test: %q", wrong)
		}
		w.counted()
		test(t, w)
		if len(w.needless) > 0 {
			t.Errorf("compiled needlessly: %q", w.needless)
		}
	})
}

// expect settles and looks whether that many were compiled, and all are current.
func (w *fleetWorld) expect(t *testing.T, what string, compilations int) {
	t.Helper()
	w.settle()
	if n := w.counted(); n != compilations {
		t.Errorf("%s: %d compilations, want %d", what, n, compilations)
	}
	if wrong := w.stale(); len(wrong) > 0 {
		t.Errorf("%s: %q", what, wrong)
	}
}

var webAndDB = map[fleet.Certname]string{"a": "web", "b": "web", "c": "db", "d": "db", "e": "db"}

func TestADeployCompilesWhatItTouches(t *testing.T) {
	t.Parallel()
	inFleet(t, tree{"roles/web.pp": "1", "roles/db.pp": "1"}, webAndDB, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		w.deploy(tree{"roles/web.pp": "2"})
		w.expect(t, "what two nodes read", 2)
		w.deploy(tree{"README": "2"})
		w.expect(t, "what nobody reads", 0)
		w.deploy(tree{"site.pp": "2"})
		w.expect(t, "what all read", 5)
		marks, err := w.queue.Wants.Marks(t.Context())
		if err != nil || len(marks) != 2 || !marks[1].Done || marks[1].Nodes != 5 || marks[1].Touched != 5 || marks[1].Upto != "e" {
			t.Errorf("marks %+v, %v", marks, err)
		}
		for _, c := range w.queue.All() {
			if c.Priority != compile.NewCode && c.Priority != compile.NewFacts {
				t.Errorf("row %+v", c)
			}
		}
	})
}

func TestADeployOverAnotherIsOneCompilation(t *testing.T) {
	t.Parallel()
	inFleet(t, tree{"roles/web.pp": "1"}, webAndDB, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		w.pause(t)
		w.deploy(tree{"roles/web.pp": "2"})
		w.settle()
		w.deploy(tree{"roles/web.pp": "3"})
		w.settle()
		w.resume(t)
		w.expect(t, "two deploys while nothing compiles", 2)
		w.pause(t)
		w.deploy(tree{"roles/web.pp": "4"})
		w.settle()
		w.deploy(tree{"roles/web.pp": "3"})
		w.settle()
		w.resume(t)
		w.expect(t, "a deploy that was taken back", 0)
	})
}

func TestFactsMoveWhoReadsThem(t *testing.T) {
	t.Parallel()
	inFleet(t, tree{"roles/web.pp": "fact os"}, webAndDB, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		w.set("a", map[string]string{"role": "web", "noise": "2"})
		w.expect(t, "a fact that nobody reads", 0)
		w.set("a", map[string]string{"role": "web", "os": "debian"})
		w.expect(t, "a fact that came and was looked for", 1)
		w.set("c", map[string]string{"role": "db", "os": "debian"})
		w.expect(t, "the same of a node that does not look for it", 0)
		w.set("c", map[string]string{"role": "web", "os": "debian"})
		w.expect(t, "the role", 1)
		w.set("new", map[string]string{"role": "web"})
		w.expect(t, "a node's first facts", 1)
	})
}

func TestFactsChangeWhileTheyAreCompiled(t *testing.T) {
	t.Parallel()
	inFleet(t, tree{"roles/web.pp": "fact os"}, webAndDB, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		w.set("c", map[string]string{"role": "web", "os": "1"}) // the new role reads what the old one did not
		<-time.After(150 * time.Millisecond)
		w.set("c", map[string]string{"role": "web", "os": "2"})
		w.expect(t, "two changes, the second while the first compiles", 2)
	})
}

// A node that comes for the first time is signed, sends facts and asks, all at once: one compilation is enough.
func TestWhatIsCompiledAlreadyIsNotWantedForTheSameFacts(t *testing.T) {
	t.Parallel()
	inFleet(t, tree{"roles/web.pp": "1"}, nil, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		w.ahead.Store(false)
		w.set("a", map[string]string{"role": "web"})
		w.settle()
		w.ahead.Store(true)
		w.slower.Store(int64(5 * time.Second)) // as where the compiler has just been started
		if _, err := w.queue.Want(t.Context(), compile.Want{
			Node: "a", Environment: production, Version: w.code.digest(), FactsSeq: 1, Transaction: "1", Priority: compile.Waited, At: time.Now(),
		}); err != nil {
			t.Fatal(err)
		}
		w.dispatcher.Wake()
		<-time.After(time.Millisecond)
		w.queue.Note(compile.NewlySigned, "a")
		w.queue.Note(compile.FactsChanged, "a")
		w.wanter.Hint()
		w.expect(t, "while it is compiled for who asks", 1)
	})
}

func TestGroupsMoveWhomTheyGiveSomethingElse(t *testing.T) {
	t.Parallel()
	inFleet(t, tree{}, webAndDB, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		w.group("a", "ntp")
		w.expect(t, "one node", 1)
		w.group("a", "ntp")
		w.expect(t, "nothing but the revision", 0)
		w.group("b", "ntp")
		w.group("a", "")
		w.expect(t, "two nodes", 2)
	})
}

func TestExportsMoveWhoCollectsThem(t *testing.T) {
	t.Parallel()
	roles := map[fleet.Certname]string{"a": "out", "b": "out", "c": "in", "d": "in", "e": "db"}
	inFleet(t, tree{"roles/out.pp": "export", "roles/in.pp": "collect"}, roles, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		w.set("a", map[string]string{"role": "out", "addr": "2"})
		w.expect(t, "another address", 3)
		w.set("b", map[string]string{"role": "db"})
		w.expect(t, "one exports nothing any more", 3)
		w.following.Store(false)
		w.set("a", map[string]string{"role": "out", "addr": "3"})
		w.settle()
		if n := w.counted(); n != 1 {
			t.Errorf("%d compilations although exports are not followed", n)
		}
	})
}

func TestExportsThatSettle(t *testing.T) {
	t.Parallel()
	roles := map[fleet.Certname]string{"a": "out", "b": "both"}
	// Both export and collect; what they export does not come from what they collect.
	inFleet(t, tree{"roles/out.pp": "export collect", "roles/both.pp": "export collect"}, roles, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		w.set("a", map[string]string{"role": "out", "addr": "2"})
		w.expect(t, "another address", 2)
		if s := w.wanter.Stats(); s.Stopped != 0 {
			t.Errorf("stats %+v", s)
		}
		if chains, err := w.queue.Wants.Chains(t.Context()); err != nil || len(chains) != 0 {
			t.Errorf("chains of what settled: %+v, %v", chains, err)
		}
	})
}

func TestExportsThatNeverSettleAreStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFleetWorld(t)
		var log bytes.Buffer
		w.reopen(t, &log)
		w.deploy(tree{"roles/loop.pp": "chase", "roles/db.pp": "1"})
		for node, role := range map[fleet.Certname]string{"a": "loop", "b": "loop", "c": "db"} {
			w.set(node, map[string]string{"role": role})
		}
		stop := w.start(t.Context())
		w.settle()
		n := w.counted()
		w.settle()
		again := w.counted()
		stop()
		if n < 10 || n > 40 || again > 4 {
			t.Errorf("%d compilations, then %d: want a bounded number, then rest", n, again)
		}
		if s := w.wanter.Stats(); s.Stopped == 0 || s.Stopped > 2 {
			t.Errorf("stats %+v", s)
		}
		chains, err := w.queue.Wants.Chains(t.Context())
		if err != nil || len(chains) == 0 || chains[0].Because == "" || chains[0].StoppedAt.IsZero() {
			t.Errorf("chains %+v, %v", chains, err)
		}
		if !strings.Contains(log.String(), "catalogs do not settle") {
			t.Errorf("log %q", log.String())
		}
		stop = w.start(t.Context())
		w.deploy(tree{"roles/loop.pp": "collect"}) // another cause, and it settles
		w.settle()
		stop()
		if wrong := w.stale(); len(wrong) > 0 {
			t.Errorf("after the code is mended: %q", wrong)
		}
	})
}

func TestSigningWantsAFirstCatalog(t *testing.T) {
	t.Parallel()
	inFleet(t, tree{}, nil, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		w.queue.SetHome("a", production)
		w.queue.Note(compile.NewlySigned, "a")
		w.expect(t, "a node without facts", 0)
		w.ahead.Store(false)
		w.set("a", map[string]string{"role": "web"})
		w.settle()
		if rows := w.queue.All(); len(rows) != 0 {
			t.Errorf("rows with compiling ahead off: %+v", rows)
		}
		w.ahead.Store(true)
		w.queue.Note(compile.NewlySigned, "a")
		w.settle()
		rows := w.queue.All()
		if len(rows) != 1 || rows[0].Priority != compile.Signed || rows[0].State != compile.Done {
			t.Errorf("rows %+v", rows)
		}
	})
}

func TestAManifestErrorLeavesTheLastGoodCatalog(t *testing.T) {
	t.Parallel()
	inFleet(t, tree{"roles/web.pp": "1", "roles/db.pp": "1"}, webAndDB, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		good := w.newest["a"]
		w.deploy(tree{"roles/web.pp": "broken"})
		w.settle()
		if w.newest["a"] != good || w.counted() != 2 {
			t.Errorf("the newest catalog is %q, was %q", w.newest["a"], good)
		}
		status, err := w.wanter.Status(t.Context(), production, w.code.digest())
		if err != nil || status.Nodes != 5 || status.Current != 3 || status.Failed != 2 || len(status.Errors) != 1 ||
			status.Errors[0].Nodes != 2 || status.Errors[0].File != "roles/web.pp" || status.Errors[0].Message != "broken for NODE, forever on node NODE" {
			t.Errorf("status %+v, %v", status, err)
		}
		w.deploy(tree{"README": "x"})
		w.settle()
		if n := w.counted(); n != 2 {
			t.Errorf("%d compilations in a version that may mend it, want 2", n)
		}
		w.deploy(tree{"roles/web.pp": "1"})
		w.settle()
		w.expect(t, "mended", 0)
		status, err = w.wanter.Status(t.Context(), production, w.code.digest())
		if err != nil || status.Current != 5 || status.Failed != 0 {
			t.Errorf("status %+v, %v", status, err)
		}
	})
}

// footprintsRead counts how much is read of what compilations read.
type footprintsRead struct {
	compile.Readings
	footprints int
}

func (r *footprintsRead) Footprints(ctx context.Context, inputs []int64) (map[int64]compile.Footprint, error) {
	r.footprints += len(inputs)
	return r.Readings.Footprints(ctx, inputs)
}

func TestStatusReadsOnlyWhatIsToBeCompared(t *testing.T) {
	t.Parallel()
	inFleet(t, tree{"roles/web.pp": "1", "roles/db.pp": "1"}, webAndDB, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		store := &footprintsRead{Readings: w.wanter.Readings}
		parts := w.wanter.WanterParts
		parts.Readings = store
		wanter, err := compile.NewWanter(parts, compile.DefaultWanter())
		if err != nil {
			t.Fatal(err)
		}
		current := w.code.digest()
		if status, err := wanter.Status(t.Context(), production, current); err != nil || status.Current != 5 || store.footprints != 0 {
			t.Errorf("%+v, %d footprints were read, %v; all five stand", status, store.footprints, err)
		}
		w.pause(t)
		w.deploy(tree{"roles/web.pp": "2"})
		if status, err := wanter.Status(t.Context(), production, w.code.digest()); err != nil || status.Current != 3 || len(status.Untried) != 2 ||
			store.footprints != 5 {
			t.Errorf("%+v, %d footprints were read, %v; two are touched, and all five compared", status, store.footprints, err)
		}
	})
}

func TestReleasedNodesAreStaged(t *testing.T) {
	t.Parallel()
	inFleet(t, tree{"roles/web.pp": "1"}, webAndDB, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		w.released["a"] = true
		before := w.newest["a"]
		w.deploy(tree{"roles/web.pp": "2"})
		w.settle()
		if n := w.counted(); n != 2 || w.newest["a"] != before || w.newest["b"] == before {
			t.Errorf("%d compilations; a has %q, b %q", n, w.newest["a"], w.newest["b"])
		}
		w.deploy(tree{"README": "2"})
		w.expect(t, "nothing touched", 0)
		found, ok := w.reuser.Find(t.Context(), compile.Wish{Node: "a", Environment: production, Version: w.code.digest()})
		if !ok || found.Staged || w.newest["a"] == before || w.counted() != 0 {
			t.Errorf("promoted %+v, %v; newest %q", found, ok, w.newest["a"])
		}
	})
}

func TestOldCatalogsAreRefreshed(t *testing.T) {
	t.Parallel()
	inFleet(t, tree{}, webAndDB, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		w.refresh.Store(int64(time.Hour))
		w.settle()
		if n := w.counted(); n != 0 {
			t.Errorf("%d compilations of young catalogs", n)
		}
		<-time.After(time.Hour)
		if n := w.counted(); n != 5 {
			t.Errorf("%d compilations of old catalogs, want 5", n)
		}
		if s := w.reuser.Stats(); s.Checked != 5 || s.Wrong != 0 {
			t.Errorf("stats %+v", s)
		}
		w.needless = nil // that is what it is for
	})
}

// TestEveryNodeGetsWhatAFreshCompilationGives: whatever changes in whatever order, also
// over crashes of the wanter, once all is quiet every newest catalog is what a fresh
// compilation gives, and none was compiled of what it was compiled of before.
func TestEveryNodeGetsWhatAFreshCompilationGives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		type act struct {
			what, node, value string
			quiet             time.Duration
		}
		acts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) act {
			return act{
				what:  rapid.SampledFrom([]string{"role", "os", "addr", "noise", "deploy", "deploy", "site", "break", "group", "crash", "busy"}).Draw(t, "what"),
				node:  rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "node"),
				value: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value"),
				quiet: time.Duration(rapid.SampledFrom([]int{0, 0, 50, 120, 500, 10000}).Draw(t, "quiet")) * time.Millisecond,
			}
		}), 1, 30).Draw(rt, "acts")
		var wrong []string
		busy := false
		synctest.Test(t, func(t *testing.T) {
			w := newFleetWorld(t)
			w.deploy(tree{"roles/web.pp": "fact os", "roles/db.pp": "export", "roles/lb.pp": "collect"})
			facts := map[fleet.Certname]map[string]string{}
			for i, node := range []fleet.Certname{"a", "b", "c", "d", "e"} {
				facts[node] = map[string]string{"role": []string{"web", "db", "lb"}[i%3], "os": "1", "addr": "1", "noise": "1"}
				w.set(node, facts[node])
			}
			stop := w.start(t.Context())
			for _, a := range acts {
				node := fleet.Certname(a.node)
				switch a.what {
				case "role":
					facts[node]["role"] = map[string]string{"1": "web", "2": "lb"}[a.value]
					w.set(node, facts[node])
				case "os", "addr", "noise":
					facts[node][a.what] = a.value
					w.set(node, facts[node])
				case "deploy":
					w.deploy(tree{"roles/web.pp": map[string]string{"1": "fact os", "2": "fact os collect"}[a.value]})
				case "site":
					w.deploy(tree{"site.pp": a.value})
				case "break":
					w.deploy(tree{"roles/db.pp": map[string]string{"1": "broken", "2": "export 2"}[a.value]})
				case "group":
					w.group(node, map[string]string{"1": "", "2": "ntp"}[a.value])
				case "crash":
					stop()
					w.reopen(t, nil)
					stop = w.start(t.Context())
				case "busy":
					busy = true
					w.queue.Fail(fmt.Errorf("busy"))
					<-time.After(time.Second)
					w.queue.Fail(nil)
				}
				<-time.After(a.quiet)
			}
			w.deploy(tree{"roles/db.pp": "export"})
			w.settle()
			wrong = w.stale()
			if !busy { // who cannot judge compiles
				wrong = append(wrong, w.needless...)
			}
			stop()
		})
		if len(wrong) > 0 {
			rt.Fatalf("%q", wrong)
		}
	})
}
