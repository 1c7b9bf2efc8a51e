package memotest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job/memo"
)

// RunStore runs the conformance suite of memo.Store. open returns an empty store that the test owns.
func RunStore(t *testing.T, open func(t *testing.T) memo.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, memo.Store){"plans": plans, "task targets": targets} {
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

func plans(t *testing.T, s memo.Store) {
	ctx := t.Context()
	var all []memo.Plan
	for i, actor := range []string{"ann", "bob", "ann"} {
		p, err := s.CreatePlan(ctx, memo.Plan{
			Actor: actor, ActorKind: fleet.UserActor, Status: memo.Running, CreatedAt: when(i),
			PlanContent: memo.PlanContent{Name: "m::p", Params: []byte(`{"a":1}`), Sensitive: []string{"b"}},
		})
		if err != nil || p.ID == 0 {
			t.Fatalf("plan %d, %v", p.ID, err)
		}
		all = append(all, p)
	}
	over, err := s.FinishPlan(ctx, all[0].ID, memo.End{Status: memo.Failure, Result: []byte(`"no"`), At: when(30)})
	if err != nil {
		t.Fatal(err)
	}
	want := all[0]
	want.Status, want.Result, want.FinishedAt = memo.Failure, []byte(`"no"`), when(30)
	same(t, "the end", want, over)
	again, err := s.FinishPlan(ctx, all[0].ID, memo.End{Status: memo.Success, At: when(40)})
	same(t, "the first word counts", want, again)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := s.Plan(ctx, all[0].ID)
	same(t, "as it is stored", want, stored)
	if err != nil {
		t.Fatal(err)
	}
	all[0] = want
	for what, c := range map[string]struct {
		page  memo.Page
		want  []memo.Plan
		total int
	}{
		"all":              {memo.Page{Limit: 9}, []memo.Plan{all[2], all[1], all[0]}, 3},
		"a page":           {memo.Page{Limit: 1, Offset: 1}, []memo.Plan{all[1]}, 3},
		"behind the end":   {memo.Page{Limit: 1, Offset: 7}, nil, 3},
		"the oldest first": {memo.Page{Limit: 9, Ascending: true}, all, 3},
		"somebody's":       {memo.Page{Limit: 9, Actor: "bob"}, []memo.Plan{all[1]}, 1},
		"that ended":       {memo.Page{Limit: 9, FinishedFrom: when(1)}, []memo.Plan{all[0]}, 1},
		"until":            {memo.Page{Limit: 9, FinishedUntil: when(29)}, nil, 0},
	} {
		got, total, err := s.Plans(ctx, c.page)
		if err != nil || total != c.total {
			t.Errorf("%s: %d in all, %v; want %d", what, total, err, c.total)
		}
		same(t, what, c.want, got)
	}
	if _, err := s.Plan(ctx, 99); fault.Of(err) != fault.NotFound {
		t.Errorf("a plan that is not there: %v", err)
	}
	if _, err := s.FinishPlan(ctx, 99, memo.End{Status: memo.Success}); fault.Of(err) != fault.NotFound {
		t.Errorf("the end of a plan that is not there: %v", err)
	}
	if n, err := s.PrunePlans(ctx, when(2)); err != nil || n != 1 { // nobody ended the second one
		t.Errorf("%d plans went, %v", n, err)
	}
}

func targets(t *testing.T, s memo.Store) {
	ctx := t.Context()
	var all []memo.TaskTarget
	for range 2 {
		made, err := s.CreateTaskTarget(ctx, memo.TaskTarget{TaskTargetContent: memo.TaskTargetContent{
			DisplayName: "web", Tasks: []string{"package"}, Nodes: []string{"a"}, NodeGroups: []string{"g"}, Query: "q",
		}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, made)
	}
	if all[0].ID == all[1].ID {
		t.Error("two sets have one number")
	}
	got, err := s.TaskTargets(ctx)
	same(t, "all sets", all, got)
	if err != nil {
		t.Fatal(err)
	}
	one, err := s.TaskTarget(ctx, all[1].ID)
	same(t, "a set", all[1], one)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.TaskTarget(ctx, 99); fault.Of(err) != fault.NotFound {
		t.Errorf("a set that is not there: %v", err)
	}
	for len(all) < memo.MaxTargets {
		made, err := s.CreateTaskTarget(ctx, memo.TaskTarget{TaskTargetContent: memo.TaskTargetContent{DisplayName: "x"}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, made)
	}
	if _, err := s.CreateTaskTarget(ctx, memo.TaskTarget{}); fault.Of(err) != fault.Conflict {
		t.Errorf("a set too many: %v", err)
	}
}
