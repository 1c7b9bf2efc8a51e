package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// Command lines of the client tools, and what they are here: under their names, and as tutti's own commands.
func TestCommandLinesOfClientTools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, line, want string }{
		{"tutti", "job run -n a,b --noop --node-group Web --no-wait", "job run --nodes=a,b --noop --group=Web --no-wait"},
		{"tutti", "job run -q --nodes a", "job run -q --nodes=a"}, // quiet
		{"puppet-job", "run -q 'nodes{}' --concurrency 5", "job run --yes --query='nodes{}' --concurrency=5"},
		{"puppet-job", "run -na,b -e=canary --color", "job run --yes --nodes=a,b --environment=canary --color=always"},
		{"tutti", "job run a --color never", "job run a --color never"},
		{"tutti", "job run a --no-color --verbose", "job run a --color=never"},
		{"tutti", "job run --application Shop['eu']", "job run --app=Shop[eu]"},
		{"tutti", "job run a --env canary --no-enforce-environment", "job run a"},
		{"tutti", "job run a --format json", "job run a --output=json"},
		{"tutti", "job run a --where x --max-failures 3", "job run a --where x --max-failures 3"}, // ours
		{"puppet-job", "--service-url https://x:8143 --token-file t show 5", "job show --server=https://x:8143 --token-file=t 5"},
		{"tutti", "job stop 5 --force", "job stop 5 --kill"},
		{"puppet-task", "run web::restart action=reload -n a --params @p.json", "task run --yes web::restart action=reload --nodes=a --params=@p.json"},
		{"tutti", "task run x a=--noop -- -n", "task run x a=--noop -- -n"},
		{"puppet-task", "run x -n a -- b=--noop", "task run --yes x --nodes=a -- b=--noop"},
		{"puppet-access", "login ann --lifetime 2y -t f --service-url https://x:4433/rbac-api", "access login ann --lifetime=730d --token-file=f --server=https://x:4433"},
		{"tutti", "access login -u ann --lifetime 90 --debug", "access login ann --lifetime=90s"},
		{"tutti", "access login ann --lifetime 0", "access login ann"},
		{"tutti", "access delete-token-file --token-path f", "access delete-token-file --token-file=f"},
		{"puppet-code", "-l debug -t f --service-url https://x:8170/code-manager deploy production -w -F json", "code deploy --token-file=f --server=https://x:8170 production --wait --output=json"},
		{"puppet-query", "-u https://x:8081,https://y:8081 --token f nodes{}", "query --output=json --server=https://x:8081 --token-file=f nodes{}"},
		{"puppet-app", "show Shop -e canary", "app show Shop --environment=canary"},
		{"puppet-job", "--version", "version"},
		{"tutti", "node list -n 5", "node list -n 5"},
		{"puppet", "job run -q x", "job run -q x"}, // no name of a tool
	} {
		a := &app{system: System{Name: c.name, Env: []string{"HOME=" + t.TempDir()}}}
		got, err := a.fromEnterprise(strings.Fields(c.line))
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s %s: %q, %v, want %q", c.name, c.line, strings.Join(got, " "), err, c.want)
		}
	}
	for _, line := range []string{"query --cert c --key k nodes{}", "job run -n a --node-group"} {
		if _, err := (&app{}).fromEnterprise(strings.Fields(line)); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// Of two words after deploy, the second one is an environment where puppet-code was typed, and a directory elsewhere.
func TestTwoWordsOfADeploy(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"tutti": false, "puppet-code": true} {
		a := &app{system: System{Name: name, Env: []string{"HOME=" + t.TempDir()}}}
		line := []string{"code", "deploy", "production", "staging"}
		if name != "tutti" {
			line = line[1:]
		}
		got, err := a.fromEnterprise(line)
		if err != nil || fromSources(got[2:], &codeDeployInput{}, a.tools.name) != want {
			t.Errorf("%s: %v, %v: from sources is %t", name, got, err, !want)
		}
	}
}

// What the configuration files say, and which of them wins.
func TestConfigurationOfClientTools(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	write := func(name, text string) string {
		path := filepath.Join(s.home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(".puppetlabs/client-tools/orchestrator.conf",
		`{"options": {"service-url": "https://ctl.test:8143/", "environment": "staging", "noop": true, "color": false, "cacert": "~/ca.pem"}}`)
	write(".puppetlabs/client-tools/puppet-access.conf",
		`{"service-url": "https://ctl.test:4433/rbac-api", "token-file": "~/mine", "certificate-file": "/x/ca.pem"}`)
	write(".puppetlabs/client-tools/puppetdb.conf", `{"puppetdb": {"server_urls": ["https://db.test:8081", "https://db2.test:8081"], "cacert": "/x/db.pem"}}`)
	write("ca.pem", "the CA")
	write(".puppetlabs/token", "tutti_theirs\n")
	for name, want := range map[string]target{
		"puppet-job":    {server: "https://ctl.test:8143", caFile: s.home + "/ca.pem", tokenFile: s.home + "/.puppetlabs/token"},
		"puppet-access": {server: "https://ctl.test:4433", caFile: "/x/ca.pem", tokenFile: s.home + "/mine"},
		"puppet-query":  {server: "https://db.test:8081", caFile: "/x/db.pem", tokenFile: s.home + "/.puppetlabs/token"},
		"tutti":         {server: "https://ctl.test:8143", caFile: s.home + "/ca.pem", tokenFile: s.home + "/.puppetlabs/token"}, // nothing else names one
	} {
		a := &app{system: System{Name: name, Env: append(s.env, "TUTTI_DATA="+s.home)}}
		if name == "tutti" {
			a.system.Env = s.env
		}
		if _, err := a.fromEnterprise([]string{"show"}); err != nil {
			t.Fatal(err)
		}
		got, err := a.target()
		if err != nil {
			t.Fatal(name, err)
		}
		got.why = ""
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(target{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if token, err := a.token(got); name != "puppet-access" && (err != nil || string(token) != "tutti_theirs\n") {
			t.Errorf("%s: token %q, %v", name, token, err)
		}
	}
	a := &app{system: System{Name: "puppet-job", Env: s.env}}
	line, err := a.fromEnterprise([]string{"run", "-n", "a"})
	if want := "job run --color=never --environment=staging --noop --yes --nodes=a"; err != nil || strings.Join(line, " ") != want {
		t.Errorf("%v %v, want %s", line, err, want)
	}
	line, _ = a.fromEnterprise([]string{"run", "-n", "a", "--no-enforce-environment", "--no-noop"})
	if want := "job run --color=never --yes --nodes=a --no-noop"; strings.Join(line, " ") != want {
		t.Errorf("%v, want %s", line, want)
	}
	var tools clientTools // the machine's, then the user's, which wins under whichever name
	machine, user := write("machine.conf", `{"certificate-file": "/machine.pem"}`), write("user.conf", `{"cacert": "/user.pem"}`)
	if err := errors.Join(tools.read(machine, true), tools.read(user, true)); err != nil || tools.CACert != "/user.pem" {
		t.Errorf("%+v, %v", tools, err)
	}
	other := write("other.conf", `{"options": {"service-url": "https://other.test:8143"}}`)
	a = &app{system: System{Name: "puppet-job", Env: s.env}}
	if _, err := a.fromEnterprise([]string{"--config-file", other, "show"}); err != nil {
		t.Fatal(err)
	}
	if got, err := a.target(); err != nil || got.server != "https://other.test:8143" {
		t.Errorf("%+v, %v", got, err)
	}
	// The token of a current context is not the tools', and the other way round.
	s.must(t, "context", "add", "prod", "--server", "prod.test", "--system-ca")
	if got, err := (&app{system: System{Name: "tutti", Env: s.env}}).target(); err != nil || got.tokenFile != "" || got.server != "https://prod.test:8140" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{`{"options": `, `[]`, `{"options": {"service-url": 5}}`} {
		write(".puppetlabs/client-tools/orchestrator.conf", text)
		if code, _, said := s.run(t, nil, "context", "list"); code != exitDone {
			t.Errorf("a broken file stops what does not need it: %s", said)
		}
		a := &app{system: System{Name: "puppet-job", Env: s.env}}
		if _, err := a.fromEnterprise([]string{"show"}); fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), "orchestrator.conf") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// as runs a command under the name of a tool.
func (s *jobServer) as(name string, args ...string) result {
	var out, said bytes.Buffer
	code := Run(s.t.Context(), args, System{Name: name, In: strings.NewReader(""), Out: &out, Err: &said, Env: s.env})
	return result{code, out.String(), said.String()}
}

// The layouts under the names of the tools are what scripts read.
func TestLayoutsOfClientTools(t *testing.T) {
	t.Parallel()
	s := newJobServer(t)
	s.kind = "puppet"
	s.runs = []api.JobRun{
		{Node: "db1", State: "succeeded", Puppet: &api.JobRunPuppet{
			Status: "changed", Environment: "production", Metrics: map[string]int{"total": 213, "changed": 2}, Report: "3f9c2a",
		}},
		{Node: "web1", State: "errored", Reason: "no catalog"},
		{Node: "lb1", State: "skipped", Reason: "web1 errored"},
	}
	s.plan = api.JobPlan{Nodes: 3}
	want := result{1, `Starting deployment ...
New job ID: 12
Nodes: 3

Finished puppet run on db1 - Success!
    Applied in environment production
    Resource events: 0 failed  2 changed  211 unchanged  0 skipped  0 noop
    Report: 3f9c2a (tutti report show 3f9c2a)
Error running puppet on web1: no catalog
Skipped puppet run on lb1: web1 errored

Failed! 1/3 runs succeeded.
Duration: 41 sec
`, ""}
	if diff := cmp.Diff(want, s.as("puppet-job", "run", "-n", "db1,web1,lb1"), cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("job run (-want +got):\n%s", diff)
	}
	s.env = append(s.env, "TZ=UTC")
	at := s.job().CreatedAt.Local().Format(theirTime)
	end := s.job().FinishedAt.Local().Format(theirTime)
	for _, line := range []string{"show 12", "show", "list"} {
		got := s.as("puppet-job", strings.Fields(line)...)
		want := "ID  STATUS  JOB TYPE    TIMESTAMP               TARGET\n12  failed  puppet run  " + at
		if line == "show 12" {
			want = "Status:      failed\nJob type:    puppet run\nStart:       " + at + "\nFinished:    " + end +
				"\nDuration:    41 sec\nUser:        ann\nNodes:       3\n\nFinished puppet run on db1 - Success!\n"
		}
		if got.code != exitDone || !strings.HasPrefix(got.out, want) || got.err != "" {
			t.Errorf("job %s: %d %s\n%s\nwant\n%s", line, got.code, got.err, got.out, want)
		}
	}
	if got := s.as("puppet-job", "show", "abc"); got.code != 1 || got.err == "" {
		t.Errorf("a wrong id: %+v", got)
	}
	s.kind, s.task = "task", api.Task{
		Name: "service", Description: "Manage services", Environment: "production", SupportsNoop: true,
		Parameters: []api.TaskParameter{{Name: "action", Type: "Enum[start, stop]", Required: true, Description: "what to do"}, {Name: "name", Type: "String"}},
	}
	s.runs = []api.JobRun{run("web1", "failed", "exit code 3", ""), run("web2", "succeeded", "", "d1")}
	s.runs[1].Output.Lines = 1
	s.output["web2"] = []api.JobLine{{Node: "web2", Stream: "stdout", Number: 1, Text: `{"status": "running", "enabled": true}`}}
	got := s.as("puppet-task", "run", "service", "action=start", "-n", "web1,web2")
	wantTask := "Starting job ...\nNew job ID: 12\nNodes: 2\n\nFailed on node web1\n  Error: exit code 3\nFinished on node web2\n"
	if got.code != 1 || !strings.HasPrefix(got.out, wantTask) || !strings.Contains(got.out, "status") ||
		!strings.HasSuffix(got.out, "\nJob failed. 1 node failed, 1 node succeeded.\nDuration: 41 sec\n") {
		t.Errorf("task run: %+v", got)
	}
	want = result{0, `service - Manage services

USAGE:
$ puppet task run service [--noop] action=<Enum[start, stop]> [name=<String>] <[--nodes, -n <node-names>] | [--query, -q <'query'>]>

PARAMETERS:
- action : Enum[start, stop]
    what to do
- name : String
`, ""}
	if diff := cmp.Diff(want, s.as("puppet-task", "show", "service"), cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("task show (-want +got):\n%s", diff)
	}
	if got := s.tutti(t.Context(), "", nil, "task", "show"); got.code != exitDone || !strings.Contains(got.out, "Manage services") {
		t.Errorf("task show: %+v", got)
	}
}

// One place keeps the token: what `tutti login` wrote is what `tutti access` shows and removes.
func TestAccessShowsTheTokenOfTheLogin(t *testing.T) {
	t.Parallel()
	s := newShell(t, "TUTTI_SERVER=https://x.test:8140")
	a := &app{system: System{Name: "tutti", Env: s.env}}
	chosen, err := a.target()
	if err != nil {
		t.Fatal(err)
	}
	path, err := a.saveLogin(chosen, "tutti_secret")
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := s.must(t, "access", "show"); out != "tutti_secret\n" {
		t.Errorf("%q", out)
	}
	s.must(t, "access", "delete-token-file")
	if _, err := os.Stat(path); err == nil {
		t.Errorf("%s is there", path)
	}
	code, out, said := s.run(t, nil, "access", "show")
	if code != exitDenied || out != "" || !strings.Contains(said, "tutti login NAME") {
		t.Errorf("%d %q %q", code, out, said)
	}
	// Under its name the token is where Bolt looks for it, readable by its owner only.
	a = &app{system: System{Name: "puppet-access", Env: s.env}, tools: toolsMode{name: "access"}}
	if chosen, err = a.target(); err != nil {
		t.Fatal(err)
	}
	path, err = a.saveLogin(chosen, "tutti_other")
	info, wrong := os.Stat(filepath.Join(s.home, ".puppetlabs", "token"))
	if err != nil || wrong != nil || path != filepath.Join(s.home, ".puppetlabs", "token") || info.Mode().Perm() != 0o600 {
		t.Errorf("%s %v %v", path, err, wrong)
	}
}

// The page's table of flags is what the program does with them, and each flag that it names of ours is there.
func TestThePageNamesEachFlag(t *testing.T) {
	t.Parallel()
	const page = "../../docs/from-puppet-enterprise.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), "## Each flag\n")
	_, tail, more := strings.Cut(rest, "\n## ")
	if !ok || !more {
		t.Fatal("the page has no section \"Each flag\" with one behind it")
	}
	want := head + "## Each flag\n" + flagTables() + "\n## " + tail
	if want != string(text) {
		if update := flag.Lookup("update"); update != nil && update.Value.String() == "true" {
			if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("the table is another one; go test ./internal/cli -run TestThePageNamesEachFlag -args -update writes it\n%s", cmp.Diff(string(text), want))
	}
	root := (&app{}).root()
	for action, flags := range theirs {
		cmd, left, err := root.Find(strings.Fields(action))
		if err != nil || len(left) > 0 {
			t.Errorf("%s: no such command: %v %v", action, left, err)
			continue
		}
		all := cmd.Flags()
		all.AddFlagSet(cmd.InheritedFlags())
		cmd.InitDefaultHelpFlag()
		for _, f := range flags {
			ours := strings.TrimLeft(first(f.ours, longNames[f.names[0]], f.names[0]), "-")
			ours, _, _ = strings.Cut(ours, "=")
			if f.becomes == same || f.becomes == renamed && !strings.Contains(ours, " ") {
				if all.Lookup(ours) == nil {
					t.Errorf("%s %s: there is no flag --%s", action, f.names[0], ours)
				} else if f.value == (all.Lookup(ours).Value.Type() == "bool") {
					t.Errorf("%s %s: one takes a value and the other does not", action, f.names[0])
				}
			}
		}
	}
}

// flagTables is a table for each action.
func flagTables() string {
	var text strings.Builder
	for _, action := range slices.Sorted(maps.Keys(theirs)) {
		fmt.Fprintf(&text, "\n### puppet %s\n\n| flag | here |\n|---|---|\n", action)
		for _, f := range theirs[action] {
			names := "`" + strings.Join(f.names, "`, `") + "`"
			if f.linked {
				names += " (under the name of the tool)"
			}
			fmt.Fprintf(&text, "| %s | %s |\n", names, f.told())
		}
	}
	return text.String()
}

func (f theirFlag) told() string {
	says := f.says
	switch f.becomes {
	case same:
		return strings.TrimSuffix("the same; "+says, "; ")
	case renamed, worked:
		if f.ours == "" {
			return says
		}
		return strings.TrimSuffix("`"+f.ours+"`; "+says, "; ")
	case read:
		return says
	case unused:
		return "taken, means nothing: " + says
	case refused:
		return "refused: " + says
	}
	return says
}
