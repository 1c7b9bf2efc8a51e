package compile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestDispatcherCompiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.want(t, "a.example", compile.Background)
		defer w.start(t.Context())()
		synctest.Wait()

		got := w.row(t, c.ID)
		if got.State != compile.Done || got.Catalog == "" || got.UUID == "" || got.Cost.Wall != time.Second || got.FactsSeq != 1 {
			t.Fatalf("the row is %+v", got)
		}
		doc, err := w.docs.Document(t.Context(), got.Catalog)
		if err != nil || fleet.DigestOf(doc) != got.Catalog {
			t.Fatalf("the document of %s: %v", got.Catalog, err)
		}
		saved := w.results.Saved()
		if len(saved) != 1 || saved[0].Compilation.ID != c.ID || saved[0].Compilation.UUID != got.UUID || string(saved[0].Document) != string(doc) {
			t.Errorf("saved results: %+v", saved)
		}
		want := []compile.Order{{
			Node: "a.example", Environment: production, Version: version1, Facts: json.RawMessage(`{"os":"debian"}`),
			Trusted: json.RawMessage(`{"authenticated":"local","certname":"a.example","extensions":{},"hostname":"a","domain":"example","external":{}}`),
		}}
		if diff := cmp.Diff(want, w.compiler.Orders()); diff != "" {
			t.Errorf("orders (-want +got):\n%s", diff)
		}
	})
}

func TestDispatcherHearsWakeAndPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.start(t.Context())()
		synctest.Wait()
		hinted := w.want(t, "hinted", compile.Waited)
		w.dispatcher.Wake()
		synctest.Wait()
		if got := w.row(t, hinted.ID).State; got != compile.Done {
			t.Errorf("after a hint the row is %s", got)
		}
		silent := w.want(t, "silent", compile.Waited)
		synctest.Wait()
		if got := w.row(t, silent.ID).State; got != compile.Wanted {
			t.Errorf("without a hint the row is %s at once", got)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if got := w.row(t, silent.ID).State; got != compile.Done {
			t.Errorf("a poll later the row is %s", got)
		}
	})
}

func TestDispatcherKeepsToItsSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.Play(compiletest.Takes(10 * time.Second))
		for i := range 7 {
			w.want(t, fleet.Certname(fmt.Sprintf("n%d", i)), compile.NewCode)
		}
		began := time.Now()
		defer w.start(t.Context())()
		until(t, func() bool { return w.dispatcher.Stats().Done == 7 })
		if _, peak := w.compiler.Running(); peak != 2 {
			t.Errorf("%d compiled at once, want 2", peak)
		}
		if took := time.Since(began); took > 41*time.Second {
			t.Errorf("seven compilations of 10 s in two slots took %s", took)
		}
	})
}

// until lets the bubble's clock go on until ok.
func until(t fataler, ok func() bool) {
	t.Helper()
	for range 20000 {
		synctest.Wait()
		if ok() {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	t.Fatalf("it never came true")
}

func TestDispatcherStoresErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		want := &compile.Error{Cause: compile.CauseCode, Message: "Syntax error at '}' (file: manifests/site.pp, line: 3)", File: "manifests/site.pp", Line: 3}
		w.compiler.Play(compiletest.Fails(fmt.Errorf("worker 1: %w", want)))
		c := w.want(t, "a", compile.Waited)
		defer w.start(t.Context())()
		synctest.Wait()
		got := w.row(t, c.ID)
		if diff := cmp.Diff(want, got.Err); got.State != compile.Failed || diff != "" {
			t.Errorf("the row is %s, error (-want +got):\n%s", got.State, diff)
		}
	})
}

func TestDispatcherFailsOrdersThatCannotBeMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, err := w.queue.Want(t.Context(), compile.Want{Node: "factless", Environment: production, Version: version1, At: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		defer w.start(t.Context())()
		synctest.Wait()
		got := w.row(t, c.ID)
		if got.State != compile.Failed || got.Err.Cause != compile.CauseInput || !strings.Contains(got.Err.Message, "puppet facts upload") {
			t.Errorf("the row is %+v", got)
		}
	})
}

func TestDispatcherFailsWhatIsNoCatalog(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]compiletest.Script{
		"nothing": func(context.Context, compile.Order) (compile.Outcome, error) { return compile.Outcome{}, nil },
		"too large": func(context.Context, compile.Order) (compile.Outcome, error) {
			return compile.Outcome{Catalog: json.RawMessage(`{"resources":["` + strings.Repeat("x", 20000) + `"]}`)}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(d *compile.DispatcherConfig, _ *compile.ServiceConfig) { d.MaxBytes = 10000 })
				w.compiler.Play(script)
				c := w.want(t, "a", compile.Waited)
				defer w.start(t.Context())()
				synctest.Wait()
				if got := w.row(t, c.ID); got.State != compile.Failed || got.Err.Message == "" {
					t.Errorf("the row is %+v", got)
				}
			})
		})
	}
}

func TestDispatcherTriesAgain(t *testing.T) {
	t.Parallel()
	busy := errors.New("no worker could be started")
	full := fault.New(fault.Unavailable, "the disk is full")
	for name, fail := range map[string]struct{ on, off func(w *world) }{
		"the compiler": {func(w *world) { w.compiler.Play(compiletest.Fails(busy)) }, func(w *world) { w.compiler.Play(compiletest.Gives()) }},
		"documents":    {func(w *world) { w.docs.Fail(full) }, func(w *world) { w.docs.Fail(nil) }},
		"results":      {func(w *world) { w.results.Fail(full) }, func(w *world) { w.results.Fail(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				fail.on(w)
				c := w.want(t, "a", compile.Waited)
				defer w.start(t.Context())()
				synctest.Wait()
				got := w.row(t, c.ID)
				if got.State != compile.Leased || w.dispatcher.Stats().Retried != 1 || got.Trouble == "" || !got.RestsUntil.Equal(time.Now().Add(time.Second)) {
					t.Fatalf("after a first try the row is %+v", got)
				}
				fail.off(w)
				until(t, func() bool { return w.row(t, c.ID).State == compile.Done })
				if got := w.row(t, c.ID); got.Attempts != 2 || got.FinishedAt.Sub(got.WantedAt) > 5*time.Second {
					t.Errorf("the row is %+v, want a second attempt within seconds", got)
				}
			})
		})
	}
}

func TestDispatcherGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.docs.Fail(fault.New(fault.Unavailable, "the disk is full"))
		c := w.want(t, "a", compile.Waited)
		defer w.start(t.Context())()
		until(t, func() bool { return w.row(t, c.ID).State == compile.Failed })
		got := w.row(t, c.ID)
		if got.Attempts != 3 || got.Err.Cause != compile.CauseCrash || !strings.Contains(got.Err.Message, "the disk is full") {
			t.Errorf("the row is %+v", got)
		}
	})
}

// A store that is away says when to come back: whoever asks is told so for as long as it lasts, no compilation fails, and the catalog comes
// by itself when the store does.
func TestAStoreThatIsAwayFailsNoCompilation(t *testing.T) {
	t.Parallel()
	away := fault.Later(5*time.Second, "the store does not answer")
	for name, fail := range map[string]func(w *world, err error){
		"documents": func(w *world, err error) { w.docs.Fail(err) },
		"results":   func(w *world, err error) { w.results.Fail(err) },
		"the compiler's files": func(w *world, err error) {
			w.compiler.Play(compiletest.Gives())
			if err != nil {
				w.compiler.Play(compiletest.Fails(err))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				fail(w, away)
				ahead := w.want(t, "ahead", compile.NewCode)
				defer w.start(t.Context())()
				for began := time.Now(); time.Since(began) < 3*time.Hour; <-time.After(time.Minute) {
					_, err := w.service.Catalog(t.Context(), w.ask("a", "t1"))
					if fault.Of(err) != fault.Unavailable || fault.RetryAfter(err) < time.Second ||
						!strings.Contains(fault.Detail(err), "the store does not answer; it is tried again") {
						t.Fatalf("after %s who asks is told %v, come back in %s", time.Since(began), err, fault.RetryAfter(err))
					}
				}
				fail(w, nil)
				came := time.Now()
				until(t, func() bool { return w.row(t, ahead.ID).State == compile.Done })
				if _, err := w.service.Catalog(t.Context(), w.ask("a", "t1")); err != nil || time.Since(came) > 2*time.Minute {
					t.Errorf("%s after the store came back: %v", time.Since(came), err)
				}
				for _, c := range w.queue.All() {
					if c.State != compile.Done || c.Err != nil {
						t.Errorf("row %+v", c)
					}
				}
			})
		})
	}
}

func TestDispatcherBoundsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.Play(compiletest.Hangs())
		c := w.want(t, "a", compile.Waited)
		defer w.start(t.Context())()
		until(t, func() bool { return w.row(t, c.ID).State == compile.Failed })
		got := w.row(t, c.ID)
		if got.Err.Cause != compile.CauseTimeout || got.Attempts != 1 || got.FinishedAt.Sub(got.WantedAt) != 10*time.Minute {
			t.Errorf("the row is %+v; want one attempt of ten minutes, its lease renewed all the while", got)
		}
	})
}

func TestDispatcherStopsWorkWhoseLeaseIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.Play(compiletest.Hangs())
		c := w.want(t, "a", compile.Waited)
		defer w.start(t.Context())()
		synctest.Wait()
		now := time.Now()
		if _, err := w.queue.ReturnLeases(t.Context(), "host:/data", now, 9); err != nil {
			t.Fatal(err)
		}
		if got, err := w.queue.Lease(t.Context(), offer("thief", compile.LongestLease)); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		until(t, func() bool { now, _ := w.compiler.Running(); return now == 0 })
		if got := w.row(t, c.ID); got.LeasedBy != "thief" || w.dispatcher.Stats().Lost != 1 {
			t.Errorf("the row is %+v", got)
		}
	})
}

func TestDispatcherTakesItsLeasesBackAfterACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.want(t, "a", compile.Waited)
		now := time.Now()
		if _, err := w.queue.Lease(t.Context(), offer("host:/data", time.Hour)); err != nil {
			t.Fatal(err) // and with that the first process dies
		}
		w.queue.Fail(fault.New(fault.Unavailable, "the store is busy"))
		defer w.start(t.Context())()
		synctest.Wait()
		w.queue.Fail(nil)
		until(t, func() bool { return w.row(t, c.ID).State == compile.Done })
		if got := w.row(t, c.ID); got.Attempts != 2 || got.FinishedAt.Sub(now) > 2*time.Second {
			t.Errorf("the row is %+v", got)
		}
	})
}

func TestDispatcherTakesLeasesOfTheDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.want(t, "a", compile.Waited)
		now := time.Now()
		if _, err := w.queue.Lease(t.Context(), offer("other", time.Minute)); err != nil {
			t.Fatal(err)
		}
		defer w.start(t.Context())()
		until(t, func() bool { return w.row(t, c.ID).State == compile.Done })
		if took := w.row(t, c.ID).FinishedAt.Sub(now); took < time.Minute || took > time.Minute+2*time.Second {
			t.Errorf("it was compiled after %s, want just after the lease ran out", took)
		}
	})
}

func TestDispatcherDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.PlayFor("quick", compiletest.Takes(5*time.Second))
		w.compiler.PlayFor("slow", compiletest.Hangs())
		quick, slow := w.want(t, "quick", compile.Waited), w.want(t, "slow", compile.Waited)
		later := w.want(t, "later", compile.Background)
		stop := w.start(t.Context())
		synctest.Wait()
		began := time.Now()
		stop()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("the stop took %s, want the drain time", took)
		}
		got := []compile.State{w.row(t, quick.ID).State, w.row(t, slow.ID).State, w.row(t, later.ID).State}
		if diff := cmp.Diff([]compile.State{compile.Done, compile.Wanted, compile.Wanted}, got); diff != "" {
			t.Errorf("after the stop (-want +got):\n%s", diff)
		}
		if now, _ := w.compiler.Running(); now != 0 {
			t.Errorf("%d still compile", now)
		}
	})
}

// One that yields leases nothing more, and what it compiles it ends.
func TestDispatcherYields(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.Play(compiletest.Takes(10 * time.Second))
		runs := w.want(t, "runs", compile.Waited)
		defer w.start(t.Context())()
		<-time.After(2 * time.Second)
		w.dispatcher.Yield()
		comes := w.want(t, "comes", compile.Waited)
		w.dispatcher.Wake()
		<-time.After(time.Minute)
		if got := w.row(t, runs.ID).State; got != compile.Done {
			t.Errorf("what ran is %s", got)
		}
		if got := w.row(t, comes.ID); got.State != compile.Wanted || got.Attempts != 0 {
			t.Errorf("what came is %+v", got)
		}
	})
}

// Servers whose clocks differ by an hour share a queue: leases are over by a clock that is the same for all.
func TestDispatchersShareAClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.Play(compiletest.Takes(3 * time.Minute))
		common := func() time.Time { return time.Now().Add(-time.Hour) } // this process is an hour before all others
		for _, worker := range []string{"one:/data", "two:/data"} {
			defer run(t.Context(), w.newDispatcher(t, common, compile.DefaultDispatcher(worker, 1)))()
		}
		c := w.want(t, "a.example", compile.Waited)
		<-time.After(2 * time.Minute)
		if got := w.row(t, c.ID); got.State != compile.Leased || got.Attempts != 1 || !got.LeasedUntil.Before(time.Now().Add(-50*time.Minute)) {
			t.Errorf("the lease by the common clock: %+v", got)
		}
		<-time.After(2 * time.Minute)
		if got := w.row(t, c.ID); got.State != compile.Done || got.Attempts != 1 {
			t.Errorf("it was done %d times: %+v", got.Attempts, got)
		}
	})
}

func TestDispatcherSurvivesABusyStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.Play(compiletest.Takes(3 * time.Second))
		c := w.want(t, "a", compile.Waited)
		defer w.start(t.Context())()
		<-time.After(2500 * time.Millisecond)
		w.queue.Fail(fault.New(fault.Unavailable, "the store is busy"))
		<-time.After(50 * time.Second)
		w.queue.Fail(nil)
		until(t, func() bool { return w.row(t, c.ID).State == compile.Done })
		if got := w.row(t, c.ID); got.Attempts != 1 || len(w.compiler.Orders()) != 1 {
			t.Errorf("%+v: a busy store made it compile %d times", got, len(w.compiler.Orders()))
		}
	})
}

func TestNewDispatcherRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*compile.DispatcherConfig){
		"worker":   func(c *compile.DispatcherConfig) { c.Worker = "" },
		"slots":    func(c *compile.DispatcherConfig) { c.Slots = 0 },
		"attempts": func(c *compile.DispatcherConfig) { c.MaxAttempts = 0 },
		"lease":    func(c *compile.DispatcherConfig) { c.Lease = 0 },
		"drain":    func(c *compile.DispatcherConfig) { c.Drain = -1 },
	} {
		cfg := compile.DefaultDispatcher("w", 1)
		change(&cfg)
		if _, err := compile.NewDispatcher(compile.DispatcherParts{}, cfg); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: %v, want Invalid", name, err)
		}
	}
}
