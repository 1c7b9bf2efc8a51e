package compile_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestDispatcherOfAFullMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.gate.Set(compile.Full)
		w.compiler.Play(compiletest.Takes(time.Second))
		idle := w.want(t, "idle", compile.Background)
		for _, node := range []fleet.Certname{"w1", "w2", "w3"} {
			w.want(t, node, compile.Waited)
		}
		w.want(t, "ahead", compile.Previewing) // slowly, too
		defer w.start(t.Context())()
		until(t, func() bool { return w.dispatcher.Stats().Done == 4 })
		<-time.After(time.Minute)
		if _, peak := w.compiler.Running(); peak != 1 || w.row(t, idle.ID).State != compile.Wanted {
			t.Errorf("on a full machine %d ran at once and the background row is %s", peak, w.row(t, idle.ID).State)
		}
		w.gate.Set(compile.Idle)
		until(t, func() bool { return w.row(t, idle.ID).State == compile.Done })
	})
}

func TestBackgroundNeedsAnIdleMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.gate.Set(compile.Some)
		w.compiler.Play(compiletest.Takes(time.Second))
		idle, second := w.want(t, "idle", compile.Background), w.want(t, "idle2", compile.Background)
		preview := w.want(t, "preview", compile.Previewing)
		defer w.start(t.Context())()
		until(t, func() bool { return w.row(t, preview.ID).State == compile.Done })
		<-time.After(time.Minute)
		if got := w.row(t, idle.ID).State; got != compile.Wanted {
			t.Errorf("on a machine that does other things the background row is %s", got)
		}
		w.gate.Set(compile.Idle)
		until(t, func() bool { return w.row(t, second.ID).State == compile.Done })
		if _, peak := w.compiler.Running(); peak != 1 {
			t.Errorf("%d background compilations at once in two slots, want 1", peak)
		}
	})
}

func TestPauseStopsLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		pause := compile.Pause{Environment: production, By: "alice", Reason: "new disks", At: began}
		if err := w.queue.Pause(t.Context(), pause); err != nil {
			t.Fatal(err)
		}
		c := w.want(t, "a", compile.NewCode)
		stop := w.start(t.Context())
		<-time.After(time.Minute)
		if got := w.row(t, c.ID).State; got != compile.Wanted {
			t.Errorf("in a pause the row is %s", got)
		}
		stop() // a pause outlives the process
		w.restart(t, compile.DefaultDispatcher("host:/data", 2), compile.DefaultService())
		defer w.start(t.Context())()
		asked := time.Now()
		_, err := w.service.Catalog(t.Context(), w.ask("a", "run"))
		after := fault.RetryAfter(err)
		if fault.Of(err) != fault.Unavailable || time.Since(asked) != 0 || after < 15*time.Second || after > 30*time.Second ||
			!strings.Contains(fault.Detail(err), "compiling for production is paused by alice since") ||
			!strings.Contains(fault.Detail(err), ": new disks; come back in") {
			t.Errorf("who waits is told after %s: %v, come back in %s", time.Since(asked), err, after)
		}
		if err := w.queue.Resume(t.Context(), production); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { return w.row(t, c.ID).State == compile.Done })
		if got := w.row(t, c.ID); got.FinishedAt.Sub(asked) > 2*time.Second || got.Priority != compile.Waited {
			t.Errorf("after the pause: %+v, want it done within a poll", got)
		}
	})
}

func TestAKnownFailureIsNotTriedAgainAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		wrong := &compile.Error{Cause: compile.CauseCode, Message: "no such class", File: "site.pp", Line: 3}
		w.compiler.Play(compiletest.Fails(wrong))
		defer w.start(t.Context())()
		try := func(priority compile.Priority) (compile.Compilation, int) {
			t.Helper()
			c := w.want(t, "a", priority)
			w.dispatcher.Wake()
			until(t, func() bool { return w.row(t, c.ID).State == compile.Failed })
			return w.row(t, c.ID), len(w.compiler.Orders())
		}
		if c, n := try(compile.NewCode); n != 1 || c.Order == "" {
			t.Fatalf("after %d compilations: %+v", n, c)
		}
		if c, n := try(compile.Background); n != 1 || c.Err.Message != wrong.Message || c.Order != "" {
			t.Errorf("the same again made %d compilations: %+v", n, c)
		}
		if _, n := try(compile.Waited); n != 2 {
			t.Errorf("somebody who waits made %d compilations, want one more", n-1)
		}
		w.facts.Set("a", `{"os":"other"}`)
		if _, n := try(compile.NewCode); n != 3 {
			t.Errorf("other facts made %d compilations, want one more", n-2)
		}
		<-time.After(10 * time.Minute)
		if _, n := try(compile.NewCode); n != 4 {
			t.Errorf("a while later %d more were made, want one", n-3)
		}
	})
}
