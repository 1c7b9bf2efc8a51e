package compile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestServiceGivesACatalog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.start(t.Context())()
		answer, err := w.service.Catalog(t.Context(), w.ask("a", "t1"))
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Name, Version, Environment string
			CodeID                     string `json:"code_id"`
			UUID                       string `json:"catalog_uuid"`
		}
		if err := json.Unmarshal(answer.Catalog, &got); err != nil {
			t.Fatal(err)
		}
		c := answer.Compilation
		if got.Name != "a" || got.Version != string(version1) || got.CodeID != string(version1) || got.UUID != c.UUID || c.Priority != compile.Waited {
			t.Errorf("the catalog is %+v of %+v", got, c)
		}
		orders := w.compiler.Orders()
		if len(orders) != 1 || orders[0].Transaction != "t1" || string(orders[0].Trusted) != `{"authenticated":"remote"}` {
			t.Errorf("orders: %+v", orders)
		}
	})
}

func TestServiceAnswersARepeatFromTheSameCompilation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.Play(compiletest.Takes(8 * time.Second))
		defer w.start(t.Context())()
		ask := w.ask("a", "t1")
		began := time.Now()
		_, err := w.service.Catalog(t.Context(), ask)
		after := fault.RetryAfter(err)
		if fault.Of(err) != fault.Unavailable || after < time.Second || after > 30*time.Second || time.Since(began) != 5*time.Second {
			t.Fatalf("after %s: %v, come back in %s", time.Since(began), err, after)
		}
		first, err := w.service.Catalog(t.Context(), ask) // while it still compiles
		if err != nil {
			t.Fatal(err)
		}
		second, err := w.service.Catalog(t.Context(), ask) // and long after
		if err != nil {
			t.Fatal(err)
		}
		if n := len(w.compiler.Orders()); n != 1 || !bytes.Equal(first.Catalog, second.Catalog) {
			t.Errorf("three asks of one transaction compiled %d times", n)
		}
		if _, err := w.service.Catalog(t.Context(), w.ask("a", "t2")); fault.Of(err) != fault.Unavailable {
			t.Errorf("another transaction was told %v", err)
		}
		if n := len(w.compiler.Orders()); n != 2 {
			t.Errorf("another transaction made it %d compilations, want 2", n)
		}
	})
}

// TestServiceAnswersWhoHasNoTransaction: an old client that is told to come back
// must not have its catalog compiled anew each time.
func TestServiceAnswersWhoHasNoTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.Play(compiletest.Takes(8 * time.Second))
		defer w.start(t.Context())()
		ask := w.ask("a", "")
		_, err := w.service.Catalog(t.Context(), ask)
		if fault.Of(err) != fault.Unavailable {
			t.Fatal(err)
		}
		<-time.After(fault.RetryAfter(err) + 5*time.Second)
		if _, err := w.service.Catalog(t.Context(), ask); err != nil {
			t.Error(err)
		}
		if n := len(w.compiler.Orders()); n != 1 {
			t.Errorf("compiled %d times", n)
		}
		<-time.After(10 * time.Minute)
		_, _ = w.service.Catalog(t.Context(), ask)
		if n := len(w.compiler.Orders()); n != 2 {
			t.Errorf("ten minutes later it was compiled %d times, want twice", n)
		}
	})
}

func TestServiceTellsWhatDoesNotCompile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.Play(compiletest.Fails(&compile.Error{Cause: compile.CauseCode, Message: "no", Line: 3}))
		defer w.start(t.Context())()
		for range 2 {
			_, err := w.service.Catalog(t.Context(), w.ask("a", "t1"))
			e, ok := errors.AsType[*compile.Error](err)
			if !ok || e.Line != 3 {
				t.Errorf("the error is %v", err)
			}
		}
		if n := len(w.compiler.Orders()); n != 1 {
			t.Errorf("it was compiled %d times", n)
		}
	})
}

func TestServiceUnknownEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask := w.ask("a", "t1")
	ask.Environment = "nowhere"
	if _, err := w.service.Catalog(t.Context(), ask); fault.Of(err) != fault.NotFound {
		t.Errorf("%v, want NotFound", err)
	}
}

func TestServiceFindsWhatAnotherProcessFinished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, other := newWorld(t), newWorld(t)
		other.queue, other.facts, other.docs, other.results = w.queue, w.facts, w.docs, w.results
		other.compiler.Play(compiletest.Takes(2500 * time.Millisecond))
		other.restart(t, compile.DefaultDispatcher("other", 1), compile.DefaultService())
		defer other.start(t.Context())()
		began := time.Now()
		if _, err := w.service.Catalog(t.Context(), w.ask("a", "t1")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the waiter looked after %s", took)
		}
	})
}

func TestServiceWhoLeavesCancelsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.compiler.Play(compiletest.Takes(3 * time.Second))
		defer w.start(t.Context())()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.service.Catalog(ctx, w.ask("a", "t1")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the one who left was told %v", err)
		}
		if n := w.service.Stats().Waiting; n != 0 {
			t.Errorf("%d still wait", n)
		}
		if _, err := w.service.Catalog(t.Context(), w.ask("a", "t1")); err != nil {
			t.Error(err)
		}
		if n := len(w.compiler.Orders()); n != 1 {
			t.Errorf("compiled %d times", n)
		}
	})
}

func TestServiceRaisesThePriority(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.want(t, "a", compile.Background)
		_, err := w.service.Catalog(t.Context(), w.ask("a", "t1")) // nobody dispatches
		if fault.Of(err) != fault.Unavailable {
			t.Error(err)
		}
		if got := w.row(t, c.ID); got.Priority != compile.Waited || got.Transaction != "t1" {
			t.Errorf("the row is %+v", got)
		}
	})
}

func TestServiceBoundsItsWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ *compile.DispatcherConfig, s *compile.ServiceConfig) { s.MaxWaiters = 3 })
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				_, err := w.service.Catalog(t.Context(), w.ask(fleet.Certname(fmt.Sprintf("n%d", i)), "t"))
				if fault.Of(err) != fault.Unavailable || fault.RetryAfter(err) < time.Second {
					t.Errorf("n%d: %v", i, err)
				}
			})
		}
		synctest.Wait()
		if s := w.service.Stats(); s.Waiting != 3 || s.Shed != 7 || time.Since(began) != 0 {
			t.Errorf("at once: %+v", s)
		}
		wg.Wait()
		if s := w.service.Stats(); s.Waiting != 0 || s.Later != 3 {
			t.Errorf("in the end: %+v", s)
		}
		if rows := w.queue.All(); len(rows) != 10 {
			t.Errorf("%d rows are wanted; those sent away must be compiled too", len(rows))
		}
	})
}

func TestServiceMakesALostDocumentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.start(t.Context())()
		first, err := w.service.Catalog(t.Context(), w.ask("a", "t1"))
		if err != nil {
			t.Fatal(err)
		}
		w.docs.Forget(first.Compilation.Catalog)
		for range 2 {
			if _, err := w.service.Catalog(t.Context(), w.ask("a", "t1")); err != nil {
				t.Error(err)
			}
		}
		if s := w.service.Stats(); s.Vanished != 1 || len(w.compiler.Orders()) != 2 {
			t.Errorf("%+v, compiled %d times", s, len(w.compiler.Orders()))
		}
	})
}

func TestServiceWantsAgainWhatIsFolded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ask := w.ask("a", "t1")
		c := w.want(t, "a", compile.Waited)
		if _, err := w.queue.Lease(t.Context(), offer("dead", time.Second)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := w.service.Catalog(t.Context(), ask)
			done <- err
		}()
		synctest.Wait() // it waits for the leased row
		w.facts.Set("a", `{"os":"changed"}`)
		if newer := w.want(t, "a", compile.Background); newer.ID == c.ID {
			t.Fatal("newer facts joined the old row")
		}
		<-time.After(time.Second)
		defer w.start(t.Context())() // returns the dead lease into the newer row
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := len(w.compiler.Orders()); n != 1 {
			t.Errorf("compiled %d times, want once with the newer facts", n)
		}
	})
}

// TestServiceCrowd: 300 nodes that come at once all get their catalogs, and those
// told to come back do not come back together.
func TestServiceCrowd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(d *compile.DispatcherConfig, _ *compile.ServiceConfig) { d.Slots = 4 })
		w.compiler.Play(compiletest.Takes(time.Second))
		defer w.start(t.Context())()
		var mu sync.Mutex
		returns := map[time.Duration]int{}
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				ask := w.ask(fleet.Certname(fmt.Sprintf("n%03d", i)), "t")
				for {
					_, err := w.service.Catalog(t.Context(), ask)
					if err == nil {
						return
					}
					after := fault.RetryAfter(err)
					mu.Lock()
					returns[after]++
					mu.Unlock()
					<-time.After(after)
				}
			})
		}
		began := time.Now()
		wg.Wait()
		if took, n := time.Since(began), len(w.compiler.Orders()); n != 300 || took > 115*time.Second {
			t.Errorf("300 catalogs were %d compilations in %s; four slots can do it in 75 s", n, took)
		}
		if len(returns) < 10 {
			t.Errorf("the crowd came back in step: %v", returns)
		}
	})
}

func TestNewServiceRefuses(t *testing.T) {
	t.Parallel()
	if _, err := compile.NewService(compile.ServiceParts{}, compile.ServiceConfig{}); fault.Of(err) != fault.Invalid {
		t.Errorf("%v, want Invalid", err)
	}
}
