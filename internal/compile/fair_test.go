package compile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fleet"
)

// limit is how long the compiler of these tests lets a compile run. It ends between two looks of the dispatcher: at the
// same moment either may come first.
const limit = 5*time.Minute + 500*time.Millisecond

// loops never ends by itself: the compiler ends it.
func loops() compiletest.Script {
	return func(ctx context.Context, _ compile.Order) (compile.Outcome, error) {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return compile.Outcome{}, ctx.Err()
		case <-timer.C:
			return compile.Outcome{}, &compile.Error{Cause: compile.CauseTimeout, Message: "the catalog was not compiled within 5m"}
		}
	}
}

// byEnvironment plays loops in environments whose names begin with bad, and a second of work in others.
func byEnvironment() compiletest.Script {
	quick, slow := compiletest.Takes(time.Second), loops()
	return func(ctx context.Context, o compile.Order) (compile.Outcome, error) {
		if strings.HasPrefix(string(o.Environment), "bad") {
			return slow(ctx, o)
		}
		return quick(ctx, o)
	}
}

func fairWorld(t fataler, slots int, change ...func(*compile.DispatcherConfig)) *world {
	w := newWorld(t, func(d *compile.DispatcherConfig, _ *compile.ServiceConfig) {
		*d = compile.DefaultDispatcher("host:/data", slots)
		d.Timeout = limit + time.Minute
		for _, f := range change {
			f(d)
		}
	})
	w.compiler.Play(byEnvironment())
	return w
}

func (w *world) wantIn(t fataler, env fleet.Environment, node fleet.Certname, p compile.Priority) compile.Compilation {
	t.Helper()
	c, err := w.queue.Want(context.Background(), compile.Want{
		Node: node, Environment: env, Version: version1, FactsSeq: w.ask(node, "").FactsSeq, Priority: p, At: time.Now(),
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

// wantBad wants n catalogs that never end.
func (w *world) wantBad(t fataler, env fleet.Environment, n int, p compile.Priority) {
	t.Helper()
	for i := range n {
		w.wantIn(t, env, fleet.Certname(fmt.Sprintf("%s-%d", env, i)), p)
	}
}

// took is how long a row of production waits for its end.
func (w *world) took(t fataler, node fleet.Certname, p compile.Priority) time.Duration {
	t.Helper()
	c := w.wantIn(t, production, node, p)
	w.dispatcher.Wake()
	until(t, func() bool { return w.row(t, c.ID).State == compile.Done })
	got := w.row(t, c.ID)
	return got.FinishedAt.Sub(got.WantedAt)
}

// Endless loops of one environment have all workers when another one's nodes come.
func TestOthersWaitNoLongerThanASlice(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		slots    int
		bad      compile.Priority
		priority compile.Priority
	}{
		"two workers, an agent":      {2, compile.Waited, compile.Waited},
		"two workers, new code":      {2, compile.Waited, compile.NewCode},
		"eight workers":              {8, compile.Waited, compile.Waited},
		"one worker":                 {1, compile.Waited, compile.Waited},
		"one worker, new code":       {1, compile.Waited, compile.NewCode},
		"previews":                   {2, compile.Previewing, compile.Waited},
		"previews on the one worker": {1, compile.Previewing, compile.Waited},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := fairWorld(t, tt.slots)
				w.wantBad(t, "bad", 12, tt.bad)
				defer w.start(t.Context())()
				until(t, func() bool { now, _ := w.compiler.Running(); return now == tt.slots })
				<-time.After(5 * time.Second)
				if got := w.took(t, "a", tt.priority); got > 20*time.Second {
					t.Errorf("it took %s until the loops made room", got)
				}
				if got := w.dispatcher.Stats(); got.Stopped != 1 {
					t.Errorf("%d were stopped, want one", got.Stopped)
				}
				if tt.slots == 1 || tt.bad == compile.Previewing {
					return
				}
				for i := range 5 { // there is room from now on
					<-time.After(10 * time.Second)
					if got := w.took(t, fleet.Certname(fmt.Sprintf("b%d", i)), tt.priority); got > 3*time.Second {
						t.Errorf("the next one took %s", got)
					}
				}
			})
		})
	}
}

// With one worker environments have turns that are equally long, and the loop ends although somebody always waits.
func TestTurnsOfOneWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fairWorld(t, 1)
		bad := w.wantIn(t, "bad", "bad-0", compile.Waited)
		for i := range 400 {
			w.wantIn(t, production, fleet.Certname(fmt.Sprintf("n%d", i)), compile.NewCode)
		}
		defer w.start(t.Context())()
		until(t, func() bool { return w.row(t, bad.ID).State == compile.Failed })
		n := w.dispatcher.Stats().Done
		row := w.row(t, bad.ID)
		if took := row.FinishedAt.Sub(row.WantedAt); row.Err == nil || row.Err.Cause != compile.CauseTimeout || took > 15*time.Minute+10*time.Second {
			t.Errorf("after %s the loop is %+v", took, row)
		}
		if row.Attempts != 5 || w.dispatcher.Stats().Stopped != 4 {
			t.Errorf("it had %d turns and was stopped %d times; want turns of 20, 40, 80, 160 s and then all its time",
				row.Attempts, w.dispatcher.Stats().Stopped)
		}
		if n < 280 {
			t.Errorf("%d catalogs of the other environment meanwhile, want as much time for them as the loop was stopped after", n)
		}
	})
}

// What was stopped says so while it rests, and is no attempt: it ends well when it may.
func TestStoppedIsCompiledAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fairWorld(t, 1)
		w.compiler.PlayFor("long", compiletest.Takes(70*time.Second))
		long := w.wantIn(t, "bad", "long", compile.Waited)
		defer w.start(t.Context())()
		<-time.After(15 * time.Second)
		c := w.wantIn(t, production, "a", compile.Waited)
		until(t, func() bool { return w.dispatcher.Stats().Stopped == 1 })
		synctest.Wait()
		if got := w.row(t, long.ID); got.RestsUntil.IsZero() || !strings.Contains(got.Trouble, "had its turn while others waited") {
			t.Errorf("what was stopped is %+v", got)
		}
		until(t, func() bool { return w.row(t, long.ID).State == compile.Done })
		if got := w.row(t, long.ID); got.Attempts != 2 || got.FinishedAt.Sub(got.WantedAt) > 100*time.Second {
			t.Errorf("what was stopped is %+v", got)
		}
		if got := w.row(t, c.ID); got.State != compile.Done {
			t.Errorf("who waited is %+v", got)
		}
		if got := w.dispatcher.Stats(); got.Lost != 0 || got.Retried != 0 {
			t.Errorf("it counts as %+v", got)
		}
	})
}

func TestNobodyIsStoppedForNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fairWorld(t, 2)
		w.wantBad(t, "bad", 2, compile.Waited)
		w.wantIn(t, production, "p", compile.Previewing)
		defer w.start(t.Context())()
		<-time.After(limit + time.Second)
		if got := w.dispatcher.Stats(); got.Stopped != 0 || got.Failed != 2 {
			t.Errorf("where only a preview waits: %+v", got)
		}
	})
}

func TestSlowedEnvironmentIsNamedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		var mu sync.Mutex
		w := fairWorld(t, 2)
		w.dispatcher.Log = slog.New(slog.NewTextHandler(lockedWriter{&mu, &said}, nil))
		w.wantBad(t, "bad", 7, compile.Waited)
		defer w.start(t.Context())()
		until(t, func() bool { return w.dispatcher.Stats().Failed == 4 }) // two and two at once
		slow, err := w.queue.Slowdowns(t.Context())
		if err != nil || len(slow) != 1 || slow[0].Environment != "bad" || slow[0].Timeouts != 4 {
			t.Fatalf("slowed: %+v, %v", slow, err)
		}
		began := time.Now()
		until(t, func() bool { return w.dispatcher.Stats().Failed == 6 })
		if took := time.Since(began); took < time.Minute+limit+2*time.Minute+limit {
			t.Errorf("two more took %s, want one at a time, after pauses of one and two minutes", took)
		}
		w.compiler.PlayFor("bad-6", compiletest.Gives())
		until(t, func() bool { slow, _ := w.queue.Slowdowns(t.Context()); return len(slow) == 0 })
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for text, want := range map[string]int{"environment is slowed": 1, "environment is not slowed any more": 1} {
			if got := strings.Count(said.String(), text); got != want {
				t.Errorf("the log says %q %d times, want %d:\n%s", text, got, want, said.String())
			}
		}
	})
}

type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}

// TestFairToAll: some environments have nothing but endless loops, as many as there are workers and more, of any priority.
// Others' nodes come at any time. No node of theirs waits longer than a slice and two looks where one environment loops and
// there are several workers, and never longer than the last turn of each environment that loops.
func TestFairToAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		slots := rapid.IntRange(1, 4).Draw(rt, "slots")
		loopers := rapid.IntRange(1, 3).Draw(rt, "loopers")
		each := rapid.IntRange(1, 6).Draw(rt, "each")
		priority := rapid.SampledFrom([]compile.Priority{compile.Waited, compile.NewCode, compile.Previewing}).Draw(rt, "priority")
		gaps := rapid.SliceOfN(rapid.IntRange(0, 90), 1, 12).Draw(rt, "gaps")
		var wrong error
		synctest.Test(t, func(t *testing.T) {
			w := fairWorld(t, slots)
			for i := range loopers {
				w.wantBad(t, fleet.Environment(fmt.Sprintf("bad%d", i)), each, priority)
			}
			defer w.start(t.Context())()
			bound := time.Duration(loopers) * (limit + 5*time.Second)
			if loopers == 1 && slots > 1 {
				bound = 20*time.Second + 3*time.Second
			}
			for i, gap := range gaps {
				<-time.After(time.Duration(gap) * time.Second)
				if got := w.took(t, fleet.Certname(fmt.Sprintf("n%d", i)), compile.Waited); got > bound {
					wrong = errors.Join(wrong, fmt.Errorf("node %d waited for %s, at most %s is fair", i, got, bound))
				}
			}
		})
		if wrong != nil {
			rt.Fatal(wrong)
		}
	})
}
