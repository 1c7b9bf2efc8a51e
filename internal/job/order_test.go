package job_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

func mustRead(t *testing.T, text []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

var digest = fleet.DigestOf([]byte("content"))

func taskSpec() job.Spec {
	return job.Spec{Kind: job.Task, Targets: job.Targets{All: true}, Task: &job.TaskSpec{
		Name: "m::t", Files: []job.FileRef{{Name: "m/tasks/t.sh", Digest: digest, Bytes: 7}}, Parameters: []byte(`{"a":[1,"x"]}`),
		Secret: []byte(`{"password":"correct horse"}`), Noop: true, Metadata: &pxp.TaskMetadata{InputMethod: "stdin"},
	}}
}

func TestSecretsReachNodesAndNobodyElse(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{Takes: time.Minute})
		j := w.order(taskSpec())
		stored, _ := w.after(time.Second, j.ID)
		if text, _ := json.Marshal(stored); strings.Contains(string(text), "correct horse") {
			t.Errorf("the job shows its secret: %s", text)
		}
		if diff := cmp.Diff([]string{"password"}, stored.Spec.Task.Hidden); diff != "" {
			t.Error(diff)
		}
		var p pxp.TaskParams
		mustRead(t, w.fleet.Requests("n001.example")[0].Params, &p)
		want := pxp.TaskParams{
			Task: "m::t", Input: []byte(`{"_noop":true,"a":[1,"x"],"password":"correct horse"}`), Metadata: &pxp.TaskMetadata{InputMethod: "stdin"},
			Files: []pxp.FileSource{
				{Filename: "m/tasks/t.sh", SHA256: string(digest), Bytes: 7, URI: pxp.Source{
					Path: "/job-files/v1/" + string(digest) + "/t.sh", Params: map[string]string{},
				}},
			},
		}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Errorf("parameters (-want +got):\n%s", diff)
		}
		if sealed, err := w.store.Sealed(w.t.Context(), j.ID); err != nil || len(sealed) == 0 {
			t.Errorf("while it runs: %q, %v", sealed, err)
		}
		w.states(time.Minute, j.ID, job.Finished, job.Succeeded)
		if sealed, err := w.store.Sealed(w.t.Context(), j.ID); err != nil || len(sealed) != 0 {
			t.Errorf("when it has ended: %q, %v", sealed, err)
		}
		_, err := w.Rerun(w.t.Context(), ann, j.ID, job.Again{})
		wantKind(t, err, fault.Invalid)
		again, err := w.Rerun(w.t.Context(), ann, j.ID, job.Again{Secret: []byte(`{"password":"new"}`)})
		if err != nil || again.RerunOf != j.ID {
			t.Fatalf("%+v, %v", again, err)
		}
		w.after(time.Second, again.ID)
		sent := w.fleet.Requests("n001.example")
		mustRead(t, sent[len(sent)-1].Params, &p)
		if string(p.Input) != `{"_noop":true,"a":[1,"x"],"password":"new"}` {
			t.Errorf("sent again: %s", p.Input)
		}
	})
}

func TestSecretsOfActionsAreSealed(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{Takes: time.Minute})
		j := w.order(job.Spec{Kind: job.Action, Targets: job.Targets{All: true}, Action: &job.ActionSpec{
			Module: "user", Action: "set", Input: []byte(`{"name":"ann"}`), Secret: []byte(`{"password":"correct horse"}`),
		}})
		stored, _ := w.after(time.Second, j.ID)
		if text, _ := json.Marshal(stored); strings.Contains(string(text), "correct horse") || !slices.Equal(stored.Spec.Action.Hidden, []string{"password"}) {
			t.Errorf("the job shows its secret, or not its name: %s", text)
		}
		if got := string(w.fleet.Requests("n001.example")[0].Params); got != `{"name":"ann","password":"correct horse"}` {
			t.Errorf("sent: %s", got)
		}
		w.states(time.Minute, j.ID, job.Finished, job.Succeeded)
		_, err := w.Rerun(w.t.Context(), ann, j.ID, job.Again{})
		wantKind(t, err, fault.Invalid)
		if _, err := w.Rerun(w.t.Context(), ann, j.ID, job.Again{Secret: []byte(`{"password":"new"}`)}); err != nil {
			t.Error(err)
		}
	})
}

func TestTargetsInWords(t *testing.T) {
	t.Parallel()
	many := job.Targets{Group: "g", Query: "q", App: "a", All: true, Exclude: []fleet.Certname{"x"}, Limit: "5%", Filter: &filter.Filter{
		Facts: []string{"os=Debian"}, Classes: []string{"c"}, Modules: []string{"m"}, Names: []string{"/n/"}, Words: []string{"w"}, Select: "s",
	}}
	for i := range 12 {
		many.Nodes = append(many.Nodes, fleet.Certname(fmt.Sprint("n", i)))
	}
	want := "all nodes, group g, query q, application a, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, 2 more, not x, fact os=Debian, class c, module m, name /n/, with w, select s, limit 5%"
	if got := many.Text(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestSecretsThatCannotBeReadAreSaid(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, func(w *world) {
		j := job.Job{Spec: taskSpec(), Status: job.Queued, CreatedAt: time.Now(), Counts: job.Counts{job.Waiting: 2}}
		runs := []job.Run{
			{ID: jobtest.NewID(), Number: 1, Node: w.names[0], State: job.Waiting}, {ID: jobtest.NewID(), Number: 2, Node: w.names[1], State: job.Waiting},
		}
		j, err := w.store.CreateJob(w.t.Context(), j, runs, []byte("of another server"))
		if err != nil {
			t.Fatal(err)
		}
		got := w.states(5*time.Second, j.ID, job.Failed, job.Errored, job.Errored)
		if got[0].Reason != "its secret parameters cannot be read" {
			t.Errorf("reason %q", got[0].Reason)
		}
	})
}

func TestKindsAreOrderedAsAgentsWantThem(t *testing.T) {
	t.Parallel()
	ref := job.FileRef{Name: "fix.sh", Digest: digest, Bytes: 7}
	uri := `{"path":"/job-files/v1/` + string(digest) + `/fix.sh","params":{}}`
	for what, c := range map[string]struct {
		spec           job.Spec
		module, action string
		params         string
	}{
		"command": {command(), "command", "run", `{"command":"uptime"}`},
		"script": {
			job.Spec{Kind: job.Script, Script: &job.ScriptSpec{Script: ref}},
			"script", "run",
			`{"script":{"filename":"fix.sh","sha256":"` + string(digest) + `","uri":` + uri + `,"size_bytes":7},"arguments":[]}`,
		},
		"file": {
			job.Spec{Kind: job.File, File: &job.FileSpec{Entries: []job.FileEntry{
				{Kind: "directory", Destination: "/opt/x"},
				{Kind: "file", Destination: "/opt/x/fix.sh", File: ref},
				{Kind: "symlink", Destination: "/opt/y", LinkSource: "x"},
			}}},
			"file", "download",
			`{"files":[{"kind":"directory","destination":"/opt/x","link_source":"","uri":{"path":"","params":{}},"sha256":""},` +
				`{"kind":"file","destination":"/opt/x/fix.sh","link_source":"","uri":` + uri + `,"sha256":"` + string(digest) + `"},` +
				`{"kind":"symlink","destination":"/opt/y","link_source":"x","uri":{"path":"","params":{}},"sha256":""}]}`,
		},
	} {
		inWorld(t, 1, func(w *world) {
			c.spec.Targets = job.Targets{All: true}
			j := w.order(c.spec)
			w.states(time.Second, j.ID, job.Finished, job.Succeeded)
			got := w.fleet.Requests("n001.example")[0]
			if got.Module != c.module || got.Action != c.action || string(got.Params) != c.params || !got.NotifyOutcome {
				t.Errorf("%s: %+v\n%s", what, got, got.Params)
			}
		})
	}
}

func TestAPlanStartsNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, 3, func(w *world) {
		w.fleet.Disconnect("n002.example")
		w.Gate = jobtest.OpenGate{"n003.example": "it lacks command:run"}
		plan, err := w.Plan(w.t.Context(), ann, command())
		want := []job.Target{
			{Node: "n001.example", Connected: true, Agent: "fake-agent/1"},
			{Node: "n002.example"},
			{Node: "n003.example", Connected: true, Agent: "fake-agent/1", Denied: "it lacks command:run"},
		}
		if diff := cmp.Diff(want, plan.Targets); diff != "" || err != nil || plan.Spec.Timeout != time.Hour || plan.Denied() != 1 {
			t.Errorf("%v, timeout %s (-want +got):\n%s", err, plan.Spec.Timeout, diff)
		}
		_, err = w.Create(w.t.Context(), ann, command())
		wantKind(t, err, fault.Denied)
		if jobs, err := w.Jobs(w.t.Context(), job.Page{Limit: 9}); err != nil || len(jobs) != 0 {
			t.Errorf("jobs: %v, %v", jobs, err)
		}
	})
}

func TestRerun(t *testing.T) {
	t.Parallel()
	inWorld(t, 3, func(w *world) {
		w.fleet.Behave("n002.example", jobtest.Manner{ExitCode: 1, Takes: time.Second})
		j := w.order(command())
		_, err := w.Rerun(w.t.Context(), ann, j.ID, job.Again{})
		wantKind(t, err, fault.Conflict)
		w.states(2*time.Second, j.ID, job.Failed, job.Succeeded, job.RunFailed, job.Succeeded)
		targets := func(again job.Again) []fleet.Certname {
			j, err := w.Rerun(w.t.Context(), ann, j.ID, again)
			if err != nil {
				t.Fatal(err)
			}
			_, runs := w.after(2*time.Second, j.ID)
			var nodes []fleet.Certname
			for _, r := range runs {
				nodes = append(nodes, r.Node)
			}
			return nodes
		}
		edited := command(func(s *job.Spec) { s.Targets = job.Targets{}; s.Command.Command = "date" })
		elsewhere := command(func(s *job.Spec) { s.Targets = job.Targets{Nodes: []fleet.Certname{"n003.example"}} })
		for what, c := range map[string]struct {
			again job.Again
			want  []fleet.Certname
		}{
			"same":      {job.Again{}, w.names},
			"failed":    {job.Again{Failed: true}, w.names[1:2]},
			"edited":    {job.Again{Failed: true, Spec: &edited}, w.names[1:2]},
			"elsewhere": {job.Again{Spec: &elsewhere}, w.names[2:]},
		} {
			if diff := cmp.Diff(c.want, targets(c.again)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		_, err = w.Rerun(w.t.Context(), ann, 99, job.Again{})
		wantKind(t, err, fault.NotFound)
	})
}

func TestWrongOrders(t *testing.T) {
	t.Parallel()
	negative := -1
	for want, spoil := range map[string]func(*job.Spec){
		"kind: it is puppet":       func(s *job.Spec) { s.Kind = "dance" },
		"kind: it is puppet,":      func(s *job.Spec) { s.Puppet = &job.PuppetSpec{} },
		"field targets":            func(s *job.Spec) { s.Targets = job.Targets{} },
		"certname":                 func(s *job.Spec) { s.Targets.Nodes = []fleet.Certname{"No Name"} },
		"field command":            func(s *job.Spec) { s.Command.Command = " " },
		"field command:":           func(s *job.Spec) { s.Command.Command = "a\x00b" },
		"field concurrency":        func(s *job.Spec) { s.Concurrency = -1 },
		"field max_failures":       func(s *job.Spec) { s.MaxFailures = &negative },
		"field timeout":            func(s *job.Spec) { s.Timeout = time.Millisecond },
		"field wait_offline":       func(s *job.Spec) { s.WaitOffline = 30 * 24 * time.Hour },
		"environment":              func(s *job.Spec) { s.Environment = "no-dash" },
		"field description":        func(s *job.Spec) { s.Description = strings.Repeat("x", 2000) },
		"contradicts":              func(s *job.Spec) { *s = asPuppet(job.PuppetSpec{Noop: true, NoNoop: true}) },
		"is not a tag":             func(s *job.Spec) { *s = asPuppet(job.PuppetSpec{Tags: []string{"--debug"}}) },
		"is not a tag:":            func(s *job.Spec) { *s = asPuppet(job.PuppetSpec{SkipTags: []string{"a,b"}}) },
		"must be an object":        func(s *job.Spec) { *s = taskSpec(); s.Task.Parameters = []byte(`[1]`) },
		"1 to 10000 files":         func(s *job.Spec) { *s = taskSpec(); s.Task.Files = nil },
		"a digest has":             func(s *job.Spec) { *s = taskSpec(); s.Task.Files[0].Digest = "x" },
		"not a relative path":      func(s *job.Spec) { *s = taskSpec(); s.Task.Files[0].Name = "../x" },
		"is not an absolute path":  func(s *job.Spec) { *s = asFile(job.FileEntry{Kind: "directory", Destination: "x"}) },
		"field link_source":        func(s *job.Spec) { *s = asFile(job.FileEntry{Kind: "symlink", Destination: "/x"}) },
		"a file, directory or sym": func(s *job.Spec) { *s = asFile(job.FileEntry{Kind: "pipe", Destination: "/x"}) },
		"1 to 10000 entries":       func(s *job.Spec) { *s = asFile() },
		"field arguments": func(s *job.Spec) {
			*s = job.Spec{Kind: job.Script, Targets: s.Targets, Script: &job.ScriptSpec{Arguments: []string{"\xff"}}}
		},
	} {
		s := command()
		spoil(&s)
		if err := s.Check(); err == nil || fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), strings.TrimSuffix(want, ":")) {
			t.Errorf("%q: %v", want, err)
		}
	}
	for _, good := range []job.Spec{
		command(), taskSpec(), asPuppet(job.PuppetSpec{Tags: []string{"role::db"}}), asFile(job.FileEntry{Kind: "directory", Destination: `C:\x`}),
	} {
		if err := good.Check(); err != nil {
			t.Errorf("%s: %v", good.Kind, err)
		}
	}
}

func asPuppet(p job.PuppetSpec) job.Spec {
	return job.Spec{Kind: job.Puppet, Puppet: &p, Targets: job.Targets{All: true}}
}

func asFile(entries ...job.FileEntry) job.Spec {
	return job.Spec{Kind: job.File, File: &job.FileSpec{Entries: entries}, Targets: job.Targets{All: true}}
}
