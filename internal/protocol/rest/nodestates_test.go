package rest_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// statesOfFleet is what the nodes of fleetInStates are in, the list's way.
var statesOfFleet = map[string]string{
	"web-1": "failed", "bad-1": "failed", "back-1": "corrective", "new-1": "changed", "partly-1": "changed",
	"would-1": "pending", "same-1": "unchanged", "dry-1": "unchanged", "never-1": "none",
}

// fleetInStates is a bench with a node in each state. web-1 has a report of a change, and a catalog that does not compile.
func fleetInStates(t *testing.T) bench {
	t.Helper()
	b := newBench(t)
	begin := time.Now().Add(-10 * time.Minute)
	for i, r := range []inventory.Report{
		{Certname: "bad-1", Status: "failed", CorrectiveChange: true},
		{Certname: "back-1", Status: "changed", CorrectiveChange: true},
		{Certname: "new-1", Status: "changed"},
		{Certname: "partly-1", Status: "changed", NoopPending: true}, // one of its resources is noop, and the run was not
		{Certname: "would-1", Status: "unchanged", Noop: true, NoopPending: true},
		{Certname: "same-1", Status: "unchanged"},
		{Certname: "dry-1", Status: "unchanged", Noop: true},
	} {
		r.ID, r.Environment, r.ReceivedAt = fleet.DigestOf([]byte(r.Certname)), "production", begin.Add(time.Duration(i)*time.Minute)
		if r.Certname == "same-1" {
			r.ReceivedAt = begin.Add(-2 * time.Hour)
		}
		if r.NoopPending {
			r.Counts.Noop = 1
		}
		check(t, b.known.SaveReport(t.Context(), r))
	}
	_, _, err := b.known.SaveFacts(t.Context(), inventory.FactSet{Certname: "never-1", Environment: "other", Values: []byte(`{}`)})
	check(t, err)
	return b
}

// listed is the names of the nodes on all pages of a list, in its order.
func (b bench) listed(t *testing.T, query url.Values) (names []string) {
	t.Helper()
	for {
		var list api.List[api.Node]
		b.do(t, http.MethodGet, "/nodes?"+query.Encode(), "", &list)
		for _, n := range list.Items {
			names = append(names, n.Name)
			if want := statesOfFleet[n.Name]; n.State != want {
				t.Errorf("%s is %q in the list, not %q", n.Name, n.State, want)
			}
		}
		if list.Next == "" {
			return names
		}
		query.Set("after", list.Next)
	}
}

// The count of each state is as many nodes as a list of that state has, and the list says that state of each of them.
func TestCountsAreTheListsRows(t *testing.T) {
	t.Parallel()
	b := fleetInStates(t)
	var counts api.NodeCounts
	b.do(t, http.MethodGet, "/node-summary", "", &counts)
	told := map[string]int{
		"failed": counts.States.Failed, "corrective": counts.States.Corrective, "changed": counts.States.Changed,
		"pending": counts.States.Pending, "unchanged": counts.States.Unchanged, "none": counts.States.None,
	}
	sum := 0
	for state, n := range told {
		sum += n
		var want []string
		for name, of := range statesOfFleet {
			if of == state {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		if got := b.listed(t, url.Values{"state": {state}, "limit": {"1"}}); !slices.Equal(got, want) || n != len(want) {
			t.Errorf("%s: %d are counted, and the list has %q; want %q", state, n, got, want)
		}
	}
	if counts.Nodes != len(statesOfFleet) || sum != counts.Nodes {
		t.Errorf("%d nodes, and the states have %d", counts.Nodes, sum)
	}
	if c := counts.Connections; c.Yes != 1 || c.Yes+c.No+c.Never != counts.Nodes {
		t.Errorf("connections: %+v", c)
	}
	if counts.Late != 1 { // same-1; who never reported is not late
		t.Errorf("%d are late", counts.Late)
	}
	if got := b.listed(t, url.Values{"state": {"failed,none"}}); !slices.Equal(got, []string{"bad-1", "never-1", "web-1"}) {
		t.Errorf("two states: %q", got)
	}
	for query, want := range map[string][]string{"": {"bad-1", "web-1"}, "failed,none": {"bad-1", "web-1"}, "pending": nil} { // web-1's last run changed something
		if got := b.listed(t, url.Values{"status": {"failed"}, "state": {query}}); !slices.Equal(got, want) {
			t.Errorf("status failed, state %q: %q", query, got)
		}
	}
}

// An order holds over all pages, whatever their size; backwards, equal ones stay in the order of names.
func TestOrderOfNodes(t *testing.T) {
	t.Parallel()
	b := fleetInStates(t)
	byState := []string{"bad-1", "web-1", "back-1", "new-1", "partly-1", "would-1", "dry-1", "same-1", "never-1"}
	for order, want := range map[string][]string{
		"":         {"back-1", "bad-1", "dry-1", "never-1", "new-1", "partly-1", "same-1", "web-1", "would-1"},
		"name":     {"back-1", "bad-1", "dry-1", "never-1", "new-1", "partly-1", "same-1", "web-1", "would-1"},
		"-name":    {"would-1", "web-1", "same-1", "partly-1", "new-1", "never-1", "dry-1", "bad-1", "back-1"},
		"state":    byState,
		"-state":   {"never-1", "dry-1", "same-1", "would-1", "new-1", "partly-1", "back-1", "bad-1", "web-1"},
		"reported": {"never-1", "same-1", "bad-1", "back-1", "new-1", "partly-1", "would-1", "dry-1", "web-1"},
	} {
		for _, limit := range []int{1, 2, 4, 9, 1000} {
			if got := b.listed(t, url.Values{"order": {order}, "limit": {strconv.Itoa(limit)}}); !slices.Equal(got, want) {
				t.Errorf("order %q in pages of %d: %q, want %q", order, limit, got, want)
			}
		}
	}
	if got := b.listed(t, url.Values{"order": {"state"}, "state": {"failed,none"}, "environment": {"production"}}); !slices.Equal(got, byState[:2]) {
		t.Errorf("with a filter: %q", got)
	}
}

// Counts and orders see no more nodes than a list does.
func TestCountsAreOfWhatOneMaySee(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.seed(t, "db-1", "other")
	for name, want := range map[string]int{"web team": 1, "viewer": 2} {
		counts := get[api.NodeCounts](t, b, name, "/node-summary")
		ordered := get[api.List[api.Node]](t, b, name, "/nodes?order=-state")
		if counts.Nodes != want || len(ordered.Items) != want {
			t.Errorf("%s: %d are counted, %d listed; want %d", name, counts.Nodes, len(ordered.Items), want)
		}
	}
}

func TestOrdersAndStatesThatAreNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for query, want := range map[string]string{
		"/nodes?order=age":           `order must be name, reported or state, perhaps with a minus before it, not \"age\"`,
		"/nodes?order=--name":        "order must be",
		"/nodes?order=state&after=x": "after",
		"/nodes?state=green":         `state: \"green\" is none of failed, corrective, changed, pending, unchanged, none`,
		"/node-summary?state=green":  `state: \"green\" is none of failed, corrective, changed, pending, unchanged, none`,
	} {
		if w := b.call(admin, http.MethodGet, api.Prefix+query, nil); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if got := b.call(admin, http.MethodGet, api.Prefix+"/nodes?order=state&after=7000", nil); got.Code != http.StatusOK ||
		!strings.Contains(got.Body.String(), `"items":[]`) {
		t.Errorf("behind the end: %d %s", got.Code, got.Body)
	}
}
