package historytest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/history"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func at(minutes int) time.Time {
	return time.Date(2026, 11, 26, 10, minutes, 0, 1000, time.UTC)
}

// call is the n-th call of somebody.
func call(n int, actor, module string) history.Call {
	return history.Call{
		Actor: actor, ActorKind: fleet.UserActor, Module: module, Action: "status", Input: fmt.Sprintf(`{"n":%d,"t":"é\u0000"}`, n),
		Targets: "all nodes; fact os.family=Debian",
		Nodes:   5, Counts: map[action.Code]int{action.Done: 3, action.Offline: 2}, Began: at(n), Ended: at(n + 1), Left: n%2 == 1,
	}
}

// RunStore is what every store does. open gives an empty one.
func RunStore(t *testing.T, open func(t *testing.T) history.Store) {
	t.Helper()
	ids := func(t *testing.T, s history.Store, p history.Page) (list []int64) {
		t.Helper()
		calls, err := s.Calls(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			list = append(list, c.ID)
		}
		return list
	}
	t.Run("what is kept comes back, the newest first", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		var saved []history.Call
		for i, who := range []string{"ann", "bob", "ann", "ann"} {
			c := call(i, who, []string{"service", "package"}[i/3])
			id, err := s.SaveCall(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			c.ID = id
			saved = append(saved, c)
			got, err := s.Call(t.Context(), id)
			if diff := cmp.Diff(c, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		}
		if _, err := s.Call(t.Context(), saved[3].ID+1); !fault.Is(err, fault.NotFound) {
			t.Errorf("a call that is not there: %v", err)
		}
		for what, c := range map[string]struct {
			page history.Page
			want []int64
		}{
			"all":           {history.Page{Limit: 9}, []int64{saved[3].ID, saved[2].ID, saved[1].ID, saved[0].ID}},
			"the first two": {history.Page{Limit: 2}, []int64{saved[3].ID, saved[2].ID}},
			"the next":      {history.Page{Limit: 2, Before: saved[2].ID}, []int64{saved[1].ID, saved[0].ID}},
			"of one person": {history.Page{Limit: 2, Before: saved[3].ID, Actor: "ann"}, []int64{saved[2].ID, saved[0].ID}},
			"of a module":   {history.Page{Limit: 9, Module: "package"}, []int64{saved[3].ID}},
			"of nobody":     {history.Page{Limit: 9, Actor: "eve"}, nil},
		} {
			if diff := cmp.Diff(c.want, ids(t, s, c.page)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
	})
	t.Run("what ended before is forgotten, and its ID is not given again", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		var last int64
		for i := range 4 {
			id, err := s.SaveCall(t.Context(), call(i, "ann", "service"))
			if err != nil || id <= last {
				t.Fatalf("%d after %d, %v", id, last, err)
			}
			last = id
		}
		for _, c := range []struct{ before, want int }{{3, 2}, {3, 0}, {9, 2}} {
			if n, err := s.PruneCalls(t.Context(), at(c.before)); err != nil || n != c.want {
				t.Errorf("before %d: %d, %v", c.before, n, err)
			}
		}
		if id, err := s.SaveCall(t.Context(), call(5, "ann", "service")); err != nil || id <= last {
			t.Errorf("%d after %d, %v", id, last, err)
		}
	})
}
