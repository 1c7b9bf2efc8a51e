package scheduletest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/schedule"
	"github.com/tutti-project/tutti/internal/job/submit"
)

// RunStore runs the conformance suite of schedule.Store. open returns an empty store that the test owns.
func RunStore(t *testing.T, open func(t *testing.T) schedule.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, schedule.Store){"rows": rows, "due": due, "prune": prune} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func when(second int) time.Time { return time.Date(2026, 11, 26, 20, 0, second, 123456000, time.UTC) }

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// create stores an entry whose next run is at a second.
func create(t *testing.T, s schedule.Store, second int) schedule.Entry {
	t.Helper()
	e, err := s.CreateSchedule(t.Context(), schedule.Entry{
		Enabled: true, NextRun: when(second), Sealed: []byte{1, 2},
		Content: schedule.Content{
			Order: submit.Order{
				Spec: job.Spec{Kind: job.Task, Environment: "production", Targets: job.Targets{Nodes: []fleet.Certname{"a"}}, Userdata: []byte(`{"x":1}`)},
				Task: &submit.Task{Name: "package", Params: []byte(`{"a":1}`)}, Skip: true,
			},
			Hidden: []string{"password"}, Owner: schedule.Owner{Kind: fleet.UserActor, Name: "ann"},
			CreatedAt: when(0), Start: when(second), Interval: time.Hour,
		},
	})
	if err != nil || e.ID == 0 || e.Revision != 1 {
		t.Fatalf("entry %d, revision %d, %v", e.ID, e.Revision, err)
	}
	return e
}

func rows(t *testing.T, s schedule.Store) {
	a, b := create(t, s, 10), create(t, s, 5)
	got, err := s.Schedule(t.Context(), a.ID)
	same(t, "as it was made", a, got)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Schedules(t.Context())
	same(t, "all", []schedule.Entry{a, b}, all)
	if err != nil {
		t.Fatal(err)
	}
	changed := a
	changed.LastRun, changed.LastJob, changed.LastError, changed.NextRun, changed.Enabled, changed.Sealed = when(10), 7, "no", time.Time{}, false, nil
	saved, err := s.SaveSchedule(t.Context(), changed)
	if err != nil || saved.Revision != 2 {
		t.Fatalf("revision %d, %v", saved.Revision, err)
	}
	got, err = s.Schedule(t.Context(), a.ID)
	same(t, "as it was changed", saved, got)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveSchedule(t.Context(), changed); fault.Of(err) != fault.Conflict {
		t.Errorf("changed from what it was before: %v", err)
	}
	a.ID = 99
	if _, err := s.SaveSchedule(t.Context(), a); fault.Of(err) != fault.NotFound {
		t.Errorf("changed although it is not there: %v", err)
	}
	if _, err := s.Schedule(t.Context(), 99); fault.Of(err) != fault.NotFound {
		t.Errorf("read although it is not there: %v", err)
	}
}

func due(t *testing.T, s schedule.Store) {
	a, b, off, over := create(t, s, 10), create(t, s, 5), create(t, s, 1), create(t, s, 1)
	off.Enabled, over.NextRun = false, time.Time{}
	for _, e := range []schedule.Entry{off, over} {
		if _, err := s.SaveSchedule(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		second, n int
		want      []schedule.Entry
	}{
		"too early": {4, 9, nil}, "the first": {5, 9, []schedule.Entry{b}}, "both, the longest due first": {11, 9, []schedule.Entry{b, a}},
		"one of them": {11, 1, []schedule.Entry{b}},
	} {
		got, err := s.DueSchedules(t.Context(), when(c.second), c.n)
		if err != nil {
			t.Fatal(err)
		}
		same(t, what, c.want, got)
	}
}

func prune(t *testing.T, s schedule.Store) {
	going, off, over, late := create(t, s, 1), create(t, s, 2), create(t, s, 3), create(t, s, 4)
	off.Enabled, over.NextRun, late.NextRun, late.LastRun = false, time.Time{}, time.Time{}, when(50)
	for _, e := range []schedule.Entry{off, over, late} {
		if _, err := s.SaveSchedule(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.PruneSchedules(t.Context(), when(30)); err != nil || n != 2 {
		t.Errorf("%d went, %v", n, err)
	}
	left, err := s.Schedules(t.Context())
	if err != nil || len(left) != 2 || left[0].ID != going.ID || left[1].ID != late.ID {
		t.Errorf("left: %v, %v", left, err)
	}
}
