package schedule_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
	"github.com/tutti-project/tutti/internal/job/schedule"
	"github.com/tutti-project/tutti/internal/job/schedule/scheduletest"
	"github.com/tutti-project/tutti/internal/job/submit"
)

// world takes orders: one job for each key, as the job core does.
type world struct {
	jobs    map[string]int64
	given   []submit.Order
	at      []time.Time
	actors  []fleet.Actor
	refuses error
	full    string // the key of orders that cannot be taken now begins so; empty: none does
	gone    bool   // the owner is
}

func (*world) Spec(_ context.Context, o submit.Order) (job.Spec, error) {
	spec := o.Spec
	if o.Task != nil {
		spec.Task = &job.TaskSpec{Name: o.Task.Name, Parameters: []byte(`{"a":1}`), Secret: []byte(`{"password":"x"}`)}
	}
	return spec, nil
}

func (w *world) Submit(_ context.Context, actor fleet.Actor, o submit.Order) (job.Job, error) {
	if w.refuses != nil {
		return job.Job{}, w.refuses
	}
	if w.full != "" && strings.HasPrefix(o.Spec.Key, w.full) {
		return job.Job{}, fault.New(fault.Unavailable, "a query is not answered")
	}
	if id, there := w.jobs[o.Spec.Key]; there {
		return job.Job{ID: id}, nil
	}
	w.jobs[o.Spec.Key] = int64(len(w.jobs) + 1)
	w.given, w.at, w.actors = append(w.given, o), append(w.at, time.Now()), append(w.actors, actor)
	return job.Job{ID: w.jobs[o.Spec.Key]}, nil
}

func (w *world) Actor(_ context.Context, kind fleet.ActorKind, name string) (fleet.Actor, error) {
	if w.gone {
		return fleet.Actor{}, fault.New(fault.Denied, "the user %s is not there any more", name)
	}
	return fleet.Actor{Kind: kind, Name: name}, nil
}

// forgetful loses the first notes of what was ordered, as a server does that dies.
type forgetful struct {
	*scheduletest.Store
	loses int
}

func (f *forgetful) SaveSchedule(ctx context.Context, e schedule.Entry) (schedule.Entry, error) {
	if f.loses--; f.loses >= 0 {
		return e, errors.New("the server died")
	}
	return f.Store.SaveSchedule(ctx, e)
}

func newService(w *world, store schedule.Store) *schedule.Service {
	return schedule.New(schedule.Parts{Store: store, Orders: w, Owners: w, Sealer: jobtest.Seals{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
}

// during runs a service for a while.
func during(t *testing.T, s *schedule.Service, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
}

var ann = fleet.Actor{Kind: fleet.UserActor, Name: "ann", Narrowed: true, Within: []fleet.Grant{{Permission: fleet.TaskRun}}}

func order() submit.Order {
	return submit.Order{Spec: job.Spec{Kind: job.Task, Environment: "production"}, Task: &submit.Task{Name: "m::t", Params: []byte(`{"a":1,"password":"x"}`)}}
}

func TestAnOrderIsGivenAtItsTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, store := &world{jobs: map[string]int64{}}, &forgetful{Store: scheduletest.NewStore(), loses: 2}
		s := newService(w, store)
		start := time.Now().Add(10 * time.Minute)
		e, err := s.Create(t.Context(), ann, order(), schedule.Timing{Start: start, Interval: time.Hour})
		if err != nil || strings.Contains(string(e.Order.Task.Params), "password") || e.Hidden[0] != "password" {
			t.Fatalf("%+v, %v", e, err)
		}
		during(t, s, 9*time.Minute)
		if len(w.given) != 0 {
			t.Fatal("too early")
		}
		during(t, s, 2*time.Minute)
		if len(w.given) != 1 || w.at[0].Sub(start) > 2*time.Second || string(w.given[0].Task.Params) != `{"a":1,"password":"x"}` {
			t.Fatalf("%d given: %+v at %v", len(w.given), w.given, w.at)
		}
		if a := w.actors[0]; a.Name != "ann" || !a.Narrowed || len(a.Within) != 1 || w.given[0].Spec.Schedule != e.ID {
			t.Errorf("given as %+v", a)
		}
		<-time.After(5 * time.Hour) // no server runs
		during(t, s, time.Minute)
		if len(w.given) != 2 {
			t.Errorf("what was due while nothing ran was given %d times", len(w.given)-1)
		}
		e, err = s.Entry(t.Context(), e.ID)
		if err != nil || e.NextRun.Sub(start)%time.Hour != 0 || !e.NextRun.After(time.Now()) || e.LastJob != 2 {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

func TestARefusedOrderIsNoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{jobs: map[string]int64{}, gone: true}
		s := newService(w, scheduletest.NewStore())
		e, err := s.Create(t.Context(), ann, order(), schedule.Timing{Start: time.Now().Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		w.refuses = fault.New(fault.Unavailable, "the store is full")
		w.gone = false
		during(t, s, 2*time.Minute)
		if now, _ := s.Entry(t.Context(), e.ID); !now.LastRun.IsZero() { // it is due still
			t.Errorf("%+v", now)
		}
		w.gone = true
		during(t, s, 2*time.Second)
		now, err := s.Entry(t.Context(), e.ID)
		if err != nil || !strings.Contains(now.LastError, "not there any more") || now.LastJob != 0 || !now.NextRun.IsZero() {
			t.Errorf("%+v, %v", now, err)
		}
	})
}

func TestAnOrderThatCannotBeTakenHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{jobs: map[string]int64{}}
		s := newService(w, scheduletest.NewStore())
		for i := range 2 {
			if _, err := s.Create(t.Context(), ann, order(), schedule.Timing{Start: time.Now().Add(time.Duration(i+1) * time.Second)}); err != nil {
				t.Fatal(err)
			}
		}
		w.full = "schedule/1/"
		during(t, s, time.Minute)
		if len(w.given) != 1 || w.given[0].Spec.Schedule != 2 {
			t.Errorf("%d given: %+v", len(w.given), w.given)
		}
		w.full = ""
		during(t, s, time.Minute)
		if len(w.given) != 2 {
			t.Errorf("%d given in the end", len(w.given))
		}
	})
}

func TestChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{jobs: map[string]int64{}}
		s := newService(w, scheduletest.NewStore())
		for what, at := range map[string]schedule.Timing{
			"past":            {Start: time.Now().Add(-time.Second)},
			"too often":       {Start: time.Now().Add(time.Hour), Interval: time.Second},
			"too seldom":      {Start: time.Now().Add(time.Hour), Interval: 2 * schedule.MaxInterval},
			"in 100 years":    {Start: time.Now().AddDate(100, 0, 0)},
			"long ago, again": {Start: time.Now().AddDate(-5, 0, 0), Interval: time.Hour},
		} {
			if _, err := s.Create(t.Context(), ann, order(), at); fault.Of(err) != fault.Invalid {
				t.Errorf("%s: %v", what, err)
			}
		}
		e, err := s.Create(t.Context(), ann, order(), schedule.Timing{Start: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		later := schedule.Timing{Start: time.Now().Add(2 * time.Hour)}
		if e, err = s.Change(t.Context(), ann, e.ID, schedule.Change{Timing: &later}); err != nil || !e.NextRun.Equal(later.Start) {
			t.Errorf("%+v, %v", e, err)
		}
		// What a narrower token orders is given with no more than that token may.
		if !e.Owner.Narrowed || len(e.Owner.Within) != 1 {
			t.Errorf("owner %+v", e.Owner)
		}
		narrower := fleet.Actor{Kind: ann.Kind, Name: ann.Name, Narrowed: true, Within: []fleet.Grant{{Permission: fleet.TaskRun, Tasks: []string{"m::t"}}}}
		again := order()
		if e, err = s.Change(t.Context(), narrower, e.ID, schedule.Change{Order: &again}); err != nil || len(e.Owner.Within) != 1 ||
			len(e.Owner.Within[0].Tasks) != 1 {
			t.Errorf("%+v, %v", e.Owner, err)
		}
		off, on := false, true
		if e, err = s.Change(t.Context(), ann, e.ID, schedule.Change{Enabled: &off}); err != nil || e.Enabled || !e.NextRun.IsZero() {
			t.Errorf("%+v, %v", e, err)
		}
		if _, err = s.Change(t.Context(), ann, e.ID, schedule.Change{Enabled: &on}); fault.Of(err) != fault.Conflict {
			t.Errorf("enabled again: %v", err)
		}
		if _, err = s.Change(t.Context(), ann, 99, schedule.Change{}); fault.Of(err) != fault.NotFound {
			t.Errorf("changed although it is not there: %v", err)
		}
	})
}

func TestNext(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 26, 20, 0, 0, 0, time.UTC)
	for _, c := range []struct{ interval, after, want time.Duration }{
		{0, -time.Second, 0},
		{0, 0, -1},
		{time.Hour, -time.Second, 0},
		{time.Hour, 0, time.Hour},
		{time.Hour, 59 * time.Minute, time.Hour},
		{time.Hour, time.Hour, 2 * time.Hour},
		{time.Hour, 1000*time.Hour + 1, 1001 * time.Hour},
	} {
		want := start.Add(c.want)
		if c.want < 0 {
			want = time.Time{}
		}
		if got := schedule.Next(start, c.interval, start.Add(c.after)); !got.Equal(want) {
			t.Errorf("every %s, after %s: %s, want %s", c.interval, c.after, got, want)
		}
	}
}
