// Package eventstest holds the suite that every log of a node's events passes.
package eventstest

import (
	"fmt"
	"testing"
	"time"

	agentevents "github.com/tutti-project/tutti/internal/agent/events"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Writer is a run: it writes events into a log, and is over.
type Writer interface {
	Write(events ...pxp.RunEvent)
	Over()
}

// Backend is a log, and how runs write into it.
type Backend struct {
	Log   agentevents.Log
	Begin func(run string) Writer
}

// RunLog tests a log; each test gets an empty one.
func RunLog(t *testing.T, open func(t *testing.T) Backend) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Backend){
		"read while written": readWhileWritten, "many": many, "trimmed": trimmed, "trimmed to the end": trimmedToTheEnd, "forgotten": forgotten, "told": told,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func made(n int) pxp.RunEvent {
	return pxp.RunEvent{N: n, Kind: pxp.ResourceEvent, At: time.Date(2026, 11, 22, 1, 2, 3, n, time.UTC), Title: fmt.Sprintf("naïve \"%d\"\n", n)}
}

// openTail opens the run r.
func openTail(t *testing.T, l agentevents.Log) agentevents.Tail {
	t.Helper()
	tail, err := l.Open("r")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tail.Close() })
	return tail
}

// all reads what there is now.
func all(t *testing.T, tail agentevents.Tail) (ns []int, over bool) {
	t.Helper()
	for {
		events, over, err := tail.Next(7)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Title != made(e.N).Title || !e.At.Equal(made(e.N).At) {
				t.Errorf("event %d is %+v", e.N, e)
			}
			ns = append(ns, e.N)
		}
		if len(events) == 0 {
			return ns, over
		}
	}
}

func want(t *testing.T, tail agentevents.Tail, first, last int, over bool) {
	t.Helper()
	ns, isOver := all(t, tail)
	if len(ns) != max(0, last-first+1) || isOver != over || len(ns) > 0 && (ns[0] != first || ns[len(ns)-1] != last) {
		t.Errorf("%d events, %v; want %d to %d; over: %t", len(ns), ns[:min(len(ns), 5)], first, last, isOver)
	}
}

func readWhileWritten(t *testing.T, b Backend) {
	w := b.Begin("r")
	w.Write(made(1))
	tail := openTail(t, b.Log)
	want(t, tail, 1, 1, false)
	want(t, tail, 1, 0, false)
	w.Write(made(2), made(3))
	want(t, tail, 2, 3, false)
	w.Over()
	want(t, tail, 1, 0, true)
	want(t, openTail(t, b.Log), 1, 3, true)
	if runs, err := b.Log.Runs(); err != nil || len(runs) != 1 || runs[0] != "r" {
		t.Errorf("runs %v, %v", runs, err)
	}
}

func many(t *testing.T, b Backend) {
	w := b.Begin("r")
	events := make([]pxp.RunEvent, 5000)
	for i := range events {
		events[i] = made(i + 1)
	}
	w.Write(events...)
	w.Over()
	want(t, openTail(t, b.Log), 1, 5000, true)
}

func trimmed(t *testing.T, b Backend) {
	w := b.Begin("r")
	for n := 1; n <= 3000; n++ {
		w.Write(made(n))
	}
	reading := openTail(t, b.Log)
	if err := b.Log.Trim("r", 2500); err != nil {
		t.Fatal(err)
	}
	w.Write(made(3001))
	w.Over()
	for _, tail := range []agentevents.Tail{reading, openTail(t, b.Log)} {
		ns, over := all(t, tail)
		if !over || len(ns) == 0 || ns[0] > 2501 || ns[len(ns)-1] != 3001 {
			t.Errorf("%d events from %d on; over: %t", len(ns), ns[:min(len(ns), 1)], over)
		}
	}
}

// trimmedToTheEnd has the last event stay: without it nobody would know that there was a run.
func trimmedToTheEnd(t *testing.T, b Backend) {
	w := b.Begin("r")
	w.Write(made(1), made(2), made(3))
	if err := b.Log.Trim("r", 3); err != nil {
		t.Fatal(err)
	}
	w.Over()
	ns, over := all(t, openTail(t, b.Log))
	if !over || len(ns) == 0 || ns[len(ns)-1] != 3 {
		t.Errorf("events %v; over: %t", ns, over)
	}
}

func forgotten(t *testing.T, b Backend) {
	b.Begin("r").Write(made(1))
	b.Begin("q").Write(made(1))
	for range 2 {
		if err := b.Log.Forget("r"); err != nil {
			t.Error(err)
		}
	}
	if runs, err := b.Log.Runs(); err != nil || len(runs) != 1 || runs[0] != "q" {
		t.Errorf("runs %v, %v", runs, err)
	}
	if _, err := b.Log.Open("r"); err == nil {
		t.Error("a run that was forgotten can be read")
	}
}

// told has the log say that something was written: to a run that is new, and to one that is read.
func told(t *testing.T, b Backend) {
	for step, write := range []func(){func() { b.Begin("r").Write(made(1)) }, func() { b.Begin("q").Write(made(1)) }} {
		write()
		select {
		case <-b.Log.Changed():
		case <-time.After(time.Minute):
			t.Fatalf("step %d: nobody said that there is more", step)
		}
	}
}
