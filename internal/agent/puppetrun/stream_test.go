package puppetrun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// line is one line that the hook writes.
type line struct {
	N           int             `json:"n"`
	Kind        string          `json:"kind"`
	At          time.Time       `json:"at"`
	Environment string          `json:"environment"`
	Transaction string          `json:"transaction_id"`
	Status      string          `json:"status"`
	Noop        bool            `json:"noop"`
	Pending     int             `json:"pending"`
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Property    string          `json:"property"`
	Message     string          `json:"message"`
	Old         json.RawMessage `json:"old"`
	New         json.RawMessage `json:"new"`
	Redacted    bool            `json:"redacted"`
	Corrective  bool            `json:"corrective"`
	File        string          `json:"file"`
	Line        int             `json:"line"`
	Containment []string        `json:"containment"`
}

// applied is a `puppet apply` in a directory of its own.
type applied struct {
	dir    string
	out    string
	events string // the directory
}

// apply applies a manifest with the installed puppet, and the hook.
func apply(t *testing.T, manifest string, prepare func(*applied), args ...string) applied {
	t.Helper()
	bin, err := exec.LookPath("puppet")
	if err != nil {
		t.Fatal("puppet is not installed; apt-get install puppet-agent (make test-deps)")
	}
	a := applied{dir: t.TempDir()}
	a.events = filepath.Join(a.dir, "events")
	if prepare != nil {
		prepare(&a)
	}
	file := filepath.Join(a.dir, "site.pp")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(manifest, "DIR", a.dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{
		"apply", "--confdir", a.dir + "/conf", "--vardir", a.dir + "/var", "--logdir", a.dir + "/log", "--rundir", a.dir + "/run",
		"--codedir", a.dir + "/code", "--color", "false", "--facts_terminus", "yaml", file, // facts take long, and say nothing here
	}, args...)
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Env = append(os.Environ(), puppetenv.Environment(os.Getenv)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	stream{dir: a.events, transaction: "order-7"}.into(cmd)
	_ = cmd.Run() // runs with failures end with a code of their own
	a.out = out.String()
	return a
}

// lines reads the events of the only run.
func (a applied) lines(t *testing.T) []line {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(a.events, "*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no events: %v\n%s", err, a.out)
	}
	slices.Sort(files)
	var lines []line
	for _, file := range files {
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for one := range bytes.Lines(text) {
			var l line
			if err := json.Unmarshal(one, &l); err != nil {
				t.Fatalf("%s: %v", one, err)
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// reported reads the events of the report, as the lines should be.
func (a applied) reported(t *testing.T) []line {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.dir, "var", "state", "last_run_report.yaml"))
	if err != nil {
		t.Fatalf("%v\n%s", err, a.out)
	}
	var report struct {
		Environment string
		Statuses    map[string]struct {
			Type        string `yaml:"resource_type"`
			Title       string
			File        string
			Line        int
			Skipped     bool
			Time        string
			Containment []string `yaml:"containment_path"`
			Events      []struct {
				Status, Property, Message, Time string
				Previous                        yaml.Node `yaml:"previous_value"`
				Desired                         yaml.Node `yaml:"desired_value"`
				Redacted                        bool
				Corrective                      bool `yaml:"corrective_change"`
			}
		} `yaml:"resource_statuses"`
	}
	if err := yaml.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	var all []line
	for _, status := range report.Statuses {
		base := line{
			Kind: "resource", Environment: report.Environment, Type: status.Type, Title: status.Title, File: status.File, Line: status.Line,
			Containment: status.Containment,
		}
		if status.Skipped {
			l := base
			l.Status, l.At = "skipped", timeOf(t, status.Time)
			all = append(all, l)
		}
		for _, e := range status.Events {
			l := base
			l.Status, l.At, l.Property, l.Message, l.Redacted, l.Corrective = e.Status, timeOf(t, e.Time), e.Property, e.Message, e.Redacted, e.Corrective
			l.Old, l.New = jsonOf(t, e.Previous), jsonOf(t, e.Desired)
			all = append(all, l)
		}
	}
	return all
}

func timeOf(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UTC()
}

func jsonOf(t *testing.T, node yaml.Node) json.RawMessage {
	t.Helper()
	var value any
	if node.Kind == 0 || node.Tag == "!!null" {
		return nil
	}
	if err := node.Decode(&value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// everything has a resource for each way in which things happen.
const everything = `
file { 'DIR/plain': content => "hello\n" }
file { 'DIR/quiet': content => 'hunter-two-quiet', show_diff => false }
file { 'DIR/secret': content => Sensitive('hunter-two-secret') }
file { 'DIR/there': content => 'hunter-two-new', show_diff => false }
file { 'DIR/tree': ensure => directory, source => 'DIR/from', recurse => true }
exec { 'fails': command => '/bin/false' }
exec { 'skipped because of it': command => '/bin/true', require => Exec['fails'] }
exec { 'dry': command => '/bin/true', noop => true }
exec { 'secret': command => Sensitive('/bin/echo hunter-two-command') }
exec { 'refreshed': command => '/bin/true', refreshonly => true, subscribe => File['DIR/plain'] }
exec { 'refresh fails': command => '/bin/false', refreshonly => true, subscribe => File['DIR/plain'] }
exec { 'children load nothing': command => '/usr/bin/ruby -e "exit 3 if defined?(TuttiEvents) || ENV.keys.grep(/TUTTI/).any? || ENV[%q(RUBYOPT)].to_s.include?(%q(events))"' }
notify { "naïve \"text\"": }
notify { 'scheduled': schedule => 'never' }
schedule { 'never': range => '0:00 - 0:00', periodmatch => number, period => never }
class c { file { 'DIR/contained': ensure => absent } notify { 'contained': } }
include c
`

// What the hook writes is what the report says, and no more: what is redacted there is redacted here.
func TestHookWritesWhatTheReportSays(t *testing.T) {
	t.Parallel()
	a := apply(t, everything, func(a *applied) {
		for name, text := range map[string]string{"there": "hunter-two-old", "from/sub/file": "x", "from/other": "y"} {
			path := filepath.Join(a.dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	lines := a.lines(t)
	first, last := lines[0], lines[len(lines)-1]
	if first.Kind != "begin" || first.Transaction != "order-7" || first.At.IsZero() || last.Kind != "end" || last.Status != "failed" || last.Pending != 1 ||
		last.Environment != "production" {
		t.Errorf("the run is %+v to %+v", first, last)
	}
	var got []line
	for i, l := range lines {
		if l.N != i+1 {
			t.Errorf("number %d comes at place %d", l.N, i+1)
		}
		if l.Kind == "resource" {
			l.N, l.At = 0, l.At.UTC()
			got = append(got, l)
		}
	}
	want := a.reported(t)
	order := func(a, b line) int { return strings.Compare(sortKey(a), sortKey(b)) }
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report and events (-report +events):\n%s", diff)
	}
	found := map[string]bool{}
	for _, l := range got {
		found[l.Status] = true
		if l.Title == "children load nothing" && l.Status != "success" {
			t.Errorf("a program of the run has the hook: %+v\n%s", l, a.out)
		}
	}
	for _, status := range []string{"success", "failure", "noop", "skipped"} {
		if !found[status] {
			t.Errorf("nothing has the status %s; the test is not what it seems", status)
		}
	}
	if text := a.everythingWritten(t); strings.Contains(text, "hunter-two-s") || strings.Contains(text, "hunter-two-c") ||
		strings.Contains(text, "hunter-two-n") || strings.Contains(text, "hunter-two-q") {
		t.Errorf("a secret was written:\n%s", text)
	}
}

func sortKey(l line) string {
	return fmt.Sprintf("%s[%s] %s %s %s %s", l.Type, l.Title, l.Property, l.Status, l.At, l.Message)
}

func (a applied) everythingWritten(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, l := range a.lines(t) {
		fmt.Fprintf(&all, "%+v %s %s\n", l, l.Old, l.New)
	}
	return all.String()
}

// Where events cannot be written, runs are as they were.
func TestRunsWithoutEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		return programtest.Write(t, filepath.Join(dir, name), text)
	}
	script, shell := write("ruby/puppet", "#!/usr/bin/env ruby\n"), write("shell/puppet", "#!/bin/sh\n")
	file := write("file", "")
	for name, c := range map[string]struct{ bin, events string }{
		"nowhere to write":       {script, ""},
		"a file in the way":      {script, file},
		"a blank in the path":    {script, filepath.Join(dir, "a b")},
		"no script":              {file, filepath.Join(dir, "events")},
		"a program that is gone": {filepath.Join(dir, "none"), filepath.Join(dir, "events")},
	} {
		cmd := exec.CommandContext(t.Context(), c.bin)
		cmd.Env = []string{"RUBYOPT=-W0"}
		stream{dir: c.events}.into(cmd)
		if cmd.Path != c.bin || len(cmd.Env) != 1 {
			t.Errorf("%s: %s %v", name, cmd.Path, cmd.Env)
		}
	}
	own := exec.CommandContext(t.Context(), shell)
	stream{dir: filepath.Join(dir, "events")}.into(own)
	if own.Path != shell || puppetenv.LastOf(own.Env, "RUBYOPT") == "" {
		t.Errorf("somebody's own script: %s %v", own.Path, own.Env)
	}
}

// Puppet's own packages put a script before it that clears what Ruby would read: what the script calls is called,
// in the environment that the script makes.
func TestRunsBehindAWrapper(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"puppet/bin/wrapper.sh": "#!/bin/sh\n", "puppet/bin/puppet": "#!/opt/puppetlabs/puppet/bin/ruby\n"} {
		programtest.Write(t, filepath.Join(dir, name), text)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../puppet/bin/wrapper.sh", filepath.Join(bin, "puppet")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "puppet"), "agent")
	cmd.Env = []string{"PATH=/usr/bin", "RUBYLIB=/other", "GEM_HOME=/gems", "RUBYOPT=-W0", "HOME=/root"}
	events := filepath.Join(dir, "events")
	stream{dir: events, transaction: "t1"}.into(cmd)
	hooked := filepath.Join(events, hookFile)
	want := []string{
		"HOME=/root", "PATH=/usr/bin:" + bin, "RUBYOPT=-r" + hooked, "TUTTI_EVENTS=" + events, "TUTTI_EVENTS_HOOK=" + hooked, "TUTTI_EVENTS_TRANSACTION=t1",
	}
	got := slices.DeleteFunc(slices.Clone(cmd.Env), func(v string) bool { return v == "PATH=/usr/bin" }) // the last one counts
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || filepath.Clean(cmd.Path) != filepath.Join(dir, "puppet", "bin", "puppet") {
		t.Errorf("%s in (-want +got):\n%s", cmd.Path, diff)
	}
}

// The second file cannot be made.
func TestHookEndsItselfWhenItCannotWrite(t *testing.T) {
	t.Parallel()
	a := apply(t, `
		exec { 'one': command => '/bin/sh -c "cd DIR/events/*/ && ln -s /dev/full 000002.jsonl"' }
		Integer[1, 1100].each |$i| { notify { "n$i": require => Exec['one'] } }
		file { 'DIR/after': content => 'x', require => Notify['n1100'] }`, nil)
	lines := a.lines(t)
	if len(lines) != 1000 || lines[len(lines)-1].Kind == "end" {
		t.Errorf("%d lines, the last is %+v", len(lines), lines[len(lines)-1])
	}
	if _, err := os.Stat(filepath.Join(a.dir, "after")); err != nil || !strings.Contains(a.out, "not streamed any more") {
		t.Errorf("%v\n%s", err, a.out)
	}
}
