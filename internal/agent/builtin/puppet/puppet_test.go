package puppet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/builtintest"
	"github.com/tutti-project/tutti/internal/agent/builtin/puppet"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/programtest"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// node is a machine whose Puppet has directories of its own.
type node struct {
	t      *testing.T
	dir    string
	puppet string
	config puppet.Config
}

// realNode has the Puppet that is installed.
func realNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir()}
	n.has(programtest.Puppet(t, n.dir, "--basemodulepath", filepath.Join(n.dir, "modules")))
	return n
}

// fakeNode has a Puppet that tells where its files are.
func fakeNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir()}
	n.has(programtest.Write(t, filepath.Join(n.dir, "puppet"), fmt.Sprintf(`#!/bin/sh
echo x >> %[1]s/starts
echo "config = %[1]s/puppet.conf"
echo "agent_catalog_run_lockfile = %[1]s/run.lock"
echo "agent_disabled_lockfile = %[1]s/disabled.lock"
echo "lastrunreport = %[1]s/report.yaml"
echo "lastrunfile = %[1]s/summary.yaml"
echo "resourcefile = %[1]s/resources.txt"
echo "pidfile = %[1]s/agent.pid"
`, n.dir)))
	return n
}

func (n *node) has(program string) {
	n.puppet = program
	n.config = puppet.Config{Puppet: func() (string, error) { return n.puppet, nil }, Settings: filepath.Join(n.dir, "settings.json")}
}

func (n *node) write(name, text string) {
	n.t.Helper()
	if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) read(name string) string {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		n.t.Fatal(err)
	}
	return string(text)
}

// says is what the installed Puppet prints.
func (n *node) says(args ...string) string {
	n.t.Helper()
	out, err := exec.CommandContext(n.t.Context(), n.puppet, args...).CombinedOutput()
	if err != nil {
		n.t.Fatalf("puppet %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (n *node) module() orders.Module {
	n.t.Helper()
	made, err := builtin.Orders([]builtin.Module{puppet.Module(n.config)}, []string{"/tutti", "errand", "action"})
	if err != nil {
		n.t.Fatal(err)
	}
	return made[0]
}

// ask asks what is only read.
func (n *node) ask(name, input string) (map[string]any, error) {
	n.t.Helper()
	return builtintest.ReadFields(n.t, n.module().Actions[name], input)
}

// order does what changes something, as the program that the agent starts.
func (n *node) order(name, input string) (results, errs string, done bool) {
	n.t.Helper()
	var out, said bytes.Buffer
	done = builtin.Main(n.t.Context(), []builtin.Module{puppet.Module(n.config)}, puppet.Name, name, strings.NewReader(input), &out, &said)
	return out.String(), strings.TrimSpace(said.String()), done
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	m := puppet.Module(puppet.Config{})
	parsed, err := action.Parse(m.Name, m.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range parsed.Actions {
		names = append(names, fmt.Sprintf("%s %v", a.Name, a.ReadOnly))
	}
	want := []string{"disable false", "enable false", "last_run_summary true", "resource false", "runonce false", "status true"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// Locks are those that the real Puppet writes, reads and removes.
func TestLocksAreThoseOfPuppet(t *testing.T) {
	t.Parallel()
	n := realNode(t)
	const path = "var/state/agent_disabled.lock"
	for given, more := range map[string][]string{
		`{}`: nil, `{"message":"kernel \"5\" / back\\slash ünïcode \u2028 x"}`: {"kernel \"5\" / back\\slash ünïcode \u2028 x"},
	} {
		args := append([]string{"agent", "--disable"}, more...)
		n.says(args...)
		want := n.read(path)
		n.says("agent", "--enable")
		if n.read(path) != "" {
			t.Fatal("Puppet did not enable itself")
		}
		results, errs, done := n.order("disable", given)
		if got := n.read(path); got != want || !done {
			t.Errorf("%s: the lock is %q, Puppet's is %q; %s %s", given, got, want, results, errs)
		}
		info, err := os.Stat(filepath.Join(n.dir, path))
		if err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if out, err := exec.CommandContext(t.Context(), n.puppet, "agent",
			"--onetime", "--no-daemonize", "--verbose").CombinedOutput(); !strings.Contains(string(out), "administratively disabled") {
			t.Errorf("Puppet does not see the lock: %v %s", err, out)
		}
		if results, errs, done := n.order("enable", `{}`); !done || n.read(path) != "" || results != `{"status":"Puppet is enabled","enabled":true}` {
			t.Errorf("enable: %s %s", results, errs)
		}
	}
}

func TestLockedTwice(t *testing.T) {
	t.Parallel()
	n := fakeNode(t)
	for _, step := range []struct {
		action, input, results, errs string
		done                         bool
	}{
		{"enable", `{}`, `{"status":"Puppet is enabled already","enabled":true}`, "Puppet is enabled already", false},
		{"disable", `{"message":"one"}`, `{"status":"Puppet is disabled: one","enabled":false}`, "", true},
		{"disable", `{"message":"two"}`, `{"status":"Puppet is disabled already: one","enabled":false}`, "Puppet is disabled already: one", false},
		{"enable", `{}`, `{"status":"Puppet is enabled","enabled":true}`, "", true},
		{"disable", `{"message":"` + strings.Repeat("x", 121) + `"}`, "", "field message: it has 121 characters, at most 120 are allowed", false},
		{"disable", `{"message":"a & b"}`, "", "field message: it must be a text without the characters ` $ ; | & > <", false},
		{"runonce", `{}`, "", "puppet runonce is done by another program", false},
	} {
		results, errs, done := n.order(step.action, step.input)
		if results != step.results || errs != step.errs || done != step.done {
			t.Errorf("%s: %s, %q, %v", step.action, results, errs, done)
		}
	}
	if left := n.read("disabled.lock"); left != "" {
		t.Error(left)
	}
	entries, err := filepath.Glob(filepath.Join(n.dir, ".new-*"))
	if err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if starts := n.read("starts"); starts != "x\n" {
		t.Errorf("Puppet was started %d times", strings.Count(starts, "x"))
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	n := fakeNode(t)
	process := func(as string) string { // a process with this name
		program := programtest.Write(t, filepath.Join(t.TempDir(), as), "#!/bin/sh\nread x\n")
		cmd := exec.CommandContext(t.Context(), program)
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
		return fmt.Sprintln(cmd.Process.Pid)
	}
	puppets, others := process("puppet"), process("other")
	now := time.Now().Unix()
	for _, c := range []struct {
		files map[string]string // empty: there is none
		want  string            // status, message, applying, idling, enabled, daemon_present, lock message
	}{
		{nil, "stopped|Currently stopped; no run has completed yet|false false true false|"},
		{map[string]string{
			"summary.yaml": fmt.Sprintf("time:\n  last_run: %d\n", now-3661),
		}, "stopped|Currently stopped; last completed run 1 hours 1 minutes 01 seconds ago|false false true false|"},
		{map[string]string{"agent.pid": puppets}, "idling|Currently idling; no run has completed yet|false true true true|"},
		{map[string]string{"agent.pid": others}, "stopped|Currently stopped; no run has completed yet|false false true false|"},
		{map[string]string{
			"agent.pid": puppets, "run.lock": puppets,
		}, "applying a catalog|Currently applying a catalog; no run has completed yet|true false true true|"},
		{map[string]string{"run.lock": "4194304"}, "stopped|Currently stopped; no run has completed yet|false false true false|"},
		{map[string]string{"run.lock": "-1", "agent.pid": "x"}, "stopped|Currently stopped; no run has completed yet|false false true false|"},
		{map[string]string{
			"disabled.lock": `{"disabled_message":"why"}`, "run.lock": puppets,
		}, "disabled|Currently disabled; no run has completed yet|true false false false|why"},
		{map[string]string{"disabled.lock": "{"}, "disabled|Currently disabled; no run has completed yet|false false false false|"},
	} {
		for _, name := range []string{"summary.yaml", "agent.pid", "run.lock", "disabled.lock"} {
			_ = os.Remove(filepath.Join(n.dir, name))
			if text := c.files[name]; text != "" {
				n.write(name, text)
			}
		}
		s, err := n.ask("status", `{}`)
		got := fmt.Sprintf("%v|%v|%v %v %v %v|%v", s["status"], s["message"], s["applying"], s["idling"], s["enabled"], s["daemon_present"], s["disable_message"])
		got = strings.ReplaceAll(got, "minutes 02", "minutes 01") // a second has gone by
		if err != nil || got != c.want {
			t.Errorf("%v: got %s, %v, want %s", c.files, got, err, c.want)
		}
	}
	if starts := n.read("starts"); starts != "x\n" {
		t.Errorf("Puppet was started %d times", strings.Count(starts, "x"))
	}
	n.write("summary.yaml", "a: [")
	if _, err := n.ask("status", `{}`); err == nil || !strings.Contains(err.Error(), "summary.yaml, cannot be read") {
		t.Error(err)
	}
}

// What is told of a run is what the real Puppet wrote of it.
func TestSummaryIsThatOfPuppet(t *testing.T) {
	t.Parallel()
	n := realNode(t)
	none, err := n.ask("last_run_summary", `{}`)
	if err != nil || none["total_resources"] != 0.0 || none["config_version"] != "unknown" || none["since_lastrun"] != nil {
		t.Errorf("before the first run: %v, %v", none, err)
	}
	n.says("apply", "--write-catalog-summary", "-e", `class role::web { notify { 'multi
line': } file { "`+n.dir+`/made": content => 'x' } file { "`+n.dir+`/no/such": content => 'y' } } include role::web`)
	s, err := n.ask("last_run_summary", `{"logs":true}`)
	if err != nil {
		t.Fatal(err)
	}
	// Ruby reads the same file.
	cmd := exec.CommandContext(t.Context(), "ruby", "-ryaml", "-rjson", "-e", "puts JSON.dump(YAML.load_file(ARGV[0]))",
		filepath.Join(n.dir, "public/last_run_summary.yaml"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s["summary"]); diff != "" {
		t.Errorf("(-Ruby +got):\n%s", diff)
	}
	resources, times := want["resources"].(map[string]any), want["time"].(map[string]any)
	for field, value := range map[string]any{
		"out_of_sync_resources": resources["out_of_sync"], "failed_resources": resources["failed"], "changed_resources": resources["changed"],
		"total_resources":     resources["total"],
		"corrected_resources": resources["corrective_change"], "config_retrieval_time": times["config_retrieval"], "total_time": times["total"],
		"lastrun": times["last_run"], "config_version": fmt.Sprintf("%.0f", want["version"].(map[string]any)["config"]),
	} {
		if s[field] != value {
			t.Errorf("%s: got %v, want %v", field, s[field], value)
		}
	}
	if s["failed_resources"] != 1.0 || s["changed_resources"] != 2.0 {
		t.Errorf("the run was another one: %v", s)
	}
	if diff := cmp.Diff(map[string]any{"Notify": 1.0, "File": 2.0}, s["type_distribution"]); diff != "" {
		t.Error(diff)
	}
	out, err = exec.CommandContext(t.Context(), "ruby", "-rpuppet", "-rjson", "-e", `
r = YAML.unsafe_load_file(ARGV[0])
logs = r.is_a?(Hash) ? r['logs'] : r.logs.map(&:to_data_hash)
puts JSON.dump(logs.map { |l| { 'time_utc' => Time.parse(l['time'].to_s).to_i, 'time' => Time.parse(l['time'].to_s).to_i, 'level' => l['level'].to_s, 'source' => l['source'], 'msg' => l['message'].chomp } })`,
		filepath.Join(n.dir, "var/state/last_run_report.yaml")).Output()
	if err != nil {
		t.Fatal(err)
	}
	var logs []any
	if err := json.Unmarshal(out, &logs); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(logs, s["logs"]); diff != "" || len(logs) < 4 {
		t.Errorf("logs (-Ruby +got):\n%s", diff)
	}
	if status, err := n.ask("status", `{}`); err != nil || status["lastrun"] != times["last_run"] {
		t.Errorf("status: %v, %v", status, err)
	}
}

// A resource of which nobody knows whether Puppet manages it is not called unmanaged.
func TestManagedResources(t *testing.T) {
	t.Parallel()
	n := fakeNode(t)
	managed := func() string {
		fields, err := puppet.ResourceData(n.config)(t.Context(), "File[/etc/Hosts]")
		if err != nil {
			return err.Error()
		}
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		managed, _, _ := strings.Cut(string(text), ",")
		return managed
	}
	if got := managed(); got != `{"managed":false` {
		t.Errorf("without a list: %s", got)
	}
	n.write("resources.txt", "group[root]\nfile[/etc/hosts]\n")
	if got := managed(); got != `{"managed":true` {
		t.Errorf("it is in the list: %s", got)
	}
	path := filepath.Join(n.dir, "resources.txt")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if got := managed(); !strings.HasPrefix(got, "Puppet's list of resources cannot be read: ") {
		t.Errorf("a list that cannot be read: %s", got)
	}
}

func TestLogsAreBounded(t *testing.T) {
	t.Parallel()
	n := fakeNode(t)
	line := "- !ruby/object:Puppet::Util::Log\n  level: !ruby/sym notice\n  message: \"many\\n\"\n  source: Puppet\n  time: 2026-11-21 10:00:00.5 +01:00\n"
	count := func(report string) (int, string) {
		n.write("report.yaml", report)
		s, err := n.ask("last_run_summary", `{"logs":true}`)
		if err != nil {
			t.Fatal(err)
		}
		logs, _ := s["logs"].([]any)
		if len(logs) == 0 {
			return 0, ""
		}
		return len(logs), fmt.Sprint(logs[len(logs)-1])
	}
	for report, want := range map[string]int{
		"--- !ruby/object:Puppet::Transaction::Report\nhost: x\nlogs: []\nmetrics: {}\n": 0,
		"--- x\nhost: x\n": 0,
		"---\nlogs:\n" + line + line + "metrics:\n  a: 1\n":                        2,
		"---\nlogs:\n" + line:                                                      1,
		"---\nlogs:\n" + strings.Repeat(line, 1001):                                1001,
		"---\nlogs:\n- level: a\n  message: '" + strings.Repeat("x", 5000) + "'\n": 1,
	} {
		if got, last := count(report); got != want {
			t.Errorf("%.200q: %d lines, want %d: %.200s", report, got, want, last)
		}
	}
	if n, last := count("---\nlogs:\n" + strings.Repeat(line, 1001)); n != 1001 || !strings.Contains(last, "; 1000 lines are shown") {
		t.Errorf("%d %s", n, last)
	}
	long := "- level: info\n  message: " + strings.Repeat("y", 1<<20) + "\n"
	if n, last := count("---\nlogs:\n" + strings.Repeat(long, 6)); n != 4 || !strings.Contains(last, "; 3 lines are shown") {
		t.Errorf("%d %.200s", n, last)
	}
}

func TestRunOnce(t *testing.T) {
	t.Parallel()
	n := fakeNode(t)
	n.config.Run = orders.PreparePuppet(orders.Node{PuppetRun: []string{"/tutti", "errand", "puppet"}, Puppet: "/p", Settings: "/s"})
	a := n.module().Actions["runonce"]
	if a.Lane != orders.PuppetRun {
		t.Error("it is not in the lane of Puppet runs")
	}
	for input, want := range map[string]string{
		`{}`:             "",
		`{"force":true}`: "--no-splay",
		`{"force":false,"splay":true,"splaylimit":30}`: "--splay --splaylimit 30",
		`{"splay":false}`:               "--no-splay",
		`{"noop":true,"tags":"a,b::c"}`: "--noop --tags a,b::c",
		`{"noop":false,"environment":"dev_1","use_cached_catalog":true}`: "--no-noop --use_cached_catalog --environment dev_1",
		`{"use_cached_catalog":false}`:                                   "--no-use_cached_catalog",
		`{"force":true,"splay":true}`:                                    "!field force: it means no splay; leave out splay and splaylimit",
		`{"force":true,"splaylimit":1}`:                                  "!field force: it means no splay; leave out splay and splaylimit",
		`{"server":"evil"}`:                                              "!field server: Puppet of this node asks the server in its own settings; leave it out",
		`{"tags":"$(x)"}`:                                                "!field tags: it must be tags",
		`{"environment":"a-b"}`:                                          "!field environment: it must be a name",
		`{"splaylimit":-1}`:                                              "!field splaylimit: it must be at least 0",
		`{"other":1}`:                                                    "!field other: the action takes no such field",
		`{"noop":"x"}`:                                                   "!field noop: it must be of the type boolean",
	} {
		err := a.Check(jsontext.Value(input))
		if text, bad := strings.CutPrefix(want, "!"); bad {
			if !strings.HasPrefix(fault.Detail(err), text) {
				t.Errorf("%s: %v", input, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", input, err)
			continue
		}
		c, err := a.Prepare(t.Context(), orders.Order{Transaction: "t1", Params: jsontext.Value(input)})
		var o pxp.PuppetOrder
		if err == nil {
			err = json.Unmarshal(c.Input, &o)
		}
		var p pxp.PuppetParams
		if err == nil {
			p, err = pxp.ParsePuppet(o.Input)
		}
		if got := strings.Join(p.Flags, " "); err != nil || got != want || c.Path != "/tutti" || o.Configuration.Puppet != "/p" ||
			o.Configuration.Transaction != "t1" {
			t.Errorf("%s: %q, %v, want %q; %+v", input, got, err, want, o)
		}
	}
}

func TestWhatARunGives(t *testing.T) {
	t.Parallel()
	n := fakeNode(t)
	n.config.Run = func(context.Context, orders.Order) (orders.Command, error) { return orders.Command{}, nil }
	a := n.module().Actions["runonce"]
	run := pxp.PuppetResults{Time: "1970-01-01T00:00:10Z", Environment: "production", Status: "changed", Metrics: map[string]int{"total": 8, "changed": 1}}
	failed := run
	failed.Status, failed.ErrorType, failed.Error, failed.ExitCode, failed.Stderr = "failed", pxp.AgentExitNonZero, "Puppet ended with exit code 1",
		1, "Error: x\nError: y\n"
	failed.Metrics = map[string]int{"total": 8, "changed": 1, "failed": 2}
	noop := run
	noop.Pending = 3
	disabled := pxp.PuppetResults{
		Time: "unknown", Status: "unknown", ErrorType: pxp.AgentDisabled, Error: "Puppet is disabled on this node", Metrics: map[string]int{},
	}
	other := run
	other.ErrorType, other.Error = pxp.OtherCatalog, "it applied another catalog"
	exit := 0
	for _, c := range []struct {
		output     string
		ended      string
		want, errs string
		aborted    bool
	}{
		{string(pxp.Data(run)), "", `{"summary":"Puppet ran in the environment production: changed; 1 of 8 resources changed, 0 failed","initiated_at":10}`, "", false},
		{string(pxp.Data(noop)), "", `{"summary":"Puppet ran in the environment production: changed; 1 of 8 resources changed, 0 failed, 3 would change without noop","initiated_at":10}`, "", false},
		{
			string(pxp.Data(failed)), "",
			`{"summary":"Puppet ran in the environment production: failed; 1 of 8 resources changed, 2 failed; Puppet says: Error: x Error: y","initiated_at":10}`,
			"Puppet ran in the environment production: failed; 1 of 8 resources changed, 2 failed; Puppet says: Error: x Error: y", true,
		},
		{string(pxp.Data(disabled)), "", `{"summary":"Puppet is disabled on this node"}`, "Puppet is disabled on this node", true},
		{
			string(pxp.Data(other)), "",
			`{"summary":"Puppet ran in the environment production: changed; 1 of 8 resources changed, 0 failed; it applied another catalog","initiated_at":10}`,
			"Puppet ran in the environment production: changed; 1 of 8 resources changed, 0 failed; it applied another catalog", true,
		},
		{"", "", "", "returned no results - stderr: (empty)", false},
		{string(pxp.Data(run)), pxp.EndedByTime, "", "was ended before Puppet was done", false},
	} {
		results, err := a.Results(orders.Output{Exit: &exit, Ended: c.ended, Stdout: []byte(c.output)})
		aborted, is := errors.AsType[*orders.Aborted](err)
		if is {
			results = aborted.Data
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if string(results) != c.want || text != c.errs || is != c.aborted {
			t.Errorf("%s: %s, %q", c.output, results, text)
		}
	}
}
