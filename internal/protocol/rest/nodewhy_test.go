package rest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// redNode is a node with two good runs, and a last one in which a package failed first and a file then. A service needs the file, what
// the service notifies needs the service, and nothing leads to the group.
func redNode(t *testing.T, b bench) (good, red inventory.Report) {
	t.Helper()
	begin := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	run := func(id, status string, after time.Duration) inventory.Report {
		return inventory.Report{
			ID: fleet.DigestOf([]byte(id)), Certname: "db-1", Environment: "production", Status: status, ConfigVersion: id, CatalogUUID: "catalog-" + id,
			StartedAt: begin.Add(after), EndedAt: begin.Add(after + time.Minute), ReceivedAt: begin.Add(after + time.Minute),
		}
	}
	older, good, red := run("older", "unchanged", 0), run("good", "changed", 5*time.Minute), run("red", "failed", 10*time.Minute)
	failure := func(at time.Duration, property, message string) []inventory.Event {
		return []inventory.Event{
			{Property: "mode", Status: "success", Time: red.StartedAt},
			{Property: property, Status: "failure", Message: message, Time: red.StartedAt.Add(at)},
			{Property: property, Status: "failure", Message: "and again", Time: red.StartedAt.Add(at)},
		}
	}
	red.Resources = []inventory.ResourceStatus{
		{Type: "File", Title: "/srv/a", Failed: true, File: "site.pp", Line: 7, Events: failure(20*time.Second, "content", "no space left on device")},
		{Type: "Service", Title: "app", Skipped: true, File: "site.pp", Line: 9},
		{Type: "Exec", Title: "warm", Skipped: true},
		{Type: "Group", Title: "ops", Skipped: true},
		{Type: "Package", Title: "app", Failed: true, Events: failure(10*time.Second, "ensure", "not found")},
		{Type: "Cron", Title: "tidy", Failed: true},
		{Type: "Mount", Title: "/srv", Failed: true},
		{Type: "User", Title: "ops", Changed: true},
	}
	red.Logs = []inventory.RunLog{
		{Level: "err", Source: "/Stage[main]/App/Cron[tidy-up]/ensure", Message: "of another one", Time: red.StartedAt.Add(30 * time.Second)},
		{Level: "err", Source: "/Stage[main]/App/Cron[tidy]/ensure", Message: "crontab is busy", Time: red.StartedAt.Add(30 * time.Second)},
	}
	check(t, b.known.SaveCatalog(t.Context(), inventory.Catalog{
		Certname: "db-1", Environment: "production", Digest: fleet.DigestOf([]byte("db")), UUID: "catalog-red",
		Resources: []inventory.Resource{{Type: "File", Title: "/srv/a"}, {Type: "Service", Title: "app"}, {Type: "Exec", Title: "warm"}},
		Edges: []inventory.Edge{
			{Source: "File[/srv/a]", Target: "Service[app]", Relationship: "required-by"},
			{Source: "Service[app]", Target: "Exec[warm]", Relationship: "notifies"},
		},
	}))
	for _, r := range []inventory.Report{older, good, red} {
		check(t, b.known.SaveReport(t.Context(), r))
	}
	return good, red
}

func TestWhyANodeIsRed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	good, red := redNode(t, b)
	var why api.NodeReasons
	b.do(t, http.MethodGet, "/nodes/db-1/why", "", &why)
	var failed, skipped []string
	for _, f := range why.Failed {
		failed = append(failed, fmt.Sprintf("%s %s %s %s:%d", f.Resource, f.Property, f.Message, f.File, f.Line))
	}
	for _, s := range why.Skipped {
		skipped = append(skipped, fmt.Sprintf("%s < %s %s:%d", s.Resource, s.Because, s.File, s.Line))
	}
	if want := []string{ // in the order of the run; the last one has only its run's end
		"Package[app] ensure not found :0", "File[/srv/a] content no space left on device site.pp:7",
		"Cron[tidy]  crontab is busy :0", "Mount[/srv]  it failed; its run says no more :0",
	}; !slices.Equal(failed, want) || why.FailedCount != 4 {
		t.Errorf("failed, %d: %q", why.FailedCount, failed)
	}
	if want := []string{"Service[app] < File[/srv/a] site.pp:9", "Exec[warm] < Service[app] :0", "Group[ops] <  :0"}; !slices.Equal(skipped, want) ||
		why.SkippedCount != 3 {
		t.Errorf("skipped, %d: %q", why.SkippedCount, skipped)
	}
	if why.State != "failed" || why.Report == nil || why.Report.ID != string(red.ID) || why.OtherCatalog || len(why.Log) != 0 || why.CompileError != nil {
		t.Errorf("the run: %+v", why)
	}
	if why.LastGood == nil || why.LastGood.ID != string(good.ID) || why.LastGood.Version != "good" {
		t.Errorf("the last good one: %+v", why.LastGood)
	}

	check(t, b.known.SaveCatalog(t.Context(), inventory.Catalog{
		Certname: "db-1", Environment: "production", Digest: fleet.DigestOf([]byte("newer")), UUID: "catalog-newer", Origin: inventory.Origin{ProducedAt: time.Now()},
	}))
	b.do(t, http.MethodGet, "/nodes/db-1/why", "", &why)
	if !why.OtherCatalog {
		t.Error("it does not say that what it explains with is another catalog")
	}
}

// A run that could do nothing has its reason in the log. Only the lines of errors are told, and not without end.
func TestWhyWithoutAResource(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := inventory.Report{ID: fleet.DigestOf([]byte("log")), Certname: "db-1", Environment: "production", Status: "failed", ReceivedAt: time.Now()}
	r.Logs = []inventory.RunLog{{Level: "notice", Message: "nothing"}}
	for range 30 {
		r.Logs = append(r.Logs, inventory.RunLog{Level: "err", Message: "Could not retrieve catalog", File: "site.pp", Line: 2})
	}
	check(t, b.known.SaveReport(t.Context(), r))
	var why api.NodeReasons
	b.do(t, http.MethodGet, "/nodes/db-1/why", "", &why)
	if len(why.Log) != 20 || why.Log[0].Message != "Could not retrieve catalog" || why.Log[0].Line != 2 || why.LastGood != nil || why.FailedCount != 0 {
		t.Errorf("%d lines: %+v", len(why.Log), why)
	}
}

// A node whose catalog does not compile is red though its last run was well, and that run is the last good one.
func TestWhyACatalogDoesNotCompile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	why := get[api.NodeReasons](t, b, "viewer", "/nodes/web-1/why")
	if why.State != "failed" || why.CompileError == nil || why.CompileError.Line != 3 || why.LastGood == nil ||
		why.LastGood.ID != b.report || len(why.Failed) != 0 {
		t.Errorf("%+v", why)
	}
}

func TestWhyNothingIsRed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.seed(t, "db-1", "production")
	_, _, err := b.known.SaveFacts(t.Context(), inventory.FactSet{Certname: "new-1", Environment: "production", Values: []byte(`{}`)})
	check(t, err)
	if why := get[api.NodeReasons](t, b, "viewer", "/nodes/db-1/why"); why.State != "changed" || why.Report == nil || why.LastGood != nil ||
		why.CompileError != nil {
		t.Errorf("a run that was well: %+v", why)
	}
	if why := get[api.NodeReasons](t, b, "viewer", "/nodes/new-1/why"); why.State != "none" || why.Report != nil {
		t.Errorf("a node without a run: %+v", why)
	}
	if w := b.call(admin, http.MethodGet, api.Prefix+"/nodes/nobody/why", nil); w.Code != http.StatusNotFound ||
		!strings.Contains(w.Body.String(), "nothing is known of node nobody") {
		t.Errorf("a node that is not there: %d %s", w.Code, w.Body)
	}
}

// However many resources failed, the answer is bounded, and its numbers are whole.
func TestWhyIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := inventory.Report{ID: fleet.DigestOf([]byte("many")), Certname: "db-1", Environment: "production", Status: "failed", ReceivedAt: time.Now()}
	for i := range 2 * (api.MaxReasons + 5) {
		r.Resources = append(r.Resources, inventory.ResourceStatus{Type: "File", Title: fmt.Sprintf("/%d", i), Failed: i%2 == 0, Skipped: i%2 == 1})
	}
	check(t, b.known.SaveReport(t.Context(), r))
	why := get[api.NodeReasons](t, b, "viewer", "/nodes/db-1/why")
	if len(why.Failed) != api.MaxReasons || len(why.Skipped) != api.MaxReasons || why.FailedCount != api.MaxReasons+5 || why.SkippedCount != api.MaxReasons+5 {
		t.Errorf("%d of %d failed, %d of %d skipped", len(why.Failed), why.FailedCount, len(why.Skipped), why.SkippedCount)
	}
}
