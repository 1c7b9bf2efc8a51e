package compile_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// stage wants a catalog of node ahead of time.
func (w *world) stage(t fataler, node fleet.Certname, version fleet.Digest) compile.Compilation {
	t.Helper()
	c, err := w.queue.Want(context.Background(), compile.Want{
		Node: node, Environment: production, Version: version, FactsSeq: w.ask(node, "").FactsSeq, Priority: compile.NewCode, At: time.Now(), Staged: true,
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

func TestStagedIsKeptButNotTheNewest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newReuseWorld(t)
		c := w.stage(t, "a.example", version1)
		defer w.start(t.Context())()
		synctest.Wait()
		got := w.row(t, c.ID)
		if got.State != compile.Done || !got.Staged || got.UUID == "" {
			t.Fatalf("the row is %+v", got)
		}
		if _, err := w.docs.Document(t.Context(), got.Catalog); err != nil {
			t.Errorf("its document: %v", err)
		}
		if saved := w.results.Saved(); len(saved) != 0 {
			t.Errorf("a staged catalog became the newest: %+v", saved)
		}
		if _, err := w.queue.Reusables.Newest(t.Context(), "a.example", production); fault.Of(err) != fault.NotFound {
			t.Errorf("the node's newest: %v, want NotFound", err)
		}
	})
}

func TestStagedBecomesPlainWhileItIsCompiled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.Play(compiletest.Takes(3 * time.Second))
		c := w.stage(t, "a.example", version1)
		defer w.start(t.Context())()
		<-time.After(time.Second)
		answer, err := w.service.Catalog(t.Context(), w.ask("a.example", "run"))
		if err != nil || answer.Compilation.ID != c.ID {
			t.Fatalf("who waits is given %+v, %v; want what was staged", answer.Compilation, err)
		}
		if got := w.row(t, c.ID); got.State != compile.Done || got.Staged {
			t.Errorf("the row is %+v, want it plain", got)
		}
		saved := w.results.Saved()
		if len(saved) != 1 || saved[0].Compilation.ID != c.ID || saved[0].Compilation.Staged || len(w.compiler.Orders()) != 1 {
			t.Errorf("saved %+v after %d compilations, want one of each", saved, len(w.compiler.Orders()))
		}
	})
}

// TestStagedUsesACatalogAgain: nothing is compiled, and nothing restated: the node
// keeps what it has.
func TestStagedUsesACatalogAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newReuseWorld(t)
		defer w.start(t.Context())()
		first, _ := w.get(t, version1, "1")
		w.diff.changes = compile.Changes{Files: map[string]bool{"other.pp": true}}
		c := w.stage(t, "a.example", versionTwo)
		w.dispatcher.Wake()
		synctest.Wait()
		got := w.row(t, c.ID)
		if got.State != compile.Done || !got.Staged || got.Catalog != first.Catalog || got.UUID == first.UUID || len(w.compiler.Orders()) != 1 {
			t.Errorf("after %d compilations the staged row is %+v, want the catalog of %+v", len(w.compiler.Orders()), got, first)
		}
		if newest, err := w.queue.Reusables.Newest(t.Context(), "a.example", production); err != nil || newest.ID != first.ID {
			t.Errorf("the node's newest is %d (%v), want still %d", newest.ID, err, first.ID)
		}
	})
}
