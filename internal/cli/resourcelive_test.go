package cli

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// liveServer has nodes that answer questions for resources, and catalogs that a query finds.
func liveServer(t *testing.T, answers []api.ActionAnswer, catalogs []map[string]any, reports ...map[string]any) []string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/query") {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			rows := catalogs
			switch {
			case bytes.Contains(body, []byte("resource_title")):
				rows = reports
			case bytes.Contains(body, []byte("report_timestamp")):
				rows = []map[string]any{{"certname": "a"}, {"certname": "b"}}
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"columns": []string{"certname", "title", "parameters"}, "rows": rows})
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(e api.ActionEvent) {
			text, err := json.Marshal(e)
			if err != nil {
				t.Error(err)
			}
			_, _ = fmt.Fprintf(w, "event: change\ndata: %s\n\n", text)
		}
		send(api.ActionEvent{Asked: &api.ActionAsked{Module: "resource", Nodes: len(answers), Action: api.Action{
			Name: "find", Display: "always", ReadOnly: true, Input: json.RawMessage(`{}`), Results: json.RawMessage(`{"type":"object","properties":{}}`),
		}}})
		for _, a := range answers {
			send(api.ActionEvent{Answer: &a})
		}
		_, _ = fmt.Fprint(w, "event: end\ndata: {}\n\n")
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"TUTTI_SERVER=" + server.URL, "TUTTI_CA_FILE=" + ca, "TUTTI_TOKEN=tutti_x", "HOME=" + dir, "TUTTI_DATA=" + dir}
}

func TestLiveResourcesAreComparedWithEachOtherAndWithCatalogs(t *testing.T) {
	t.Parallel()
	one := func(node, parameters string) api.ActionAnswer {
		return api.ActionAnswer{Node: node, State: "ok", Data: json.RawMessage(`{"type":"Service","title":"ssh","parameters":` + parameters + `}`)}
	}
	found := liveServer(t, []api.ActionAnswer{
		one("b", `{"ensure":"stopped","enable":"true","mtime":"1"}`), one("a", `{"enable":"true","ensure":"running"}`),
		one("c", `{"mtime":"2","enable":"true","ensure":"stopped"}`),
		{Node: "d", State: "offline"},
	}, []map[string]any{
		{"certname": "a", "title": "ssh", "parameters": map[string]any{"ensure": "running", "enable": true}},
		{"certname": "b", "title": "ssh", "parameters": map[string]any{"ensure": "running", "require": "Package[ssh]"}},
		{"certname": "c", "title": "ssh", "parameters": map[string]any{"ensure": "running"}},
		{"certname": "d", "title": "ssh", "parameters": map[string]any{"ensure": "running"}},
	},
		map[string]any{
			"certname": "b", "resource_title": "ssh", "property": "ensure", "status": "success", "old_value": "stopped", "new_value": "running",
			"corrective_change": true,
		},
		map[string]any{"certname": "d", "resource_title": "ssh", "status": "failure"},
		map[string]any{"certname": "b", "resource_title": "other", "status": "failure"})
	row := func(title, color string) string {
		return `{"type":"Lamp","title":"` + title + `","parameters":{"color":"` + color + `"}}`
	}
	listed := liveServer(t, []api.ActionAnswer{
		{Node: "a", State: "ok", Data: json.RawMessage(`{"result":[` + row("hall", "red") + `,` + row("attic", "blue") +
			`],"total":9,"cut":true,"problems":["led: no current"]}`)},
		{Node: "b", State: "ok", Data: json.RawMessage(`{"result":[` + row("hall", "green") + `],"total":1,"cut":false,"problems":[]}`)},
	}, []map[string]any{{"certname": "b", "title": "hall", "parameters": map[string]any{"color": "red"}}})
	for _, c := range []struct {
		env  []string
		args string
		code int
		out  string // whole
		err  string // a part
	}{
		{
			found, "service ssh --all --with-catalog", exitLate,
			"NODES  ENSURE   FOR EXAMPLE  DRIFT\n" +
				"2      stopped  b c          ensure: catalog says running, node says stopped on 2 nodes\n" +
				"1      running  a            -\n" +
				"d  offline\n\n",
			"3 of 4 nodes answered ok; offline: 1",
		},
		{
			found, "service ssh --all --with-catalog --with-report", exitLate,
			"NODES  ENSURE   FOR EXAMPLE  DRIFT                                                       LAST REPORT\n" +
				"2      stopped  b c          ensure: catalog says running, node says stopped on 2 nodes  corrective success: ensure from stopped to running on 1 node; no report on 1 node\n" +
				"1      running  a            -                                                           nothing on 1 node\n" +
				"d  offline\n\n",
			"3 of 4 nodes answered ok; offline: 1",
		},
		{found, "service ssh --all --as-manifest --with-report", exitUsage, "", "what became of it"},
		{found, "service ssh --all -o csv", exitLate, "nodes,ensure,for_example\n2,stopped,b c\n1,running,a\n", "d: offline"},
		{found, "service ssh --all --as-manifest", exitLate, "service { 'ssh':\n  ensure => 'stopped',\n  enable => 'true',\n}\n", "d: offline"},
		{found, "service ssh --all --as-manifest --variant 2", exitLate, "service { 'ssh':\n  ensure => 'running',\n  enable => 'true',\n}\n", "d: offline"},
		{found, "service ssh --all --as-manifest --variant 3", exitUsage, "", "--variant 3: of Service[ssh] there are 2"},
		{
			listed, "lamp --all --with-catalog -o csv", exitDone,
			"title,variants,nodes,differing,drift\nhall,2,2,color,\"color: catalog says red, node says green on 1 node\"\nattic,1,1,,\n",
			"1 node has more of them than could be listed",
		},
		{listed, "lamp --all -o name", exitDone, "hall\nattic\n", "a: led: no current"},
		{listed, "lamp --all --as-manifest", exitDone, "lamp { 'attic':\n  color => 'blue',\n}\nlamp { 'hall':\n  color => 'green',\n}\n", ""},
		{found, "service ssh", exitUsage, "", "which nodes?"},
		{found, "service ssh --all --variant 2", exitUsage, "", "--as-manifest"},
		{found, "service ssh --all --as-manifest -o json", exitUsage, "", "-o json has no place"},
		{found, "service ssh --all --as-manifest --with-catalog", exitUsage, "", "how it should be"},
		{found, "service ssh --all --expensive", exitUsage, "", "without TITLE"},
		{found, "service ssh --all --timeout=-1s", exitUsage, "", "--timeout is a duration"},
		{found, "service ssh --all --variant 0", exitUsage, "", "--variant is a number"},
	} {
		var out, err bytes.Buffer
		system := System{In: strings.NewReader(""), Out: &out, Err: &err, Env: c.env}
		code := Run(t.Context(), append([]string{"resource", "live"}, strings.Fields(c.args)...), system)
		if code != c.code || strings.TrimRight(out.String(), "\n") != strings.TrimRight(c.out, "\n") || !strings.Contains(err.String(), c.err) {
			t.Errorf("%s: exit code %d, want %d\n%s\nwant\n%s\nstandard error: %s", c.args, code, c.code, out.String(), c.out, err.String())
		}
	}
	var out, progress bytes.Buffer
	Run(t.Context(), []string{"resource", "live", "service", "ssh", "--all"}, System{In: strings.NewReader(""), Out: &out, Err: &progress, Env: found, Width: 100})
	if !strings.Contains(progress.String(), "1 of 4 answered") {
		t.Errorf("on a terminal: %q", progress.String())
	}
}

func TestDriftIsBounded(t *testing.T) {
	t.Parallel()
	d := drift{kind: "file", held: maxHeld - 1}
	if err := d.saw("a", "/x", json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}
	if err := d.saw("a", "/y", json.RawMessage(`{}`)); !fault.Is(err, fault.Invalid) || len(d.live["a"]) != 1 {
		t.Errorf("%v, %d are held", err, len(d.live["a"]))
	}
}
