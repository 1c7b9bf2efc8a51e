package near_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// overtaken is a shelf on which something newer is put just after it was read.
type overtaken struct {
	near.Shelf
	put func()
}

func (o overtaken) Kept(node fleet.Certname) (near.Kept, error) {
	kept, err := o.Shelf.Kept(node)
	o.put()
	return kept, err
}

func TestWhatIsPutOnTheShelfMeanwhileMakesNothingOlderGiven(t *testing.T) {
	t.Parallel()
	c := newCounter(t, filepath.Join(t.TempDir(), "near.db"))
	c.office.release("a.test", deliver.Live, "old")
	refresh(t, c, "a.test")
	c.office.release("a.test", deliver.Live, "new")
	c.keeper.Asked("a.test")
	c.keeper.Shelf = overtaken{c.disk, func() {
		if err := c.keeper.Refresh(t.Context(), "a.test"); err != nil {
			t.Error(err)
		}
	}}
	if kept, err := c.keeper.Kept("a.test"); fault.Of(err) != fault.Unavailable {
		t.Errorf("it is given %s, %v", kept.Document, err)
	}
	if kept, err := c.keeper.Kept("a.test"); err != nil || !strings.Contains(string(kept.Document), `"new"`) {
		t.Errorf("the next time it is given %s, %v", kept.Document, err)
	}
}

// forgetful is a shelf from which a catalog is dropped slowly.
type forgetful struct {
	near.Shelf
	during func(node fleet.Certname)
}

func (f forgetful) Drop(node fleet.Certname) error {
	f.during(node)
	return f.Shelf.Drop(node)
}

// Nodes that have not asked for a week are forgotten. Nobody waits for that, and one that asks meanwhile is not.
func TestNodesThatAskNoMoreAreForgotten(t *testing.T) {
	t.Parallel()
	c := newCounter(t, filepath.Join(t.TempDir(), "near.db"))
	c.office.release("a.test", deliver.Live, "of a")
	c.office.release("b.test", deliver.Live, "of b")
	refresh(t, c, "a.test", "b.test")
	c.now = c.now.Add(8 * 24 * time.Hour)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c.keeper.Shelf = forgetful{c.disk, func(node fleet.Certname) {
		asked := make(chan struct{})
		go func() {
			if node == "a.test" {
				c.keeper.Asked(node)
			}
			c.keeper.Count()
			close(asked)
		}()
		select {
		case <-asked:
		case <-time.After(10 * time.Second):
			t.Error("who asks waits for the disk")
		}
		if node == "b.test" {
			stop() // the round is the last one
		}
	}}
	if err := c.keeper.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.keeper.Refresh(t.Context(), "a.test"); err != nil {
		t.Fatal(err)
	}
	all, err := c.disk.Pointers()
	if _, there := all["a.test"]; err != nil || len(all) != 1 || !there || c.keeper.Count() != 1 {
		t.Errorf("kept are %v, %v, which is %d", all, err, c.keeper.Count())
	}
}

// A node from which its catalog was taken gets none, and a document in another node's place is not given, whatever brought it there.
func TestNoOtherNodesCatalog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "near.db")
	c := newCounter(t, path)
	c.office.release("a.test", deliver.Live, "of a")
	b := c.office.release("b.test", deliver.Live, "of b")
	c.office.release("gone.test", deliver.Live, "of gone")
	refresh(t, c, "a.test", "b.test", "gone.test")
	delete(c.office.pointers, "gone.test")
	refresh(t, c, "gone.test")
	if err := c.disk.Keep(near.Kept{Node: "a.test", Pointer: c.office.pointers["a.test"], Document: c.office.documents[b.Catalog]}); err != nil {
		t.Fatal(err)
	}
	c.cut(t)
	for _, node := range []fleet.Certname{"a.test", "gone.test"} {
		if got, err := c.ask(t, own(node)); err == nil {
			t.Errorf("%s gets %s", node, got.Document)
		}
	}
	if _, err := c.ask(t, own("b.test")); err != nil {
		t.Error(err)
	}
	c.back(t)
	delete(c.office.pointers, "b.test") // it is told that it may have nothing, and does not get what it had before after that
	if p, err := c.delivers.Pointer(t.Context(), "b.test"); !fault.Is(err, fault.NotFound) {
		t.Errorf("b.test may have %+v, %v", p, err)
	}
	c.cut(t)
	if got, err := c.ask(t, own("b.test")); fault.Of(err) != fault.Unavailable {
		t.Errorf("b.test gets %s, %v", got.Document, err)
	}
	c.back(t)
	c.office.pointers["b.test"] = b
	refresh(t, c, "a.test") // what was wrong is kept anew
	c.cut(t)
	if got, err := c.ask(t, own("a.test")); err != nil || !strings.Contains(string(got.Document), `"of a"`) {
		t.Errorf("when the records were back, a.test gets %s, %v", got.Document, err)
	}
	if err := c.disk.Keep(near.Kept{Node: "a.test", Pointer: c.office.pointers["a.test"], Document: c.office.documents[b.Catalog]}); err != nil {
		t.Fatal(err)
	}
	if err := c.disk.Close(); err != nil { // and after a start
		t.Fatal(err)
	}
	c.gone = false
	c.open(t, path)
	refresh(t, c, "b.test")
	c.cut(t)
	if got, err := c.ask(t, own("b.test")); err != nil || !strings.Contains(string(got.Document), "of b") {
		t.Errorf("after a start: %s, %v", got.Document, err)
	}
	if _, err := c.ask(t, own("a.test")); err == nil {
		t.Error("after a start a.test gets another node's catalog")
	}
}

// swapped is a shelf on which one node's catalog lies in the place of another one's.
type swapped struct{ near.Shelf }

func (s swapped) Kept(fleet.Certname) (near.Kept, error) { return s.Shelf.Kept("b.test") }

func TestASwappedCatalogIsNotGiven(t *testing.T) {
	t.Parallel()
	c := newCounter(t, filepath.Join(t.TempDir(), "near.db"))
	c.office.release("a.test", deliver.Live, "of a")
	c.office.release("b.test", deliver.Live, "of b")
	refresh(t, c, "a.test", "b.test")
	c.keeper.Shelf = swapped{c.disk}
	c.cut(t)
	if got, err := c.ask(t, own("a.test")); err == nil {
		t.Errorf("a.test gets %s", got.Document)
	}
}
