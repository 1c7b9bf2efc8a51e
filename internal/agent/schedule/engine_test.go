package schedule_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/agent/schedule"
	"github.com/tutti-project/tutti/internal/agent/schedule/scheduletest"
	"github.com/tutti-project/tutti/internal/fault"
)

// refreshes counts.
type refreshes struct {
	mu    sync.Mutex
	count int
}

func (r *refreshes) Refresh(context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
}

// live runs an engine for a while.
func live(t *testing.T, d time.Duration, c schedule.Config, m schedule.Runner, s schedule.Store, during func(*schedule.Engine)) {
	t.Helper()
	e, err := schedule.New(c, m, &refreshes{}, s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() {
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	if during != nil {
		during(e)
	}
	running.Wait()
}

// begins are how long after start the runs began.
func begins(m *scheduletest.Machine, start time.Time) (all []time.Duration) {
	for _, r := range m.Runs() {
		all = append(all, r.At.Sub(start))
	}
	return all
}

func expect(t *testing.T, m *scheduletest.Machine, start time.Time, want ...time.Duration) {
	t.Helper()
	if diff := cmp.Diff(want, begins(m, start)); diff != "" {
		t.Errorf("runs began (-want +got):\n%s", diff)
	}
}

// The clock of a synctest bubble begins at midnight of a day, so slots of half are at whole half hours.

func TestScheduleGoesOnOverRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, m, s := time.Now(), &scheduletest.Machine{Takes: time.Minute}, &scheduletest.Store{}
		live(t, 65*time.Minute, half, m, s, nil)
		live(t, 5*time.Minute, half, m, s, nil) // a restart changes nothing
		<-time.After(85 * time.Minute)          // no agent ran at 90 and 120 and 150 minutes
		live(t, 30*time.Minute, half, m, s, nil)
		expect(t, m, start, 0, 30*time.Minute, 60*time.Minute, 155*time.Minute, 180*time.Minute)
	})
}

func TestARunOfAnEarlierProcessIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, m, s := time.Now(), &scheduletest.Machine{Takes: 10 * time.Minute}, &scheduletest.Store{}
		live(t, time.Minute, half, m, s, nil)
		if state, _ := s.Load(); state.Running == "" {
			t.Fatal("the run is not kept")
		}
		live(t, 40*time.Minute, half, m, s, func(e *schedule.Engine) { e.Tell(t.Context()) })
		expect(t, m, start, 0, 10*time.Minute, 30*time.Minute)
		for i, r := range m.Runs()[1:] {
			if before := m.Runs()[i]; r.At.Before(before.At.Add(m.Takes)) {
				t.Errorf("run %d began while another one went on", i+2)
			}
		}
	})
}

func TestARunThatNeverBeganIsDoneSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, m, s := time.Now(), &scheduletest.Machine{}, &scheduletest.Store{}
		if err := s.Save(schedule.State{Running: "killed-before-it-began", Began: start}); err != nil {
			t.Fatal(err)
		}
		live(t, 29*time.Minute, half, m, s, nil)
		expect(t, m, start, time.Minute)
	})
}

func TestBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &scheduletest.Machine{End: func(nth int) (schedule.Outcome, error) {
			switch nth {
			case 1, 3:
				return schedule.Outcome{}, fault.New(fault.Unavailable, "no room")
			case 2:
				return schedule.Outcome{Status: schedule.NotDone}, nil
			case 4:
				return schedule.Outcome{Status: schedule.Disabled}, nil
			}
			return schedule.Outcome{Status: schedule.Changed}, nil
		}}
		start, s := time.Now(), &scheduletest.Store{}
		live(t, 59*time.Minute, half, m, s, nil)
		expect(t, m, start, 0, time.Minute, 3*time.Minute, 7*time.Minute, 30*time.Minute)
		state, _ := s.Load()
		if state.Last.Status != schedule.Changed || state.Failures != 0 || state.Last.Run != m.Runs()[4].Name {
			t.Errorf("kept state %+v", state)
		}
	})
}

func TestToldRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, m := time.Now(), &scheduletest.Machine{Takes: 20 * time.Second}
		live(t, 29*time.Minute, half, m, &scheduletest.Store{}, func(e *schedule.Engine) {
			<-time.After(10 * time.Second) // the first run goes on
			for range 100 {
				e.Tell(t.Context())
			}
			<-time.After(10 * time.Minute)
			e.Tell(t.Context())
		})
		expect(t, m, start, 0, time.Minute, 10*time.Minute+10*time.Second)
	})
}

// forgetful is a store that does nothing right.
type forgetful struct{ load error }

func (f forgetful) Load() (schedule.State, error) { return schedule.State{Failures: 7}, f.load }
func (forgetful) Save(schedule.State) error       { return fault.New(fault.Unavailable, "the disk is full") }

func TestAStoreThatDoesNotKeep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, m := time.Now(), &scheduletest.Machine{}
		live(t, 31*time.Minute, half, m, forgetful{fault.New(fault.Invalid, "no JSON")}, nil)
		expect(t, m, start, 0, 30*time.Minute)
		if _, err := schedule.New(half, m, &refreshes{}, forgetful{fault.New(fault.Unavailable, "no disk")},
			slog.New(slog.DiscardHandler)); fault.Of(err) != fault.Unavailable {
			t.Errorf("a store that cannot be read: %v", err)
		}
	})
}
