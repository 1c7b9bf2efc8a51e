package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

func TestStop(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	_, _, _ = b.order(t, "admin", "/jobs/command", `{"targets":{"all":true},"command":"id"}`)
	for _, body := range []string{`{}`, `{"kill":true}`, `{"kill":true}`} {
		w := b.call(caller(t, "operator"), http.MethodPost, api.Prefix+"/jobs/1/stop", []byte(body))
		var stopped api.Job
		check(t, json.Unmarshal(w.Body.Bytes(), &stopped))
		if stopped.State != "stopping" || !strings.Contains(stopped.Reason, "by operator") {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	entries, err := b.store.Acts(t.Context(), rbac.EntryFilter{Operation: "job.stop", Limit: 10})
	check(t, err)
	if len(entries) != 3 || entries[0].Object != "1" || entries[0].Outcome != rbac.Done {
		t.Errorf("audit log: %+v", entries)
	}
}

func TestRerun(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	if status, _, problem := b.order(t, "admin", "/jobs/9/rerun", `{}`); status != http.StatusNotFound {
		t.Errorf("%d %s", status, problem)
	}
	order := `{"targets":{"all":true,"exclude":["web-2"]},"task":"db::passwd","params":{"user":"app","password":"s3cret"},"timeout":60,"description":"first"}`
	if _, started, problem := b.order(t, "admin", "/jobs/task", order); started.Job == nil {
		t.Fatal(problem)
	}
	if status, _, problem := b.order(t, "admin", "/jobs/1/rerun", `{"only":"all","params":{"password":"n","salt":"s"}}`); status != http.StatusConflict ||
		!strings.Contains(problem, "when it is over") {
		t.Errorf("it goes on: %d %s", status, problem)
	}
	end(t, b.records, 1, func(node fleet.Certname) (int, string) { return len(node) % 2, "" }) // it succeeds on db-1
	for body, want := range map[string]string{
		`{}`: "password was hidden", `{"params":{"user":"x"}}`: "password was hidden", `{"only":"some","params":{"password":"n","salt":"s"}}`: "failed or all",
		`{"params":{"password":7,"salt":"s"}}`: "password expects", `{"params":[]}`: "must be an object",
		`{"params":{"password":"n","salt":"s"},"timeout":-1}`: "timeout", `{"params":{"password":"n","salt":"s"},"concurrency":-1}`: "concurrency",
	} {
		if status, _, problem := b.order(t, "admin", "/jobs/1/rerun", body); status != http.StatusBadRequest || !strings.Contains(problem, want) {
			t.Errorf("%s: %d %q, want %q", body, status, problem, want)
		}
	}
	_, started, problem := b.order(t, "admin", "/jobs/1/rerun", `{"texts":{"password":"n","tries":"9","salt":"s"},"wait_offline":30,"max_failures":1}`)
	if started.Job == nil {
		t.Fatal(problem)
	}
	j := started.Job
	if j.RerunOf != "1" || j.Nodes != 1 || j.Targets.Nodes[0] != "web-1" || j.Timeout != 60 || j.WaitOffline != 30 || *j.MaxFailures != 1 ||
		j.Description != "first" ||
		string(j.Order) != `{"task":"db::passwd","parameters":{"password":"(hidden)","salt":"(hidden)","tries":9,"user":"app"}}` {
		t.Errorf("%+v %s", j, j.Order)
	}
	end(t, b.records, 2, func(fleet.Certname) (int, string) { return 0, "" })
	if status, _, problem := b.order(t, "admin", "/jobs/2/rerun", `{"params":{"password":"n","salt":"s"}}`); status != http.StatusConflict ||
		!strings.Contains(problem, "succeeded on all of its nodes") {
		t.Errorf("%d %s", status, problem)
	}
	if status, started, problem := b.order(t, "admin", "/jobs/1/rerun",
		`{"only":"all","params":{"password":"n","salt":"s"},"dry_run":true}`); status != http.StatusOK || started.Plan.Nodes != 2 || started.Job != nil {
		t.Errorf("%d %s", status, problem)
	}
	if status, _, problem := b.order(t, "admin", "/jobs/1/rerun",
		`{"only":"all","params":{"password":"n","salt":"s"},"expect":"other"}`); status != http.StatusConflict {
		t.Errorf("%d %s", status, problem)
	}
}

// Who may read a job needs the right to its kind to order it again.
func TestRerunNeedsThePermissionOfTheKind(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	endedJob(t, b)
	status, _, problem := b.order(t, "operator", "/jobs/1/rerun", `{}`)
	if status != http.StatusForbidden || !strings.Contains(problem, "does not have the permission command:run") {
		t.Errorf("%d %s", status, problem)
	}
	if status, _, problem = b.order(t, "commander", "/jobs/1/rerun", `{"noop":true}`); status != http.StatusBadRequest || !strings.Contains(problem, "noop") {
		t.Errorf("%d %s", status, problem)
	}
	if status, started, problem := b.order(t, "commander", "/jobs/1/rerun", `{}`); status != http.StatusOK || started.Job.Actor != "commander" ||
		started.Job.Nodes != 1 {
		t.Errorf("%d %s", status, problem)
	}
	entries, err := b.store.Acts(t.Context(), rbac.EntryFilter{Operation: "job.rerun", Limit: 10})
	check(t, err)
	if len(entries) != 2 || entries[0].Outcome != rbac.Done || entries[0].Object != "1: command id on db-1" || entries[1].Outcome != rbac.Denied {
		t.Errorf("audit log: %+v", entries)
	}
}
