package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/deliver/delivertest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/protocol/rest"
)

// deliveries is rest.Deliveries over fakes: a version is a word, and its catalog is
// there at once, except that slow is not, and that broken does not compile.
type deliveries struct {
	*deliver.Service
	store *delivertest.Fake
}

func newDeliveries() *deliveries {
	d := &deliveries{store: delivertest.New()}
	d.Service = deliver.NewService(deliver.Parts{
		Store: d.store, Groups: new(delivertest.Groups), Promoter: new(delivertest.Shown), Setting: func() deliver.Mode { return deliver.Live },
	})
	return d
}

func (d *deliveries) Generations(ctx context.Context, node fleet.Certname) ([]deliver.Generation, error) {
	return d.store.Generations(ctx, node)
}

func (d *deliveries) HeldIn(ctx context.Context, env fleet.Environment) ([]deliver.Held, error) {
	return d.store.HeldIn(ctx, env)
}

// Changes says that each step adds a note, but that of which nothing is stored.
func (d *deliveries) Changes(_ context.Context, steps []rest.CatalogStep) (changes api.FleetDifference, compared int, err error) {
	changes.Nodes = len(steps)
	for _, s := range steps {
		if s.From != "gone" {
			compared++
			changes.Groups = append(changes.Groups, api.ChangeGroup{
				Change: "added", Type: "Notify", Title: string(s.From + " to " + s.To), Nodes: 1, Examples: []string{string(s.Node)},
			})
		}
	}
	return changes, compared, nil
}

func (d *deliveries) ModesSet(ctx context.Context) ([]deliver.ModeSet, error) {
	return d.store.ModesSet(ctx)
}

func (d *deliveries) Targets(ctx context.Context, t job.Targets) ([]fleet.Certname, error) {
	return jobParts{}.Resolve(ctx, t)
}

func (d *deliveries) Stage(ctx context.Context, nodes []fleet.Certname, _ fleet.Environment, version, ticket string) ([]deliver.Prepared, error) {
	var wishes []deliver.Wish
	for _, node := range nodes {
		wishes = append(wishes, deliver.Wish{Node: node, Environment: "production", Version: delivertest.CatalogOf(version).Version, Ticket: ticket})
	}
	return d.Prepare(ctx, stager(version), wishes)
}

// stager is deliver.Stager for one version.
type stager string

func (s stager) Stage(context.Context, deliver.Wish) (deliver.Staged, error) {
	c := delivertest.CatalogOf(string(s))
	switch s {
	case "slow":
		return deliver.Staged{}, nil
	case "broken":
		return deliver.Staged{Failure: "Syntax error (file: site.pp, line: 3)"}, nil
	case "away":
		return deliver.Staged{}, fault.New(fault.Unavailable, "the database is busy")
	}
	return deliver.Staged{Catalog: &c}, nil
}

// release asks for a release and says what became of the nodes, in a line.
func (b bench) release(t *testing.T, as who, request api.CatalogReleaseRequest) (api.CatalogReleased, string) {
	t.Helper()
	body, err := json.Marshal(request)
	check(t, err)
	w := b.call(as, http.MethodPost, api.Prefix+"/catalogs/release", body)
	var answer api.CatalogReleased
	if w.Code != http.StatusOK {
		var problem api.Problem
		check(t, json.Unmarshal(w.Body.Bytes(), &problem))
		return answer, fmt.Sprintf("%d %s", w.Code, problem.Message)
	}
	check(t, json.Unmarshal(w.Body.Bytes(), &answer))
	var words []string
	for _, n := range answer.Nodes {
		words = append(words, strings.TrimSpace(fmt.Sprintf("%s %s %d %s", n.Node, n.State, n.Generation, n.Reason)))
	}
	return answer, strings.Join(words, "; ")
}

func (b bench) mode(t *testing.T, node, mode string) {
	t.Helper()
	if w := b.call(admin, http.MethodPut, api.Prefix+"/nodes/"+node+"/mode", []byte(`{"mode":"`+mode+`"}`)); w.Code != http.StatusOK {
		t.Fatalf("mode of %s: %d %s", node, w.Code, w.Body)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.seed(t, "web-2", "production")
	both := api.JobTargets{Nodes: []string{"web-1", "web-2"}}
	b.mode(t, "web-1", "released")

	shown, got := b.release(t, admin, api.CatalogReleaseRequest{Targets: both, Version: "first", DryRun: true})
	if want := "web-1 ready 0; web-2 refused 0 web-2 is in live mode: it has the newest catalog at once; to release to it: tutti catalog mode web-2 released"; got != want {
		t.Errorf("prepared: %s", got)
	}
	if _, got = b.release(t, admin, api.CatalogReleaseRequest{Targets: both, Version: "other", Expect: shown.Digest}); !strings.HasPrefix(got, "409 ") {
		t.Errorf("something else was released: %s", got)
	}
	done, got := b.release(t, admin, api.CatalogReleaseRequest{Targets: both, Version: "first", Ticket: shown.Ticket, Expect: shown.Digest, Why: "reviewed"})
	if !strings.HasPrefix(got, "web-1 released 1; web-2 refused") || done.Counts["released"] != 1 || done.Ticket != shown.Ticket {
		t.Errorf("released: %s %+v", got, done)
	}
	if _, got = b.release(t, admin, api.CatalogReleaseRequest{Targets: api.JobTargets{Nodes: []string{"web-1"}}, Version: "first"}); got != "web-1 unchanged 1" {
		t.Errorf("once more: %s", got)
	}
	b.mode(t, "web-2", "released")
	for version, want := range map[string]string{
		"slow":   "web-1 compiling 1; web-2 compiling 0",
		"broken": "web-1 failed 1 Syntax error (file: site.pp, line: 3); web-2 failed 0 Syntax error (file: site.pp, line: 3)",
		"away":   "503 the database is busy",
		"":       "400 field version: say which version of the code is released; environment.list and version.list know them",
	} {
		if _, got := b.release(t, admin, api.CatalogReleaseRequest{Targets: both, Version: version}); got != want {
			t.Errorf("version %q: %s", version, got)
		}
	}
	if entries := strings.Join(b.acts(t), "\n"); !strings.Contains(entries, "version first on 2 nodes") {
		t.Errorf("audit: %s", entries)
	}
}

func TestReleaseIsForThoseWhoMay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.seed(t, "db-1", "production")
	b.mode(t, "web-1", "released")
	b.mode(t, "db-1", "released")
	for name, want := range map[string]string{"viewer": "403 ", "deployer": "403 ", "operator": "db-1 released 1; web-1 released 1"} {
		if _, got := b.release(t, caller(t, name), api.CatalogReleaseRequest{
			Targets: api.JobTargets{Nodes: []string{"web-1", "db-1"}}, Version: "v-" + name,
		}); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	both := api.CatalogReleaseRequest{Targets: api.JobTargets{Nodes: []string{"web-1", "db-1"}}, Version: "two"}
	if _, got := b.release(t, caller(t, "web team"), both); !strings.HasPrefix(got, "403 ") || !strings.Contains(got, "1 node. Nothing") {
		t.Errorf("of the web team: %s", got)
	}
	if _, got := b.release(t, caller(t, "web team"), api.CatalogReleaseRequest{
		Targets: api.JobTargets{Nodes: []string{"web-1"}}, Version: "two",
	}); got != "web-1 released 2" {
		t.Errorf("of its own node: %s", got)
	}
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	read := func() (d api.Delivery) {
		t.Helper()
		w := b.call(admin, http.MethodGet, api.Prefix+"/nodes/web-1/delivery", nil)
		check(t, json.Unmarshal(w.Body.Bytes(), &d))
		return d
	}
	if d := read(); d.Mode != "live" || d.ModeFrom != "setting" || d.Pointer != nil || d.Why == "" || d.State != "unknown" {
		t.Errorf("at first: %+v", d)
	}
	b.mode(t, "web-1", "released")
	b.release(t, admin, api.CatalogReleaseRequest{Targets: api.JobTargets{Nodes: []string{"web-1"}}, Version: "first", Why: "reviewed"})
	if w := b.call(admin, http.MethodPut, api.Prefix+"/nodes/web-1/pin", []byte(`{"why":"waits"}`)); w.Code != http.StatusNoContent {
		t.Errorf("pin: %d %s", w.Code, w.Body)
	}
	d := read()
	if d.Mode != "released" || d.Pointer == nil || d.Pointer.Generation != 1 || d.Pin == nil || d.Pin.Why != "waits" || len(d.Generations) != 1 ||
		d.Generations[0].Why != "reviewed" {
		t.Errorf("after a release: %+v", d)
	}
	if _, got := b.release(t, admin, api.CatalogReleaseRequest{Targets: api.JobTargets{Nodes: []string{"web-1"}}, Version: "next"}); !strings.HasPrefix(got,
		"web-1 refused 1 web-1 is pinned to generation 1") {
		t.Errorf("release to a pinned node: %s", got)
	}
	if w := b.call(admin, http.MethodDelete, api.Prefix+"/nodes/web-1/pin", nil); w.Code != http.StatusNoContent {
		t.Errorf("unpin: %d %s", w.Code, w.Body)
	}
	if d := read(); d.Pin != nil {
		t.Errorf("still pinned: %+v", d.Pin)
	}
	for _, path := range []string{"PUT /nodes/nobody/pin", "DELETE /nodes/nobody/pin", "POST /nodes/nobody/catalog/let"} {
		method, path, _ := strings.Cut(path, " ")
		if w := b.call(admin, method, api.Prefix+path, []byte(`{"why":"waits"}`)); w.Code != http.StatusNotFound ||
			!strings.Contains(w.Body.String(), "no node is called nobody") {
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
	}
	w := b.call(admin, http.MethodGet, api.Prefix+"/nodes/web-1", nil)
	if !strings.Contains(w.Body.String(), `"delivery":{"mode":"released","mode_from":"node","generation":1,"state":"unknown"}`) {
		t.Errorf("node.show: %s", w.Body)
	}
	for query, want := range map[string]bool{"?delivery=true": true, "": false} {
		w := b.call(admin, http.MethodGet, api.Prefix+"/nodes"+query, nil)
		if got := strings.Contains(w.Body.String(), `"delivery":{"mode":"released","mode_from":"node","generation":1,"state":"unknown"}`); w.Code != http.StatusOK ||
			got != want {
			t.Errorf("node.list%s: %d %s", query, w.Code, w.Body)
		}
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mode(t, "web-1", "released")
	if w := b.call(admin, http.MethodPut, api.Prefix+"/groups/All%20Nodes/mode", []byte(`{"mode":"live"}`)); w.Code != http.StatusOK {
		t.Errorf("of a group: %d %s", w.Code, w.Body)
	}
	w := b.call(admin, http.MethodGet, api.Prefix+"/delivery-modes", nil)
	var list api.List[api.ModeSet]
	check(t, json.Unmarshal(w.Body.Bytes(), &list))
	if len(list.Items) != 2 || list.Items[0].Group != "All Nodes" || list.Items[0].Mode != "live" || list.Items[1].Node != "web-1" || list.Items[1].By != "admin" {
		t.Errorf("set: %s", w.Body)
	}
	b.mode(t, "web-1", "")
	for path, body := range map[string]string{"/nodes/web-1/mode": `{"mode":"lively"}`, "/groups/All%20Nodes/mode": `{"mode":"x"}`, "/nodes/web-1/pin": `{}`} {
		if w := b.call(admin, http.MethodPut, api.Prefix+path, []byte(body)); w.Code != http.StatusBadRequest {
			t.Errorf("%s %s: %d %s", path, body, w.Code, w.Body)
		}
	}
}
