package e2e_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

// runKinds are the kinds of events of runs: agents that come and go are in the stream, too.
const runKinds = "begin,resource,missing,end"

// gated is a catalog whose run goes on when the test says so: an exec waits for a file before each step.
const gated = `
file { "${facts['scratch']}/first": content => 'x' }
-> exec { 'gate one': command => "/bin/sh -c 'until test -e ${facts['scratch']}/one; do sleep 0.1; done'", timeout => 0 }
-> file { "${facts['scratch']}/second": content => 'x' }
-> exec { 'gate two': command => "/bin/sh -c 'until test -e ${facts['scratch']}/two; do sleep 0.1; done'", timeout => 0 }
-> file { "${facts['scratch']}/secret": content => Sensitive('hunter-two') }
-> exec { 'fails': command => '/bin/false' }
-> notify { 'skipped': }
`

// Events of a run are seen while it goes on: the run does not end before the test has seen them. The server is killed
// in the middle, and then the agent: who follows sees every event once, and the report agrees, which Puppet cannot send.
func TestEventsWhileARunGoesOn(t *testing.T) {
	begin(t)
	s := startServer(t, "--autosign", "all", "--listen", steadyAddress(t))
	control := t.TempDir()
	if err := os.Mkdir(filepath.Join(control, "manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(control, "manifests", "site.pp"), []byte(gated), 0o644); err != nil {
		t.Fatal(err)
	}
	s.tutti(t, "code", "deploy", "production", control)
	a := newAgent(t, s, "web-1")
	// Puppet uses a connection again that the killed server had, and finds out when it sends its report: it tries once.
	write(t, filepath.Join(a.home, "confdir", "puppet.conf"), "[main]\nhttp_keepalive_timeout = 600\n")
	d := a.withDaemon(t, s)

	tail := exec.CommandContext(t.Context(), binary, "event", "tail", "--after", "0", "--kind", runKinds, "-o", "jsonl")
	seen, said := &buffer{}, &buffer{}
	tail.Env, tail.Stdout, tail.Stderr, tail.WaitDelay = append(slices.Clone(s.env), "TUTTI_DATA="+s.data), seen, said, 5*time.Second
	if err := tail.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tail.Process.Kill(); _ = tail.Wait() }()
	shows := func(text string) func() bool {
		return func() bool { return strings.Contains(seen.text(), text) }
	}
	open := func(gate string) {
		if err := os.WriteFile(filepath.Join(a.scratch, gate), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.tutti(t, "run", a.name, "--no-wait", "--yes")
	watch := exec.CommandContext(t.Context(), binary, "job", "watch", "1")
	watched := &buffer{}
	watch.Env, watch.Stdout, watch.Stderr, watch.WaitDelay = append(slices.Clone(s.env), "TUTTI_DATA="+s.data), &bytes.Buffer{}, watched, 5*time.Second
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*patience, "the first event comes while the run goes on", shows("/first\""))
	if strings.Contains(seen.text(), "gate one") {
		t.Error("the gate was no gate")
	}
	if err := s.crash(); err != nil {
		t.Fatal(err)
	}
	open("one")
	eventually(t, patience, "the run goes on without a server", func() bool { _, err := os.Stat(filepath.Join(a.scratch, "second")); return err == nil })
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*patience, "what happened without a server is seen", shows("/second\""))
	if strings.Contains(seen.text(), `"kind":"end"`) {
		t.Error("the run ended before the agent was killed")
	}
	eventually(t, 2*patience, "who watches the job sees it, too", func() bool { return strings.Contains(watched.text(), "/second]") })
	d.kill()
	open("two")
	eventually(t, patience, "the run goes on without an agent", func() bool { _, err := os.Stat(filepath.Join(a.scratch, "secret")); return err == nil })
	d.start(t)
	eventually(t, 2*patience, "what happened without an agent is seen", shows(`"kind":"end"`))
	_ = watch.Wait() // the run failed
	for _, text := range []string{"/first]", "Exec[gate one]", "/second]", "Exec[fails]/returns", "skipped  Notify[skipped]"} {
		if strings.Count(watched.text(), text) == 0 {
			t.Errorf("who watches the job does not see %s:\n%s", text, watched.text())
		}
	}
	followed := eventsIn(t, seen.text())
	wholeRun(t, followed)
	if strings.Contains(seen.text(), "hunter") {
		t.Error("a secret was streamed")
	}
	listed := decode[api.List[api.Event]](t, s, "event", "list", "--job", "1", "-o", "json")
	slices.Reverse(listed.Items)
	for i := range listed.Items { // -o json indents values, too
		listed.Items[i].Old, listed.Items[i].New = compacted(listed.Items[i].Old), compacted(listed.Items[i].New)
	}
	same(t, "followed and listed", followed, listed.Items)
	if !within(patience, func() bool { return s.metric(t, "tutti_event_runs_settled_total") == 1 }) {
		t.Fatalf("%g runs were compared with their reports; reports: %+v", s.metric(t, "tutti_event_runs_settled_total"), a.reports(t))
	}
	for _, name := range []string{
		"tutti_events_only_in_report_total", "tutti_events_only_in_stream_total", "tutti_events_missing_total", "tutti_events_from_reports_total",
	} {
		if n := s.metric(t, name); n != 0 {
			t.Errorf("%s is %g", name, n)
		}
	}
	eventually(t, patience, "the report was delivered late, for Puppet could not send it", func() bool {
		log, _ := os.ReadFile(d.log)
		return strings.Contains(string(log), "report delivered late")
	}) // so it was shown what comes of reports that no server took
	report := a.lastReport(t)
	if report.TransactionUUID != followed[0].Run || report.Status != followed[len(followed)-1].Status {
		t.Errorf("the report is of run %s, %s", report.TransactionUUID, report.Status)
	}

	// A run that nobody follows gives the same rows when its report is there.
	a.puppet(t, "agent", "--test", "--noop")
	eventually(t, patience, "the stock agent's run is in the stream", func() bool { return strings.Count(seen.text(), `"kind":"end"`) == 2 })
	stock := eventsIn(t, seen.text())[len(followed):]
	wholeRun(t, stock)
	if !stock[0].Reported || !stock[0].Noop || stock[0].Job != "" {
		t.Errorf("it begins as %+v", stock[0])
	}
}

func compacted(value json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(value) == 0 || json.Compact(&b, value) != nil {
		return nil
	}
	return b.Bytes()
}

func eventsIn(t *testing.T, lines string) (events []api.Event) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var e api.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e)
	}
	return events
}

// wholeRun fails unless events are those of one run, each once, in order, from its begin to its end.
func wholeRun(t *testing.T, events []api.Event) {
	t.Helper()
	for i, e := range events {
		if e.N != i+1 || e.Run != events[0].Run || i > 0 && e.Number <= events[i-1].Number {
			t.Errorf("at place %d is number %d (%d) of run %s: %s", i+1, e.N, e.Number, e.Run, e.Title)
		}
	}
	if len(events) < 3 || events[0].Kind != "begin" || events[len(events)-1].Kind != "end" {
		t.Fatalf("not the events of a run: %+v", events)
	}
}
