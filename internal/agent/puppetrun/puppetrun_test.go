package puppetrun

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/wire/pxp"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags []string
		job   string
		want  string // arguments; or what an error says, after a !
	}{
		"none": {nil, "", "agent --onetime --no-daemonize --verbose"},
		"some": {
			[]string{"--noop", "--no-splay", "--tags", "a,b::c", "--verbose", " --debug "},
			"",
			"agent --onetime --no-daemonize --noop --no-splay --tags a,b::c --verbose --debug",
		},
		"job":              {[]string{}, "42", "agent --onetime --no-daemonize --verbose --job-id 42"},
		"same value twice": {[]string{"--environment", "x", "--tags", "x"}, "", "agent --onetime --no-daemonize --verbose --environment x --tags x"},
		"not allowed":      {[]string{"--server", "evil"}, "", "!not among"},
		"negated default":  {[]string{"--no-onetime"}, "", "!not among"},
		"daemon":           {[]string{"--daemonize"}, "", "!not among"},
		"equals":           {[]string{"--environment=x"}, "", "!characters"},
		"slash":            {[]string{"--tags", "/etc/passwd"}, "", "!characters"},
		"newline":          {[]string{"--tags", "a\nb"}, "", "!characters"},
		"trailing newline": {[]string{"--tags", "a\n"}, "", "agent --onetime --no-daemonize --verbose --tags a"},
		"shell":            {[]string{"$(reboot)"}, "", "!characters"},
		"empty":            {[]string{""}, "", "!characters"},
		"short":            {[]string{"-E", "x"}, "", "!only long"},
		"job as a flag":    {nil, "--server", "!job"},
		"job with blanks":  {nil, "4 2", "!job"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args, err := arguments(c.flags, c.job)
			if says, bad := strings.CutPrefix(c.want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("got %v, %v", args, err)
				}
				return
			}
			if got := strings.Join(args, " "); err != nil || got != c.want {
				t.Errorf("got %s, %v, want %s", got, err, c.want)
			}
		})
	}
}

func FuzzArguments(f *testing.F) {
	f.Add("--tags", "a", "1")
	f.Fuzz(func(t *testing.T, a, b, job string) {
		args, err := arguments([]string{a, b}, job)
		if err != nil {
			return
		}
		for _, arg := range args {
			if strings.ContainsAny(arg, "=/\\ \t\n\x00'\"`$;&|<>()") || arg == "" {
				t.Errorf("the argument %q passed", arg)
			}
		}
	})
}

const someReport = `--- !ruby/object:Puppet::Transaction::Report
host: web1
time: '2026-11-21T10:00:00.123456789+01:00'
configuration_version: !ruby/sym dummy
transaction_uuid: 8b3a7c5e-0000-4000-8000-000000000001
environment: production
status: changed
noop: false
logs:
- !ruby/object:Puppet::Util::Log
  level: !ruby/sym notice
  message: "changed\n"
metrics:
  resources: !ruby/object:Puppet::Util::Metric
    name: resources
    label: Resources
    values:
    - - total
      - Total
      - 8
    - - changed
      - Changed
      - 1
  time: !ruby/object:Puppet::Util::Metric
    values:
    - - total
      - Total
      - 1.5
resource_statuses:
  File[/tmp/x]: !ruby/object:Puppet::Resource::Status
    tags: !ruby/object:Puppet::Util::TagSet
      hash:
        file: true
`

// stub is a node with a puppet executable that does what body says for a run.
type stub struct {
	t   *testing.T
	dir string
}

func newStub(t *testing.T, body string) *stub {
	t.Helper()
	s := &stub{t: t, dir: t.TempDir()}
	s.write("new-report", someReport)
	text := fmt.Sprintf(`#!/bin/sh
cd %s
if [ "$2" = --configprint ]; then
  echo "$3" >> asks
  echo "config = $PWD/puppet.conf"
  echo "agent_catalog_run_lockfile = $PWD/lock"
  echo "agent_disabled_lockfile = $PWD/disabled"
  echo "lastrunreport = $PWD/report.yaml"
  echo "node_name_value = web1"
  echo "client_datadir = $PWD/client_data"
  echo "server = puppet.example.test"
  echo 'server_list = [["one", "8140"], ["two", "8141"]]'
  exit 0
fi
echo "$@" >> runs
report() { cp new-report report.yaml.new; mv report.yaml.new report.yaml; }
echo "Notice: Applied"
%s
`, s.dir, body)
	s.write("puppet", text)
	if err := os.Chmod(filepath.Join(s.dir, "puppet"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stub) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// run orders a run, and returns its results and what was printed beside.
func (s *stub) run(ctx context.Context, flags ...string) (pxp.PuppetResults, int, string) {
	s.t.Helper()
	input := pxp.Data(pxp.PuppetParams{Env: []string{}, Flags: append([]string{}, flags...)})
	order := pxp.Data(pxp.PuppetOrder{Input: input, Configuration: pxp.PuppetConfiguration{Puppet: filepath.Join(s.dir, "puppet")}})
	return s.order(ctx, string(order))
}

func (s *stub) order(ctx context.Context, order string) (pxp.PuppetResults, int, string) {
	s.t.Helper()
	var out, errs bytes.Buffer
	code := Main(ctx, strings.NewReader(order), &out, &errs)
	var results pxp.PuppetResults
	if err := json.Unmarshal(out.Bytes(), &results); err != nil {
		s.t.Fatalf("%v: %s", err, out.Bytes())
	}
	return results, code, errs.String()
}

func (s *stub) runs() string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "runs"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(text)
}

func changed() pxp.PuppetResults {
	return pxp.PuppetResults{
		Time: "2026-11-21T10:00:00.123456789+01:00", TransactionUUID: "8b3a7c5e-0000-4000-8000-000000000001", Environment: "production",
		Status: "changed", Metrics: map[string]int{"total": 8, "changed": 1}, Version: 1,
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	s := newStub(t, "report")
	results, code, printed := s.run(t.Context(), "--noop")
	if diff := cmp.Diff(changed(), results); diff != "" || code != 0 {
		t.Errorf("exit code %d, results (-want +got):\n%s", code, diff)
	}
	if printed != "Notice: Applied\n" || s.runs() != "agent --onetime --no-daemonize --verbose --noop\n" {
		t.Errorf("printed %q, ran %q", printed, s.runs())
	}
}

// What noop kept from changing is counted as reports count it: by resources, not by events, and those that were only to be refreshed are among them.
func TestPending(t *testing.T) {
	t.Parallel()
	s := newStub(t, "report")
	s.write("new-report", someReport+`    events:
    - !ruby/object:Puppet::Transaction::Event
      property: ensure
      status: noop
    - !ruby/object:Puppet::Transaction::Event
      property: mode
      status: noop
  Service[x]: !ruby/object:Puppet::Resource::Status
    events:
    - !ruby/object:Puppet::Transaction::Event
      name: :refresh
      status: noop
  Exec[done]: !ruby/object:Puppet::Resource::Status
    events:
    - !ruby/object:Puppet::Transaction::Event
      status: success
`)
	want := changed()
	want.Pending = 2
	if results, _, _ := s.run(t.Context(), "--noop"); !cmp.Equal(want, results) {
		t.Errorf("results (-want +got):\n%s", cmp.Diff(want, results))
	}
	s.write("new-report", strings.Replace(someReport, "resource_statuses:", "resource_statuses: gone\nothers:", 1))
	if results, _, _ := s.run(t.Context(), "--noop"); !cmp.Equal(changed(), results) {
		t.Errorf("a report without resources (-want +got):\n%s", cmp.Diff(changed(), results))
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	failed := changed()
	failed.ExitCode, failed.ErrorType = 1, pxp.AgentExitNonZero
	unknown := func(kind string, exit int) pxp.PuppetResults { return wrong(kind, exit, "") }
	for name, c := range map[string]struct {
		body string
		want pxp.PuppetResults
		text string
		runs int
	}{
		"with a report":   {"report; exit 1", failed, "exit code 1", 1},
		"no report":       {"exit 1", unknown(pxp.NoLastRunReport, 1), "left no report", 1},
		"no report, well": {"exit 0", unknown(pxp.NoLastRunReport, 0), "left no report", 1},
		"disabled":        {"touch disabled; exit 1", unknown(pxp.AgentDisabled, 1), "disabled", 1},
		"not YAML":        {"echo ': [' > report.yaml", unknown(pxp.InvalidLastRunReport, 0), "not the YAML", 1},
		"killed":          {"kill -9 $$", unknown(pxp.NoLastRunReport, 1), "left no report", 1},
		"not a report":    {"echo 'a: 1' > report.yaml", unknown(pxp.InvalidLastRunReport, 0), "neither status", 1},
		"locked again": {
			"touch lock; if ! test -e again; then (sleep 0.3; rm lock) > /dev/null 2>&1 & fi; touch again; exit 1", unknown(pxp.AgentLocked, 1), "began before", 2,
		},
		"locked, then free": {
			"test -e lock && exit 3; test -e again && { report; exit 0; }; touch lock again; (sleep 0.3; rm lock) > /dev/null 2>&1 & exit 1", changed(), "", 2,
		},
		"the other's report": {
			"test -e again && exit 1; touch lock again; (sleep 0.2; cp new-report report.yaml; rm lock) > /dev/null 2>&1 & exit 1",
			unknown(pxp.NoLastRunReport, 1), "unexpected way", 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, c.body)
			results, code, _ := s.run(t.Context())
			if diff := cmp.Diff(c.want, results, cmpopts.IgnoreFields(pxp.PuppetResults{}, "Error")); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if (code == 1) != (results.ErrorType != "") || !strings.Contains(results.Error, c.text) || (results.Error == "") != (results.ErrorType == "") {
				t.Errorf("exit code %d, error %q", code, results.Error)
			}
			if n := strings.Count(s.runs(), "\n"); n != c.runs {
				t.Errorf("Puppet was run %d times, not %d", n, c.runs)
			}
		})
	}
}

// A report that was there before is not this run's.
func TestOldReport(t *testing.T) {
	t.Parallel()
	s := newStub(t, "exit 1")
	s.write("report.yaml", someReport)
	results, _, _ := s.run(t.Context())
	if results.ErrorType != pxp.NoLastRunReport || !strings.Contains(results.Error, "The Puppet run failed in an unexpected way") {
		t.Errorf("got %+v", results)
	}
}

func TestOrdersThatAreNone(t *testing.T) {
	t.Parallel()
	s := newStub(t, "report")
	for order, want := range map[string]string{
		"":                                 pxp.InvalidJSON,
		"{":                                pxp.InvalidJSON,
		`{"input":{}}`:                     pxp.InvalidJSON,
		`{"input":{"flags":["--server"]}}`: pxp.InvalidJSON,
		`{"input":{"flags":[]},"configuration":{"puppet_bin":"/nobody/here"}}`: pxp.NoPuppetBin,
	} {
		results, code, _ := s.order(t.Context(), order)
		if results.ErrorType != want || results.ExitCode != -1 || code != 1 || results.Status != "unknown" {
			t.Errorf("%s: exit code %d, %+v", order, code, results)
		}
	}
	if s.runs() != "" {
		t.Errorf("Puppet ran: %s", s.runs())
	}
}

// Who is told to end does not wait for a lock.
func TestStoppedWhileItWaits(t *testing.T) {
	t.Parallel()
	s := newStub(t, "echo $$ > pid.new; mv pid.new pid; touch lock; exit 1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range tick.C { // until Puppet has been here, and is gone
			var pid int
			text, _ := os.ReadFile(filepath.Join(s.dir, "pid"))
			if _, err := fmt.Sscan(string(text), &pid); err == nil && syscall.Kill(pid, 0) != nil {
				cancel()
				return
			}
		}
	}()
	results, _, _ := s.run(ctx)
	if results.ErrorType != pxp.AgentLocked {
		t.Errorf("got %+v", results)
	}
}
