package compile_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// newHeldWorld is a reuse world whose node has the catalog of version one, and whose brake holds all of version two.
func newHeldWorld(t *testing.T) (w *reuseWorld, given compile.Compilation) {
	t.Helper()
	w = newReuseWorld(t)
	w.results.Queue, w.reuser.Results = nil, w.results
	w.service.Kept = func(context.Context, fleet.Certname) (compile.Compilation, error) {
		c, ok := w.results.Newest("a.example")
		if !ok {
			return c, errors.New("the node has nothing that it could keep")
		}
		c.State = compile.Done
		return c, nil
	}
	t.Cleanup(w.start(context.Background()))
	w.facts.Set("a.example", `{"os":"debian"}`)
	given, _ = w.get(t, version1, "1")
	w.diff.changes = compile.Changes{Files: map[string]bool{"read.pp": true}}
	w.facts.Set("a.example", `{"os":"emptied"}`) // so that the catalog is another one
	w.results.Brake(func(c compile.Compilation) bool { return c.Version == versionTwo })
	return w, given
}

// Who asks is given what the node has: when the new one is compiled, when it is there, and when it is compiled once more.
func TestWhoAsksIsGivenWhatTheNodeHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, given := newHeldWorld(t)
		for i, what := range []string{"compiled", "stored", "stored still"} {
			ask := w.ask("a.example", what)
			ask.Version = versionTwo
			answer, err := w.service.Catalog(t.Context(), ask)
			if err != nil {
				t.Fatal(err)
			}
			if c := answer.Compilation; !answer.Held || c.Catalog != given.Catalog || c.Version != version1 || c.UUID != given.UUID {
				t.Errorf("%s: given %+v (held %v), want what the node has: %+v", what, c, answer.Held, given)
			}
			if n := len(w.compiler.Orders()); n != 2 {
				t.Errorf("%s: %d compilations, want 2", what, n)
			}
			if n := w.service.Stats().Held; n != uint64(i)+1 {
				t.Errorf("%s: %d counted", what, n)
			}
		}
		if c, err := w.queue.Reusables.Newest(t.Context(), "a.example", production); err != nil || c.ID != given.ID {
			t.Errorf("the newest that can be used again is %d (%v), want %d", c.ID, err, given.ID)
		}
		if saved := w.results.Saved(); len(saved) != 1 {
			t.Errorf("%d catalogs became the newest, want one", len(saved))
		}
		w.results.Brake(nil)
		c, n := w.get(t, versionTwo, "let go")
		if c.Version != versionTwo || c.Catalog == given.Catalog || n != 2 {
			t.Errorf("let go: given %+v after %d compilations, want the held one and no other compilation", c, n)
		}
	})
}

// A row that is wanted ahead ends with what is stored: it is held like one that was compiled.
func TestWhatIsWantedAheadIsHeldToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := newHeldWorld(t)
		for i := range 2 {
			c, err := w.queue.Want(t.Context(), compile.Want{
				Node: "a.example", Environment: production, Version: versionTwo, FactsSeq: w.facts.Seq("a.example"), Priority: compile.NewCode, At: time.Now(),
			})
			if err != nil {
				t.Fatal(err)
			}
			w.dispatcher.Wake()
			synctest.Wait()
			if row := w.row(t, c.ID); row.State != compile.Done || !row.Staged {
				t.Errorf("round %d: the row is %+v, want it done and staged", i, row)
			}
		}
		if n := len(w.compiler.Orders()); n != 2 {
			t.Errorf("%d compilations, want 2", n)
		}
	})
}

// If nobody can say whether a stored catalog is held, it is: the node keeps what it has.
func TestABrakeThatDoesNotAnswerHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, given := newHeldWorld(t)
		w.get(t, versionTwo, "2")
		w.results.Brake(nil)
		w.results.Fail(errors.New("the disk is full"))
		ask := w.ask("a.example", "3")
		ask.Version = versionTwo
		if answer, err := w.service.Catalog(t.Context(), ask); err != nil || answer.Compilation.Catalog != given.Catalog {
			t.Errorf("given %+v (%v), want what the node has", answer.Compilation, err)
		}
	})
}

// What is held comes to rest: nothing is compiled again and again. Let go, it is given without being compiled. Code under which what the nodes
// have is right is given without being compiled, too.
func TestHoldsComeToRest(t *testing.T) {
	t.Parallel()
	inFleet(t, tree{"roles/web.pp": "1", "roles/db.pp": "1"}, webAndDB, func(t *testing.T, w *fleetWorld) {
		t.Helper()
		had := w.newestOf("a")
		w.brake(true)
		w.deploy(tree{"roles/web.pp": "2"})
		w.settle()
		if n := w.counted(); n != 2 || w.newestOf("a") != had {
			t.Errorf("%d compilations, then a has %q; want 2, and %q", n, w.newestOf("a"), had)
		}
		status, err := w.wanter.Status(t.Context(), production, w.code.digest())
		if err != nil || status.Held != 2 || status.Current != 3 || status.Unknown != 0 {
			t.Errorf("status %+v, %v; want two held", status, err)
		}
		if want := []fleet.Certname{"a", "b", "c", "d", "e"}; !slices.Equal(status.Of, want) {
			t.Errorf("of the version are the catalogs of %v, want %v", status.Of, want)
		}
		rows := len(w.queue.All())
		w.set("a", map[string]string{"role": "web", "addr": "1", "noise": "2"})
		w.deploy(tree{"README": "2"})
		w.settle()
		if n := len(w.queue.All()); w.counted() != 0 || n != rows {
			t.Errorf("%d rows, want still %d: what is held stands", n, rows)
		}
		w.brake(false)
		for _, node := range []fleet.Certname{"a", "b"} { // as who lets it go notes it
			w.queue.SetHeld(node, false)
			w.queue.Note(compile.LateFinish, node)
		}
		w.wanter.Hint()
		w.expect(t, "let go", 0)
		w.brake(true)
		w.deploy(tree{"roles/web.pp": "3"})
		w.settle()
		w.counted()
		w.deploy(tree{"roles/web.pp": "2"})
		w.expect(t, "taken back", 0)
	})
}
