package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
)

// lampServer has nodes with a module lamp: on changes something and takes a secret, status reads.
func lampServer(t *testing.T) *jobServer {
	t.Helper()
	s := newJobServer(t)
	schema := json.RawMessage(`{"type":"object","properties":{"color":{"type":"string"},"size":{"type":"integer"}}}`)
	fields := []api.ActionField{{Name: "name", Type: "string"}, {Name: "code", Type: "string", Sensitive: true}}
	s.lamp = api.ActionModule{Module: "lamp", Actions: []api.Action{
		{Name: "on", Display: "failed", Input: schema, Results: schema, Inputs: fields},
		{Name: "status", Display: "always", ReadOnly: true, Input: schema, Results: schema, Inputs: fields},
	}}
	data := func(text string) json.RawMessage { return json.RawMessage(text) }
	s.answers = []api.ActionAnswer{
		{Node: "web-1", State: "ok", Data: data(`{"color":"red","size":3}`)},
		{Node: "web-2", State: "ok", Data: data(`{"color":"blue","size":7}`)},
		{Node: "web-3", State: "ok", Data: data(`{"color":"red","size":9}`)},
		{Node: "web-4", State: "aborted", Message: "no such lamp", Data: data(`{"color":"none"}`)},
		{Node: "web-5", State: "offline"},
	}
	return s
}

func TestStatusOfActions(t *testing.T) {
	t.Parallel()
	s := lampServer(t)
	began := time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)
	s.calls = []api.ActionCall{
		{
			ID: "c7", Module: "lamp", Action: "status", Input: `{"code":"(hidden)"}`, Targets: "all nodes, fact os=Debian", Actor: "ann", Nodes: 5,
			Counts: map[string]int{"ok": 3, "offline": 1, "aborted": 1}, Began: began.Add(2 * time.Hour), Ended: began.Add(2*time.Hour + 20*time.Millisecond),
		},
		{ID: "c6", Module: "lamp", Action: "status", Actor: "bob", Nodes: 1, Counts: map[string]int{
			"not asked": 1,
		}, Began: began, Ended: began.Add(time.Second), Left: true},
	}
	for args, want := range map[string]string{
		"-o csv --columns id,action,state,nodes,answers,by": "id,action,state,nodes,answers,by\n" +
			"c7,lamp status,ended,5,\"3 ok, 1 aborted, 1 offline\",ann\n12,uptime,finished,0,,ann\nc6,lamp status,left,1,1 not asked,bob\n",
		"-o name --limit 2":   "c7\n12\n",
		"-o name --kind call": "c7\nc6\n",
		"-o name --kind job":  "12\n",
	} {
		if got := s.tutti(t.Context(), "", nil, append([]string{"action", "status"}, strings.Fields(args)...)...); got.code != exitDone || got.out != want {
			t.Errorf("%s: exit code %d, %s\n%s", args, got.code, cmp.Diff(want, got.out), got.err)
		}
	}
	got := s.tutti(t.Context(), "", nil, "action", "status", "c7")
	for _, want := range []string{"c7, lamp status", "all nodes, fact os=Debian", `{"code":"(hidden)"}`, "5: 3 ok, 1 aborted, 1 offline", "after 20ms"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is missing in\n%s%s", want, got.out, got.err)
		}
	}
	var one api.ActionCall
	if got := s.tutti(t.Context(), "", nil, "action", "status", "c7", "-o", "json"); json.Unmarshal([]byte(got.out), &one) != nil || !cmp.Equal(one, s.calls[0]) {
		t.Errorf("%s%s", got.out, got.err)
	}
	if got := s.tutti(t.Context(), "", nil, "action", "status", "12"); !strings.Contains(got.out, "12, command uptime") ||
		!strings.Contains(got.err, "tutti job show 12") {
		t.Errorf("%s%s", got.out, got.err)
	}
	if got := s.tutti(t.Context(), "", nil, "action", "status", "c99"); got.code != exitFailed || !strings.Contains(got.err, "see `tutti action status`") {
		t.Errorf("a call that there is none of: exit code %d\n%s", got.code, got.err)
	}
	for args, want := range map[string]string{"x": "a job's id is a number", "--limit 0": "--limit is a number of calls", "--kind task": "--kind is call or job"} {
		if got := s.tutti(t.Context(), "", nil, append([]string{"action", "status"}, strings.Fields(args)...)...); got.code != exitUsage ||
			!strings.Contains(got.err, want) {
			t.Errorf("%s: exit code %d\n%s", args, got.code, got.err)
		}
	}
}

// Answers of one call are shown by an expression, and become the nodes of the next.
func TestCallsAreChained(t *testing.T) {
	t.Parallel()
	s := lampServer(t)
	s.runs = []api.JobRun{run("web-1", "succeeded", "", "")}
	for args, want := range map[string]string{
		`-o name --answers data.color=="red"`:                    "web-1\nweb-3\n",
		`-o name --answers code>0`:                               "web-4\nweb-5\n",
		`-o csv --answers data.size>5`:                           "node,state,message,color,size\nweb-2,ok,,blue,7\nweb-3,ok,,red,9\n",
		`-o jsonl --answers node=="web-5"`:                       `{"node":"web-5","state":"offline"}` + "\n",
		`-o table --answers state=="aborted"`:                    "web-4  aborted\n  no such lamp\n  color: none\n\n",
		`-o table --answers state=="aborted" --display ok`:       "",
		`-o name --answers data.color=="green" --display failed`: "",
	} {
		got := s.tutti(t.Context(), "", nil, append([]string{"action", "run", "lamp", "status", "--all"}, strings.Split(args, " ")...)...)
		if got.code != exitSomeFailed || got.out != want { // how the call ended does not depend on what is shown
			t.Errorf("%s: exit code %d, %s\n%s", args, got.code, cmp.Diff(want, got.out), got.err)
		}
	}
	asJSON := s.tutti(t.Context(), "", nil, "action", "run", "lamp", "status", "--all", "-o", "json").out
	asLines := s.tutti(t.Context(), "", nil, "action", "run", "lamp", "status", "--all", "-o", "jsonl").out
	ofJob := s.tutti(t.Context(), "", nil, "job", "watch", "12", "-o", "jsonl").out
	const ofMco = `[{"agent":"lamp","action":"status","sender":"web-7","statuscode":0,"statusmsg":"OK","data":{"color":"red"}},{"sender":"web-8","statuscode":1,"statusmsg":"no"}]`
	for name, c := range map[string]struct{ in, take, want string }{
		"a whole call":              {asJSON, "", "web-1 web-2 web-3"},
		"lines":                     {asLines, "", "web-1 web-2 web-3"},
		"lines with empty ones":     {"\n" + strings.ReplaceAll(asLines, "\n", "\r\n\n"), "", "web-1 web-2 web-3"},
		"by data":                   {asLines, `data.color == "red"`, "web-1 web-3"},
		"by code":                   {asJSON, `code != 0`, "web-4 web-5"},
		"by node and state":         {asJSON, `node == "web-5" and state == "offline"`, "web-5"},
		"of a job":                  {ofJob, "", "web-1"},
		"of mco":                    {ofMco, "", "web-7"},
		"of mco, failed":            {ofMco, "code == 1", "web-8"},
		"one answer":                {`{"node":"web-9","state":"ok"}`, "", "web-9"},
		"the last of a node counts": {`{"node":"a","state":"ok"}` + "\n" + `{"node":"b","state":"ok"}` + "\n" + `{"node":"a","state":"error"}`, "", "b"},
		"names":                     {"web-6, web-4 # two\nweb-5\n", "", "web-4 web-5 web-6"},
	} {
		args := []string{"action", "run", "lamp", "on", "name=x", "-", "--yes", "--no-wait"}
		if c.take != "" {
			args = append(args, "--take", c.take)
		}
		got := s.tutti(t.Context(), c.in, nil, args...)
		if got.code != exitDone {
			t.Errorf("%s: exit code %d\n%s", name, got.code, got.err)
			continue
		}
		sent := sentOrder[api.JobActionRequest](t, s, "action")
		if text := strings.Join(sent.Targets.Nodes, " "); text != c.want || sent.Texts["name"] != "x" {
			t.Errorf("%s: %s, want %s; %+v", name, text, c.want, sent.Texts)
		}
	}
	for name, c := range map[string]struct {
		in, args, want string
		code           int
	}{
		"a broken line":        {asLines + `{"node":"web-9",` + "\n", "-", "standard input, line 6: it is no answer of a call", exitUsage},
		"a broken document":    {asJSON[:len(asJSON)-9], "-", "standard input, line 1: it is no answer of a call", exitUsage},
		"no node":              {`{"state":"ok"}`, "-", "standard input: it is no answer of a call: it names no node", exitUsage},
		"a bad name":           {`{"node":"A b","state":"ok"}`, "-", "it names no node", exitUsage},
		"none is ok":           {`{"node":"a","state":"offline"}`, "-", "no node is meant: of the answers of 1 node in standard input none is taken", exitFailed},
		"none is taken":        {asLines, "- --take code==5", "of the answers of 5 nodes in standard input none is taken", exitFailed},
		"no expression":        {asLines, "- --take code=5", "expression over answers", exitUsage},
		"names have no code":   {"web-1", "- --take code==0", "standard input holds none", exitUsage},
		"nothing to take from": {"", "--all --take code==0", "give them on standard input (-) or in a file", exitUsage},
		"of a job":             {"", "--all --answers code==0", "--answers is for actions that only read", exitUsage},
		"a sleep of a job":     {"", "--all --batch 1 --batch-sleep 5s", "--batch-sleep is for actions that only read; lamp on is a job", exitUsage},
		"twice":                {asLines, "- -t -", "standard input can be the nodes or the input", exitUsage},
	} {
		got := s.tutti(t.Context(), c.in, nil, append([]string{"action", "run", "lamp", "on", "--yes", "--no-wait"}, strings.Fields(c.args)...)...)
		if got.code != c.code || !strings.Contains(got.err, c.want) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s", name, got.code, c.code, c.want, got.err)
		}
	}
}

func TestPuppetsAgentsInTuttisWords(t *testing.T) {
	t.Parallel()
	s := lampServer(t)
	s.lamp.Module = "puppet"
	for i, name := range []string{"disable", "status", "enable", "runonce"} {
		if i > 1 {
			s.lamp.Actions = append(s.lamp.Actions, s.lamp.Actions[0])
		}
		s.lamp.Actions[i].Name = name
	}
	s.lamp.Actions[1].Display = "always"
	if got := s.tutti(t.Context(), "", nil, "puppet", "status", "web-1", "-o", "name"); got.out != "web-1\nweb-2\nweb-3\n" {
		t.Errorf("%+v", got)
	}
	if sent := sentOrder[api.ActionAskRequest](t, s, "ask"); len(sent.Targets.Nodes) != 1 || sent.Targets.Nodes[0] != "web-1" {
		t.Errorf("%+v", sent)
	}
	s.runs = []api.JobRun{run("web-1", "succeeded", "", "")}
	for _, c := range []struct {
		args []string
		want map[string]string
	}{
		{[]string{"enable", "--all"}, nil},
		{[]string{"disable", "--all"}, nil},
		{[]string{"disable", "--all", "-m", "kernel update"}, map[string]string{"message": "kernel update"}},
		{[]string{"runonce", "--all"}, map[string]string{}},
		{[]string{"runonce", "--all", "--force", "--noop", "--tags", "a,b", "--environment", "test", "--use-cached-catalog"}, map[string]string{
			"force": "true", "noop": "true", "tags": "a,b", "environment": "test", "use_cached_catalog": "true",
		}},
		{[]string{"runonce", "--all", "--no-noop", "--splaylimit", "30"}, map[string]string{"noop": "false", "splay": "true", "splaylimit": "30"}},
		{[]string{"runonce", "--all", "--no-splay"}, map[string]string{"splay": "false"}},
	} {
		got := s.tutti(t.Context(), "", nil, append([]string{"puppet"}, append(c.args, "--yes", "--no-wait")...)...)
		sent := sentOrder[api.JobActionRequest](t, s, "action")
		if got.code != exitDone || sent.Module != "puppet" || sent.Action != c.args[0] || len(sent.Texts) != len(c.want) ||
			len(c.want) > 0 && !cmp.Equal(sent.Texts, c.want) {
			t.Errorf("%v: exit code %d, sent %+v\n%s", c.args, got.code, sent, got.err)
		}
	}
	for _, wrong := range []string{"--splay --no-splay", "--force --splay", "--force --splaylimit 3", "--noop --no-noop"} {
		if got := s.tutti(t.Context(), "", nil, append([]string{"puppet", "runonce", "--all"}, strings.Fields(wrong)...)...); got.code != exitUsage {
			t.Errorf("%s: exit code %d\n%s", wrong, got.code, got.err)
		}
	}
	s.lamp.Actions[1].Name = "last_run_summary"
	s.answers = []api.ActionAnswer{{Node: "a", State: "ok", Data: json.RawMessage(`{"lastrun":5,"total_resources":10}`)}}
	if got := s.tutti(t.Context(), "", nil, "puppet", "summary", "--all"); got.code != exitDone || !strings.Contains(got.out, "Summary statistics for 1 nodes:") {
		t.Errorf("%+v", got)
	}
}

// What an action declares sensitive is given where others do not see it, and is not said again.
func TestSecretsOfActions(t *testing.T) {
	t.Parallel()
	s := lampServer(t)
	got := s.tutti(t.Context(), "", nil, "action", "run", "lamp", "status", "code=horse", "--all")
	if got.code != exitUsage || !strings.Contains(got.err, "code of lamp status must not be given on the command line") || strings.Contains(got.err, "horse") {
		t.Errorf("exit code %d\n%s", got.code, got.err)
	}
	file := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(file, []byte(`{"code":"horse"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got = s.tutti(t.Context(), "", nil, "action", "run", "lamp", "status", "--params", "@"+file, "--all")
	if got.code != exitSomeFailed || strings.Contains(got.err+got.out, "horse") {
		t.Errorf("exit code %d\n%s", got.code, got.err)
	}
	if sent := sentOrder[api.ActionAskRequest](t, s, "ask"); string(sent.Input["code"]) != `"horse"` {
		t.Errorf("sent: %+v", sent)
	}
	if got := s.tutti(t.Context(), "", nil, "action", "show", "lamp", "status"); !strings.Contains(got.out, "string, sensitive") {
		t.Error(got.out)
	}
	words := mcoQuestion{module: "lamp", action: "on", texts: map[string]string{"name": "x", "code": "horse"}}.words(secretsOfAction("lamp", s.lamp.Actions[0]))
	if got := commandLine(words); got != "action run lamp on --ask code name=x" {
		t.Error(got)
	}
}
