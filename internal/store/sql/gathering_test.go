package sql

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
)

// batch is what a gathering writes at once; the write ends with what is sent to end.
type batch struct {
	texts []string
	end   chan error
}

// newBatches returns a gathering of texts, of which those that begin with the same letter are never written together, and the batches that it writes.
func newBatches() (<-chan batch, *gathering[string]) {
	began := make(chan batch)
	return began, newGathering(func(s string) string { return s[:1] }, func(_ context.Context, all []string) error {
		b := batch{slices.Sorted(slices.Values(all)), make(chan error)}
		began <- b
		return <-b.end
	})
}

// send lets each text be written by a caller of its own, one after the other as they take their places; what came of them is in errs after wait.
func send(t *testing.T, g *gathering[string], texts ...string) (wait func() []error) {
	t.Helper()
	errs := make([]error, len(texts))
	var wg sync.WaitGroup
	for i, text := range texts {
		wg.Go(func() { errs[i] = g.do(t.Context(), text) })
	}
	return func() []error {
		wg.Wait()
		return errs
	}
}

// gatheredWaits waits until n wait.
func gatheredWaits(g *gathering[string], n int) {
	for {
		g.mu.Lock()
		waiting := len(g.waiting)
		g.mu.Unlock()
		if waiting == n {
			return
		}
		runtime.Gosched()
	}
}

// occupied lets all writers begin with one text each, so that what comes then is gathered.
func occupied(t *testing.T, began <-chan batch, g *gathering[string]) (release func()) {
	t.Helper()
	var waits []func() []error
	var ends []chan error
	for n := range gatherWriters {
		waits = append(waits, send(t, g, fmt.Sprintf("%d first", n)))
		b := <-began
		ends = append(ends, b.end)
	}
	return func() {
		for _, end := range ends {
			end <- nil
		}
		for _, wait := range waits {
			if err := errors.Join(wait()...); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestThoseWhoComeMeanwhileAreWrittenTogether(t *testing.T) {
	t.Parallel()
	began, g := newBatches()
	release := occupied(t, began, g)
	wait := send(t, g, "a1", "b1", "c1")
	gatheredWaits(g, 3)
	late := send(t, g, "a2") // may not be in a batch with a1
	gatheredWaits(g, 4)
	release()
	first, second := <-began, <-began // the two writers, in any order
	if len(first.texts) < len(second.texts) {
		first, second = second, first
	}
	if !slices.Equal(first.texts, []string{"a1", "b1", "c1"}) || !slices.Equal(second.texts, []string{"a2"}) {
		t.Errorf("written together: %q and %q", first.texts, second.texts)
	}
	first.end <- nil
	second.end <- nil
	if err := errors.Join(append(wait(), late()...)...); err != nil {
		t.Error(err)
	}
}

// Who is written by another one, while a turn is free, waits for the other one and does not ask for the turn again and again.
func TestWhoIsWrittenWaits(t *testing.T) {
	t.Parallel()
	began, g := newBatches()
	release := occupied(t, began, g)
	wait := send(t, g, "a", "b")
	gatheredWaits(g, 2)
	release()
	both := <-began
	quiet := 0 // how often in a row nobody took the free turn
	for round := 0; quiet < 3 && round < 100; round++ {
		quiet++
		g.mu.Lock() // who takes the turn now keeps it
		for range 20_000 {
			if runtime.Gosched(); len(g.turns) > 1 {
				quiet = 0
				break
			}
		}
		g.mu.Unlock()
		for n := 0; n < 20_000 && len(g.turns) > 1; n++ {
			runtime.Gosched() // it finds that there is nothing, and gives the turn back
		}
	}
	if quiet < 3 {
		t.Error("who is being written takes the free turn again and again")
	}
	both.end <- nil
	if err := errors.Join(wait()...); err != nil {
		t.Error(err)
	}
}

func TestOneWhoIsRefusedHarmsNoOther(t *testing.T) {
	t.Parallel()
	began, g := newBatches()
	release := occupied(t, began, g)
	wait := send(t, g, "a", "b", "c")
	gatheredWaits(g, 3)
	release()
	bad := errors.New("bad")
	all := <-began
	if len(all.texts) != 3 {
		t.Fatalf("written together: %q", all.texts)
	}
	all.end <- bad
	for range 3 {
		one := <-began
		if one.texts[0] == "b" {
			one.end <- bad
		} else {
			one.end <- nil
		}
	}
	if errs := wait(); errs[0] != nil || !errors.Is(errs[1], bad) || errs[2] != nil {
		t.Errorf("got %v", errs)
	}
}

func TestADatabaseThatIsGoneIsAskedOnce(t *testing.T) {
	t.Parallel()
	began, g := newBatches()
	release := occupied(t, began, g)
	wait := send(t, g, "a", "b", "c")
	gatheredWaits(g, 3)
	release()
	all := <-began
	all.end <- fault.New(fault.Unavailable, "gone")
	for _, err := range wait() {
		wantKind(t, err, fault.Unavailable)
	}
}

func TestOneWhoLeavesIsNotWritten(t *testing.T) {
	t.Parallel()
	began, g := newBatches()
	release := occupied(t, began, g)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- g.do(ctx, "a gone") }()
	gatheredWaits(g, 1)
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wait := send(t, g, "b")
	gatheredWaits(g, 1)
	release()
	next := <-began
	if !slices.Equal(next.texts, []string{"b"}) {
		t.Errorf("written: %q", next.texts)
	}
	next.end <- nil
	if err := errors.Join(wait()...); err != nil {
		t.Error(err)
	}
}

func TestAGatheringIsBounded(t *testing.T) {
	t.Parallel()
	began, g := newBatches()
	release := occupied(t, began, g)
	g.waiting = make([]*gathered[string], gatherWaiting)
	err := g.do(t.Context(), "one more")
	g.waiting = nil
	wantKind(t, err, fault.Unavailable)
	if fault.RetryAfter(err) == 0 {
		t.Errorf("%v does not say when to come back", err)
	}
	release()
}

func TestAWriterThatPanicsKeepsNobody(t *testing.T) {
	t.Parallel()
	began, goOn := make(chan int), make(chan bool)
	g := newGathering(func(s string) string { return s }, func(_ context.Context, all []string) error {
		began <- len(all)
		<-goOn
		panic("a mistake")
	})
	outcomes := make(chan error)
	one := func(text string) {
		defer func() {
			if recover() != nil {
				outcomes <- errors.New("panicked")
			}
		}()
		outcomes <- g.do(t.Context(), text)
	}
	for n := range gatherWriters {
		go one(fmt.Sprint(n))
		<-began
	}
	go one("a")
	go one("b")
	gatheredWaits(g, 2)
	goOn <- true
	if together := <-began; together != 2 {
		t.Fatalf("%d were written together", together)
	}
	for range gatherWriters {
		goOn <- true
	}
	for range gatherWriters + 2 {
		if err := <-outcomes; err == nil {
			t.Error("a write that panicked succeeded")
		}
	}
	if len(g.turns) > 0 {
		t.Error("a turn was not given back")
	}
}
