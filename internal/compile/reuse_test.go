package compile_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

var versionTwo = fleet.DigestOf([]byte("version two"))

// differs is a compile.Differ that knows one difference.
type differs struct{ changes compile.Changes }

func (d *differs) Changes(_ context.Context, _ fleet.Environment, from, to fleet.Digest) (*compile.Changes, error) {
	if from == to {
		return nil, fault.New(fault.Internal, "nothing to compare")
	}
	return &d.changes, nil
}

// reuseWorld is a world whose compiler says what it read, with a reuser.
type reuseWorld struct {
	*world
	reuser *compile.Reuser
	diff   *differs
	ttl    time.Duration
	check  atomic.Int64
}

// reading compiles at once, and says that the catalog was made of these reads.
func reading(r compile.Reads) compiletest.Script {
	return func(_ context.Context, o compile.Order) (compile.Outcome, error) {
		return compile.Outcome{Catalog: compiletest.Catalog(compile.Order{Node: o.Node, Facts: readOf(o.Facts, r)}), Reads: &r}, nil
	}
}

// readOf is what the made-up catalog holds: only the fact that is read.
func readOf(facts json.RawMessage, r compile.Reads) json.RawMessage {
	if !slices.Contains(r.Values, "/facts/os") {
		return json.RawMessage(`"none"`)
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(facts, &all)
	return all["os"]
}

func newReuseWorld(t *testing.T) *reuseWorld {
	t.Helper()
	w := &reuseWorld{world: newWorld(t), diff: &differs{}, ttl: time.Minute}
	w.reuser = compile.NewReuser(compile.ReuserParts{
		Store: w.queue.Reusables, Queue: w.queue, Orders: compile.Orders{Inputs: w.facts}, Inventory: compiletest.NewInventory(), Versions: w.diff, Documents: w.docs,
		Engine: w.compiler.Engine, Wake: func() { w.dispatcher.Wake() },
		VolatileTTL: func() time.Duration { return w.ttl }, CheckOneIn: func() int { return int(w.check.Load()) },
	})
	w.service.Reuser, w.dispatcher.Reuser = w.reuser, w.reuser
	w.compiler.Play(reading(compile.Reads{Values: []string{"/facts/os"}, Sources: compile.Sources{Files: []string{"read.pp"}}}))
	return w
}

// get asks for a catalog and counts the compilations so far.
func (w *reuseWorld) get(t *testing.T, version fleet.Digest, transaction string) (compile.Compilation, int) {
	t.Helper()
	ask := w.ask("a.example", transaction)
	ask.Version = version
	answer, err := w.service.Catalog(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Compilation, len(w.compiler.Orders())
}

func TestUnchangedNodesAreNotCompiled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newReuseWorld(t)
		defer w.start(t.Context())()
		w.facts.Set("a.example", `{"os":"debian","up":1}`)
		first, n := w.get(t, version1, "1")
		w.facts.Set("a.example", `{"os":"debian","up":2}`)
		second, m := w.get(t, version1, "2")
		if n != 1 || m != 1 || first.ID != second.ID {
			t.Errorf("%d and %d compilations, rows %d and %d: want one of each", n, m, first.ID, second.ID)
		}
		w.facts.Set("a.example", `{"os":"redhat","up":2}`)
		third, m := w.get(t, version1, "3")
		if m != 2 || third.Catalog == first.Catalog {
			t.Errorf("%d compilations after a fact changed that was read", m)
		}
		if s := w.reuser.Stats(); s.Reused != 1 || s.Restated != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

// A server that has just started does not know its compiler yet: what stands is not compiled because of that.
func TestACatalogWaitsUntilItsCompilerIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newReuseWorld(t)
		defer w.start(t.Context())()
		if _, compiled := w.get(t, version1, "1"); compiled != 1 {
			t.Fatalf("%d compilations", compiled)
		}
		known := make(chan struct{})
		w.reuser.Engine = func(ctx context.Context, env fleet.Environment, version fleet.Digest) string {
			select {
			case <-known:
				return w.compiler.Engine(ctx, env, version)
			default:
				return ""
			}
		}
		w.reuser.Await = func(ctx context.Context, _ fleet.Environment, _ fleet.Digest) {
			select {
			case <-known:
			case <-ctx.Done():
			}
		}
		time.AfterFunc(2*time.Second, func() { close(known) })
		began := time.Now()
		if verdicts, err := w.reuser.Survey(w.queue.Wants, production, version1).Judge(t.Context(), []fleet.Certname{"a.example"}); err != nil || !verdicts[0].Holds {
			t.Errorf("a survey: %+v, %v", verdicts, err)
		}
		if _, compiled := w.get(t, version1, "2"); compiled != 1 || time.Since(began) != 2*time.Second {
			t.Errorf("%d compilations after %s", compiled, time.Since(began))
		}
	})
}

func TestAVersionThatChangesNothingReadIsRestated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newReuseWorld(t)
		defer w.start(t.Context())()
		first, _ := w.get(t, version1, "1")
		w.diff.changes = compile.Changes{Files: map[string]bool{"other.pp": true}}
		second, n := w.get(t, versionTwo, "2")
		if n != 1 || second.Version != versionTwo || second.Catalog != first.Catalog || second.UUID == first.UUID || second.ID == first.ID {
			t.Errorf("%d compilations; %+v then %+v", n, first, second)
		}
		third, n := w.get(t, versionTwo, "3")
		if n != 1 || third.ID != second.ID {
			t.Errorf("%d compilations; row %d, want %d again", n, third.ID, second.ID)
		}
		w.diff.changes = compile.Changes{Files: map[string]bool{"read.pp": true}}
		if _, n = w.get(t, version1, "4"); n != 2 {
			t.Errorf("%d compilations after a file changed that was read", n)
		}
	})
}

func TestVolatileCatalogsAreReusedForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newReuseWorld(t)
		defer w.start(t.Context())()
		w.compiler.Play(reading(compile.Reads{Volatile: []string{"reads the clock"}}))
		w.get(t, version1, "1")
		w.diff.changes = compile.Changes{}
		if _, n := w.get(t, versionTwo, "2"); n != 1 {
			t.Errorf("%d compilations at once", n)
		}
		<-time.After(50 * time.Second)
		if _, n := w.get(t, versionTwo, "3"); n != 1 {
			t.Errorf("%d compilations before the time is up", n)
		}
		<-time.After(11 * time.Second) // being restated makes it no younger
		if _, n := w.get(t, versionTwo, "4"); n != 2 {
			t.Errorf("%d compilations after the time is up", n)
		}
		w.ttl = 0
		if _, n := w.get(t, versionTwo, "5"); n != 3 {
			t.Errorf("%d compilations when volatile catalogs are never used again", n)
		}
	})
}

func TestWantedRowsAreAnsweredByStoredCatalogs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newReuseWorld(t)
		defer w.start(t.Context())()
		first, _ := w.get(t, version1, "1")
		row := w.want(t, "a.example", compile.Background)
		w.dispatcher.Wake()
		synctest.Wait()
		got := w.row(t, row.ID)
		if got.State != compile.Done || got.Catalog != first.Catalog || len(w.compiler.Orders()) != 1 {
			t.Errorf("%d compilations, row %+v", len(w.compiler.Orders()), got)
		}
	})
}

func TestAWrongReuseIsFoundAndEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newReuseWorld(t)
		defer w.start(t.Context())()
		w.get(t, version1, "1")
		w.check.Store(1)
		w.get(t, version1, "2")
		synctest.Wait()
		if s := w.reuser.Stats(); s.Checked != 1 || s.Wrong != 0 || len(w.compiler.Orders()) != 2 {
			t.Fatalf("after a check of what is right: %+v, %d compilations", s, len(w.compiler.Orders()))
		}
		// Now the code gives something else, and says that it read the same.
		w.compiler.Play(func(context.Context, compile.Order) (compile.Outcome, error) {
			return compile.Outcome{
				Catalog: json.RawMessage(`{"resources":[{"type":"File","title":"/x","exported":false}]}`),
				Reads:   &compile.Reads{Values: []string{"/facts/os"}},
			}, nil
		})
		w.get(t, version1, "3")
		synctest.Wait()
		if s := w.reuser.Stats(); s.Checked != 2 || s.Wrong != 1 {
			t.Fatalf("after a check of what is wrong: %+v", s)
		}
		stops, err := w.queue.Reusables.ReuseStops(t.Context(), "a.example", production)
		if err != nil || len(stops) != 1 || stops[0].Version != version1 || !slices.Contains(stops[0].Differs, "File[/x]") {
			t.Fatalf("stops %+v, %v", stops, err)
		}
		w.check.Store(0)
		before := len(w.compiler.Orders())
		if _, n := w.get(t, version1, "4"); n != before+1 {
			t.Errorf("%d compilations, want %d: reuse goes on", n, before+1)
		}
		w.get(t, versionTwo, "5") // from a version that is stopped: compiled
		w.get(t, versionTwo, "6")
		if n := len(w.compiler.Orders()); n != before+2 {
			t.Errorf("%d compilations, want %d: another version is used again", n, before+2)
		}
	})
}

func TestACheckIsNoAlarmWhenInputsChangedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newReuseWorld(t)
		first, _ := func() (compile.Compilation, int) {
			defer w.start(t.Context())()
			return w.get(t, version1, "1")
		}()
		w.check.Store(1)
		w.get(t, version1, "2") // reused; the check waits, as nobody dispatches
		w.facts.Set("a.example", `{"os":"redhat"}`)
		w.check.Store(0)
		stop := w.start(t.Context())
		synctest.Wait()
		stop()
		if s := w.reuser.Stats(); s.Wrong != 0 || s.Checked != 0 {
			t.Errorf("stats %+v", s)
		}
		c, err := w.queue.Reusables.Newest(t.Context(), "a.example", production)
		if err != nil || c.Catalog == first.Catalog {
			t.Errorf("newest %+v, %v: want what the check compiled", c, err)
		}
	})
}
