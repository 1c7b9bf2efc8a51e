package machine

import (
	"slices"
	"sync"

	agentevents "github.com/tutti-project/tutti/internal/agent/events"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Log is an events.Log in memory. It is safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	order   []string
	runs    map[string]*written
	changed chan struct{}
}

type written struct {
	events []pxp.RunEvent
	over   bool
}

var _ agentevents.Log = (*Log)(nil)

// NewLog returns an empty one.
func NewLog() *Log { return &Log{runs: map[string]*written{}, changed: make(chan struct{}, 1)} }

// Write is what a run does: it writes events; over says that it is gone.
func (l *Log) Write(run string, over bool, events ...pxp.RunEvent) {
	l.mu.Lock()
	w := l.runs[run]
	if w == nil {
		w = &written{}
		l.runs[run], l.order = w, append(l.order, run)
	}
	w.events, w.over = append(w.events, events...), over
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Lose throws away a run's events up to a number.
func (l *Log) Lose(run string, n int) { _ = l.Trim(run, n) }

// Runs implements agentevents.Log.
func (l *Log) Runs() ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.order), nil
}

// Trim implements agentevents.Log.
func (l *Log) Trim(run string, n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.runs[run]; w != nil && len(w.events) > 0 {
		last := w.events[len(w.events)-1].N
		w.events = slices.DeleteFunc(slices.Clone(w.events), func(e pxp.RunEvent) bool { return e.N <= n && e.N < last })
	}
	return nil
}

// Forget implements agentevents.Log.
func (l *Log) Forget(run string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs, run)
	l.order = slices.DeleteFunc(l.order, func(one string) bool { return one == run })
	return nil
}

// Changed implements agentevents.Log.
func (l *Log) Changed() <-chan struct{} { return l.changed }

// Open implements agentevents.Log.
func (l *Log) Open(run string) (agentevents.Tail, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs[run] == nil {
		return nil, fault.New(fault.NotFound, "there is no run %s", run)
	}
	return &tail{log: l, run: run}, nil
}

type tail struct {
	log  *Log
	run  string
	last int
}

// Next implements agentevents.Tail.
func (t *tail) Next(n int) (events []pxp.RunEvent, over bool, err error) {
	t.log.mu.Lock()
	defer t.log.mu.Unlock()
	w := t.log.runs[t.run]
	if w == nil {
		return nil, true, nil
	}
	for _, e := range w.events {
		if e.N > t.last && len(events) < n {
			events = append(events, e)
			t.last = e.N
		}
	}
	return events, w.over && len(events) == 0, nil
}

// Close implements agentevents.Tail.
func (t *tail) Close() error { return nil }
