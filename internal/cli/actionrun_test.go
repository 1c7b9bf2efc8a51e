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
	any := json.RawMessage(`{"type":"object","properties":{"color":{"type":"string"},"size":{"type":"integer"}}}`)
	fields := []api.ActionField{{Name: "name", Type: "string"}, {Name: "code", Type: "string", Sensitive: true}}
	s.lamp = api.ActionModule{Module: "lamp", Actions: []api.Action{
		{Name: "on", Display: "failed", Input: any, Results: any, Inputs: fields},
		{Name: "status", Display: "always", ReadOnly: true, Input: any, Results: any, Inputs: fields},
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
		{ID: "c6", Module: "lamp", Action: "status", Actor: "bob", Nodes: 1, Counts: map[string]int{"not asked": 1}, Began: began, Ended: began.Add(time.Second), Left: true},
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
	if got := s.tutti(t.Context(), "", nil, "action", "status", "12"); !strings.Contains(got.out, "12, command uptime") || !strings.Contains(got.err, "tutti job show 12") {
		t.Errorf("%s%s", got.out, got.err)
	}
	for args, want := range map[string]string{"x": "a job's id is a number", "--limit 0": "--limit is a number of calls", "--kind task": "--kind is call or job"} {
		if got := s.tutti(t.Context(), "", nil, append([]string{"action", "status"}, strings.Fields(args)...)...); got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%s: exit code %d\n%s", args, got.code, got.err)
		}
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
