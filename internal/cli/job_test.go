package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// mixed is a job that went well on three nodes and not on others.
func mixed(t *testing.T) *jobServer {
	t.Helper()
	s := newJobServer(t)
	s.plan = api.JobPlan{
		Digest: "d1", Nodes: 5, Offline: []string{"away"},
		Targets: []api.JobTarget{{Node: "a"}, {Node: "away"}, {Node: "b"}, {Node: "c"}, {Node: "d", Connected: &api.Connected{Agent: "tutti-agent/1"}}},
	}
	s.runs = []api.JobRun{
		run("a", "succeeded", "", "up\n"), run("c", "succeeded", "", "up\n"), run("b", "succeeded", "", "down\n"),
		run("d", "failed", "exit code 3", "boom\n"),
		{Job: "12", Node: "away", State: "offline", Reason: "not connected"},
	}
	three := 3
	s.runs[3].ExitCode = &three
	for _, node := range []string{"a", "c"} {
		s.output[node] = lines(node, "up\n", "")
	}
	s.output["b"], s.output["d"] = lines("b", "down\n", ""), lines("d", "", "boom \x1b[31mred\n")
	return s
}

func TestARunOfACommand(t *testing.T) {
	t.Parallel()
	s := mixed(t)
	got := s.tutti(t.Context(), "", nil, "command", "run", "uptime", "--targets", "a,b", "-n", "c", "--group", "Web", "--max-failures", "2", "--concurrency", "3",
		"--timeout", "90s", "--wait-offline", "1m", "--description", "why", "--exclude", "x")
	want := result{code: exitSomeFailed, out: `same on 2 nodes: a, c: succeeded
  up
b: succeeded
  down
d: failed: exit code 3
  stderr: boom [31mred
away: offline: not connected
`, err: `5 nodes: a, away, b, c, d
Not connected, they have 1m to connect: away
Job 12: command uptime on 5 nodes
a: succeeded (3s)
c: succeeded (3s)
b: succeeded (3s)
d: failed (3s)
away: offline
tutti: job 12 failed after 41s: 3 succeeded, 1 failed, 1 offline; once more for those that did not succeed: tutti job rerun 12
`}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	two := 2
	order := sentOrder[api.JobCommandRequest](t, s, "command")
	if diff := cmp.Diff(api.JobCommandRequest{Command: "uptime", JobOrder: api.JobOrder{
		Targets:     api.JobTargets{Nodes: []string{"a", "b", "c"}, Group: "Web", Exclude: []string{"x"}},
		Concurrency: 3, MaxFailures: &two, Timeout: 90, WaitOffline: 60, Description: "why",
	}}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestResultsForPrograms(t *testing.T) {
	t.Parallel()
	s := mixed(t)
	got := s.tutti(t.Context(), "", nil, "command", "run", "uptime", "--all", "-o", "json", "-q")
	var report struct {
		Job  api.Job
		Runs []runResult
	}
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatalf("%v\n%s", err, got.out)
	}
	if report.Job.State != "failed" || len(report.Runs) != 5 || report.Runs[0].Stdout != "up\n" || report.Runs[4].Stderr == "" || got.code != exitSomeFailed {
		t.Errorf("exit code %d:\n%s", got.code, got.out)
	}
	if want := `{"kind":"failed","message":"job 12 failed`; !strings.HasPrefix(got.err, want) || strings.Count(got.err, "\n") != 1 {
		t.Errorf("progress in spite of --quiet: %s", got.err)
	}
	for _, runs := range [][]api.JobRun{s.runs, nil} {
		s.runs = runs
		inJSON, inYAML := s.tutti(t.Context(), "", nil, "job", "watch", "12", "-o", "json"), s.tutti(t.Context(), "", nil, "job", "watch", "12", "-o", "yaml")
		var want, same any
		if err := errors.Join(json.Unmarshal([]byte(inJSON.out), &want), yaml.Unmarshal([]byte(inYAML.out), &same)); err != nil {
			t.Fatalf("%v\n%s", err, inYAML.out)
		}
		text, err := json.Marshal(same) // times and numbers as JSON has them
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &same); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, same); diff != "" {
			t.Errorf("YAML has something else (-JSON +YAML):\n%s", diff)
		}
	}
	s = mixed(t)
	got = s.tutti(t.Context(), "", nil, "job", "watch", "12", "-o", "jsonl")
	if all := strings.Split(strings.TrimSpace(got.out), "\n"); len(all) != 5 || !strings.Contains(all[0], `"node":"a"`) ||
		!strings.Contains(all[0], `"stdout":"up\n"`) {
		t.Errorf("one run a line:\n%s", got.out)
	}
	for format, want := range map[string]string{"csv": "away,offline,-,-,not connected", "name": "a\naway\nb\nc\nd\n"} {
		got = s.tutti(t.Context(), "", nil, "job", "watch", "12", "-o", format)
		if !strings.Contains(strings.ReplaceAll(got.out, ",,,", ",-,-,"), want) {
			t.Errorf("%s:\n%s", format, got.out)
		}
	}
}

// The exit code says what kind of trouble there was.
func TestExitCodesOfJobs(t *testing.T) {
	t.Parallel()
	for states, want := range map[string]int{
		"succeeded succeeded": exitDone, "succeeded failed": exitSomeFailed, "errored": exitSomeFailed, "lost": exitSomeFailed, "killed": exitSomeFailed,
		"succeeded skipped": exitSomeFailed, "refused succeeded": exitRefused, "offline succeeded": exitLate, "timed_out offline": exitLate,
		"offline refused": exitSomeFailed, "offline failed refused": exitSomeFailed,
	} {
		t.Run(states, func(t *testing.T) {
			t.Parallel()
			s := newJobServer(t)
			for node := range strings.FieldsSeq(states) {
				s.runs = append(s.runs, run("n-"+node, node, "because", ""))
			}
			if got := s.tutti(t.Context(), "", nil, "job", "watch", "12"); got.code != want {
				t.Errorf("exit code %d, want %d: %s", got.code, want, got.err)
			}
		})
	}
}

// Many nodes are not touched before somebody has typed how many they are.
func TestManyNodesAreConfirmed(t *testing.T) {
	t.Parallel()
	at := func(s *System) { s.Asks, s.ErrWidth, s.Env = true, 80, append(s.Env, "TERM=dumb") }
	for name, c := range map[string]struct {
		nodes  int
		in     string
		change func(*System)
		args   []string
		code   int
		asks   bool
	}{
		"typed":         {nodes: 21, in: "21\n", change: at, asks: true},
		"typed wrong":   {nodes: 21, in: "y\n", change: at, code: exitUsage, asks: true},
		"end of input":  {nodes: 21, change: at, code: exitUsage, asks: true},
		"few":           {nodes: 20, change: at},
		"yes":           {nodes: 500, change: at, args: []string{"--yes"}},
		"no terminal":   {nodes: 500},
		"in a pipeline": {nodes: 500, change: func(s *System) { at(s); s.Env = append(s.Env, "CI=true") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newJobServer(t)
			s.plan = api.JobPlan{Nodes: c.nodes, Digest: "d1"}
			got := s.tutti(t.Context(), c.in, c.change, append([]string{"run", "--all"}, c.args...)...)
			if got.code != c.code || strings.Contains(got.err, "to go on:") != c.asks {
				t.Errorf("exit code %d: %s", got.code, got.err)
			}
			if _, started := s.ordered["puppet"]; started != (c.code == 0) {
				t.Errorf("started: %v", started)
			}
			if c.code == 0 && (sentOrder[api.JobPuppetRequest](t, s, "puppet").Expect == "d1") != c.asks {
				t.Error("what was confirmed is not what is started")
			}
		})
	}
}

func TestADryRunStartsNothing(t *testing.T) {
	t.Parallel()
	s := mixed(t)
	s.plan.Denied = []string{"db-1"}
	got := s.tutti(t.Context(), "", nil, "command", "run", "x", "--all", "--dry-run")
	want := result{
		out: "NODE  AGENT\na     not connected\naway  not connected\nb     not connected\nc     not connected\nd     tutti-agent/1\n",
		err: "You may not touch: db-1\n5 nodes, 1 of them not connected. Nothing was started.\n",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" || len(s.ordered) > 0 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRefusalsOfTheServer(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]int{"denied": exitDenied, "invalid": exitUsage, "conflict": exitRefused} {
		s := newJobServer(t)
		s.plan = api.JobPlan{Nodes: 1, Denied: []string{"db-1"}}
		s.refuse = &api.Problem{Kind: kind, Message: "no: db-1"}
		if got := s.tutti(t.Context(), "", nil, "run", "db-1"); got.code != want || got.err != "tutti: no: db-1\n" {
			t.Errorf("%s: exit code %d, %q", kind, got.code, got.err)
		}
	}
}

func TestParametersOfATask(t *testing.T) {
	t.Parallel()
	s := newJobServer(t)
	s.plan = api.JobPlan{Nodes: 1}
	s.task = api.Task{Name: "db", Parameters: []api.TaskParameter{{Name: "user"}, {Name: "password", Sensitive: true}}}
	file := filepath.Join(t.TempDir(), "params.json")
	if err := os.WriteFile(file, []byte(`{"password": "of the file", "n": 7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(system *System) {
		system.Env = append(system.Env, "PT_password=of the environment", "OTHER=another")
	}
	for name, c := range map[string]struct {
		in, args string
		texts    map[string]string
		params   string
		wrong    string
		missing  bool // it is no wrong input: there is no such thing
	}{
		"pairs":            {args: "user=a flag=true", texts: map[string]string{"user": "a", "flag": "true"}},
		"equals sign":      {args: "user=a=b", texts: map[string]string{"user": "a=b"}},
		"params pair":      {args: "--params user=a", texts: map[string]string{"user": "a"}},
		"object":           {args: `--params {"n":[1]}`, params: `{"n":[1]}`},
		"file":             {args: "--params @" + file, params: `{"n":7,"password":"of the file"}`},
		"stdin":            {in: `{"password":"p"}`, args: "--params - user=a", texts: map[string]string{"user": "a"}, params: `{"password":"p"}`},
		"environment":      {args: "--env password", texts: map[string]string{"password": "of the environment"}},
		"other variable":   {args: "--env password=OTHER", texts: map[string]string{"password": "another"}},
		"secret shown":     {args: "password=x", wrong: "password of the task db must not be given on the command line"},
		"secret in object": {args: `--params {"password":1}`, wrong: "must not be given on the command line"},
		"twice":            {args: "user=a user=b", wrong: "the parameter user is given twice"},
		"in both":          {args: `user=a --params {"user":1}`, wrong: "given twice"},
		"no pair":          {args: "user", wrong: `"user" is no parameter`},
		"no name":          {args: "=a", wrong: "has no name"},
		"no object":        {args: "--params -", in: "[1]", wrong: "standard input must hold one object of JSON"},
		"broken object":    {args: "--params -", in: `{"password": se`, wrong: "(it is wrong at byte 14)"},
		"no file":          {args: "--params @/nowhere.json", wrong: "cannot read the parameters"},
		"no variable":      {args: "--env password=NONE", wrong: "the variable NONE is not set"},
		"no terminal":      {args: "--ask password", wrong: "there is no terminal"},
		"stdin twice":      {args: "--params - -t -", wrong: "standard input can be the nodes or the parameters"},
		"no such task":     {args: "", wrong: "nothing here: /environments/production/tasks/bd; did you mean db?", missing: true},
	} {
		t.Run(name, func(t *testing.T) {
			task := "db"
			if name == "no such task" {
				task = "bd"
			}
			args := append([]string{"task", "run", task}, append(strings.Fields(c.args), "-t", "web-1")...)
			got := s.tutti(t.Context(), c.in, env, args...)
			if c.wrong != "" {
				if (got.code == exitUsage) == c.missing || !strings.Contains(got.err, c.wrong) || strings.Contains(got.err, "se\n") {
					t.Errorf("exit code %d, %q, want %q", got.code, got.err, c.wrong)
				}
				return
			}
			order := sentOrder[api.JobTaskRequest](t, s, "task")
			if diff := cmp.Diff(c.texts, order.Texts); got.code != 0 || diff != "" || string(order.Params) != c.params {
				t.Errorf("exit code %d, %s, params %s (-want +got):\n%s", got.code, got.err, order.Params, diff)
			}
		})
	}
}

// What cannot be right is said before a server is asked.
func TestWrongOrders(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("# nobody\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"run":                                  "which nodes?",
		"run --all web-1":                      "--all is every node",
		"run --all --group Web":                "--all is every node",
		"run web-1,,web-2":                     "a name is empty",
		"run Web_1!":                           "--targets",
		"run @" + empty:                        "names no node",
		"run @/nowhere":                        "cannot read the list of nodes",
		"run -":                                "standard input names no node",
		"run --where x":                        "--where",
		"run --query nodes[facts]{}":           "",
		"run --query facts[value]{}":           "must answer with the column certname",
		"run --where a=1 --query nodes{}":      "two ways to ask",
		"run web-1 --concurrency -1":           "--concurrency is a number of nodes, 0 or more, not -1",
		"run web-1 --concurrency many":         "--concurrency",
		"run web-1 --max-failures -1":          "0 or more",
		"run web-1 --max-failures 1.5":         "0 or more",
		"run web-1 --timeout -5s":              "--timeout is a duration",
		"run web-1 --timeout 5":                "--timeout",
		"run web-1 --wait-offline -1h":         "--wait-offline is a duration",
		"run web-1 --noop --no-noop":           "the opposite",
		"run web-1 --dry-run --no-wait":        "give one of them",
		"command run -t web-1":                 "which command?",
		"command run a b -t web-1":             "put it in quotes",
		"command":                              "",
		"command rnu a":                        "did you mean run?",
		"script run -t web-1":                  "which script?",
		"script run /nowhere -t web-1":         "cannot read the file",
		"script run / -t web-1":                "is a directory; name a file in it",
		"file send /etc/hostname -t web-1":     "DESTINATION is missing",
		"file send /etc/hostname etc -t web-1": "must be an absolute path on the node",
		"job show abc":                         `a job's id is a number such as 12, not "abc"`,
		"job watch -1":                         "has no flag -1",
		"job stop 0":                           "a job's id is a number",
		"job output 1.5":                       "a job's id is a number",
		"job rerun":                            "JOB is missing",
		"job rerun 99999999999999999999":       "a job's id is a number",
		"job list --limit 0":                   "--limit is a number of jobs",
		"task run":                             "which task?",
		"release resume 7 --max-failures -1":   "0 or more, not -1",
	} {
		if want == "" {
			continue
		}
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			s := newJobServer(t)
			if got := s.tutti(t.Context(), "", nil, strings.Fields(line)...); got.code != exitUsage || !strings.Contains(got.err, want) || got.out != "" {
				t.Errorf("exit code %d, %q; want %q", got.code, got.err, want)
			}
		})
	}
}

func TestScriptsAndFilesAreUploaded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mend.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	digest := digestOf([]byte("#!/bin/sh\n"))
	s := newJobServer(t)
	s.plan = api.JobPlan{Nodes: 1}
	if got := s.tutti(t.Context(), "", nil, "script", "run", path, "-t", "web-1", "--", "--keep", "7"); got.code != 0 {
		t.Fatal(got)
	}
	script := sentOrder[api.JobScriptRequest](t, s, "script")
	if diff := cmp.Diff([]string{"mend.sh", digest, "--keep", "7"}, append([]string{script.Name, script.Digest}, script.Arguments...)); diff != "" {
		t.Errorf("script (-want +got):\n%s", diff)
	}
	for destination, want := range map[string][]api.JobFileEntry{
		"/etc/motd": {{Kind: "file", Destination: "/etc/motd", Digest: digest}},
		"/srv/x/":   {{Kind: "directory", Destination: "/srv/x"}, {Kind: "file", Destination: "/srv/x/mend.sh", Digest: digest}},
		`C:\x\motd`: {{Kind: "file", Destination: `C:\x\motd`, Digest: digest}},
	} {
		if got := s.tutti(t.Context(), "", nil, "file", "send", path, destination, "-t", "web-1"); got.code != 0 {
			t.Fatal(got)
		}
		if diff := cmp.Diff(want, sentOrder[api.JobFileRequest](t, s, "file").Files); diff != "" {
			t.Errorf("%s (-want +got):\n%s", destination, diff)
		}
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1234 * time.Millisecond: "1.2s", 41 * time.Second: "41s", 10 * time.Minute: "10m", time.Hour: "1h", 372 * time.Second: "6m12s",
		90 * time.Minute: "1h30m",
	} {
		if got := print.Duration(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}

func TestCompletionOfJobsNodesAndTasks(t *testing.T) {
	t.Parallel()
	s := mixed(t)
	s.task = api.Task{
		Name: "db::dump", Description: "Dump it", Parameters: []api.TaskParameter{{Name: "user", Type: "String"}, {Name: "password", Sensitive: true}},
	}
	for line, want := range map[string]string{
		"job watch ":                  "12\tcommand uptime, failed",
		"job stop 1":                  "12\t",
		"run web":                     "web-1\nweb-2",
		"command run x -t web-1,":     "web-1,web-1\nweb-1,web-2",
		"task run db":                 "db::dump\tDump it",
		"task show db":                "db::dump\tDump it",
		"task run db::dump ":          "user=\tString\n:",
		"job list --state ":           "active\n",
		"job show 12 --runs ":         "failing\n",
		"task run db::dump user=1 us": ":",
	} {
		got := s.tutti(t.Context(), "", nil, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		if !strings.Contains(got.out, want) {
			t.Errorf("%q: %q, want %q", line, got.out, want)
		}
	}
}

func TestTargetsOfAJob(t *testing.T) {
	t.Parallel()
	for want, targets := range map[string]api.JobTargets{
		"all nodes": {All: true},
		"a, b; group Web; query nodes{}; application Shop; not x": {Nodes: []string{"a", "b"}, Group: "Web", Query: "nodes{}", App: "Shop", Exclude: []string{"x"}},
		"all nodes; --fact a=1; --fact b>2; --class web; --module disk; --name /x/; --with c d=1; --select not e; at most 5%": {
			All: true, Limit: "5%",
			Filter: &api.NodeFilter{
				Facts: []string{"a=1", "b>2"}, Classes: []string{"web"}, Modules: []string{"disk"}, Names: []string{"/x/"}, Words: []string{"c d=1"}, Select: "not e",
			},
		},
	} {
		if got := targetsText(targets); got != want {
			t.Errorf("%+v: %s, want %s", targets, got, want)
		}
	}
}
