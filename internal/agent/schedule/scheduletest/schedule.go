// Package scheduletest has a store and a runner in memory, for tests and simulated nodes,
// and what every store and runner must do.
package scheduletest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/agent/schedule"
	"github.com/tutti-project/tutti/internal/fault"
)

// Store keeps a state in memory.
type Store struct {
	mu    sync.Mutex
	state schedule.State
}

var _ schedule.Store = (*Store)(nil)

// Load implements schedule.Store.
func (s *Store) Load() (schedule.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, nil
}

// Save implements schedule.Store.
func (s *Store) Save(state schedule.State) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
	return nil
}

// Machine does runs in memory: they outlive engines. Its fields are set before it is used.
type Machine struct {
	Takes time.Duration                           // a run
	End   func(nth int) (schedule.Outcome, error) // what comes of the nth run; an error: it cannot begin. Nil: nothing changes

	mu   sync.Mutex
	runs []Run
}

// Run is one that began, or could not.
type Run struct {
	Name    string
	At      time.Time
	outcome schedule.Outcome
	over    chan struct{} // nil: it never began
}

var _ schedule.Runner = (*Machine)(nil)

// Begin implements schedule.Runner.
func (m *Machine) Begin(_ context.Context, run string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := Run{Name: run, At: time.Now(), outcome: schedule.Outcome{Status: schedule.Unchanged}}
	var err error
	if m.End != nil {
		r.outcome, err = m.End(len(m.runs) + 1)
	}
	if err == nil {
		r.over = make(chan struct{})
		time.AfterFunc(m.Takes, func() { close(r.over) })
	}
	m.runs = append(m.runs, r)
	return err
}

// Await implements schedule.Runner.
func (m *Machine) Await(ctx context.Context, run string) (schedule.Outcome, error) {
	for _, r := range m.Runs() {
		if r.Name != run || r.over == nil {
			continue
		}
		select {
		case <-r.over:
			return r.outcome, nil
		case <-ctx.Done():
			return schedule.Outcome{}, ctx.Err()
		}
	}
	return schedule.Outcome{}, fault.New(fault.NotFound, "the run never began")
}

// Runs are all runs until now.
func (m *Machine) Runs() []Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Run(nil), m.runs...)
}

// StoreSuite is what a store must do. Open gives one on a place that is new, and on the same place again.
func StoreSuite(t *testing.T, open func() schedule.Store) {
	t.Helper()
	first, err := open().Load()
	if err != nil || first != (schedule.State{}) {
		t.Fatalf("a new store has %+v, %v", first, err)
	}
	want := schedule.State{
		Running: "run", Began: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Ended: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC),
		Last: schedule.Outcome{Status: schedule.NotDone, Pending: 3, Detail: "why \"not\"\n", Catalog: "abc", Run: "before", UUID: "u"}, Failures: 3,
		Told: time.Date(2026, 1, 2, 3, 4, 5, 7, time.UTC),
	}
	for _, state := range []schedule.State{{Running: "other"}, want} {
		if err := open().Save(state); err != nil {
			t.Fatal(err)
		}
	}
	got, err := open().Load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept state (-want +got):\n%s", diff)
	}
}

// RunnerSuite is what a runner must do. Open gives one of a new process each time, on one machine. Its
// runs end by themselves.
func RunnerSuite(t *testing.T, open func() schedule.Runner) {
	t.Helper()
	ctx := t.Context()
	if _, err := open().Await(ctx, "never-begun"); fault.Of(err) != fault.NotFound {
		t.Errorf("a run that never began: %v", err)
	}
	first := open()
	for _, run := range []string{"run-1", "run-2"} { // the second one waits, or runs: its end counts
		if err := first.Begin(ctx, run); err != nil {
			t.Fatal(err)
		}
	}
	for _, run := range []string{"run-1", "run-2", "run-1"} {
		if o, err := first.Await(ctx, run); err != nil || o.Status == "" {
			t.Errorf("%s: %+v, %v", run, o, err)
		}
	}
	if o, err := open().Await(ctx, "run-1"); err != nil || o.Status == "" {
		t.Errorf("run-1, asked by the next process: %+v, %v", o, err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	third := open()
	if err := third.Begin(ctx, "run-3"); err != nil {
		t.Fatal(err)
	}
	if _, err := third.Await(ended, "run-3"); err == nil && ctx.Err() != nil {
		t.Error("a wait outlived its context")
	}
	if _, err := third.Await(ctx, "run-3"); err != nil {
		t.Errorf("run-3: %v", err)
	}
}
