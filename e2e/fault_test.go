package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

// An agent that asks for an environment nobody deployed is told, and runs in its own.
func TestUnknownEnvironment(t *testing.T) {
	begin(t)
	s := theHouse(t)
	a := newAgent(t, s, "nowhere.test", "story=basic")
	out := a.run(t, 2, "--environment", "nowhere")
	contains(t, out, "Environment 'nowhere' not found on server", // as Puppet Server
		"Local environment: 'nowhere' doesn't match server specified environment 'production'")
	same(t, "environment", "production", a.lastReport(t).Environment)

	n := enrol(t, s, "nowhere-raw.test")
	for _, path := range []string{
		"/puppet/v3/node/" + n.name + "?environment=nowhere",
		"/puppet/v3/file_metadatas/plugins?recurse=true&environment=nowhere",
		"/puppet/v3/file_content/modules/story/a.txt?environment=nowhere",
	} {
		got := n.must(t, http.MethodGet, path, "", nil)
		if got.status != http.StatusNotFound || !strings.Contains(got.body, "Could not find environment 'nowhere'") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if r := s.try(t, "code", "deploy", "No-Such Name!", "testdata/control/other"); r.code == 0 {
		t.Errorf("a deploy to an impossible environment succeeded: %s", r.text())
	}
}

// Errors in code reach the operator of the node with file and line, and nobody else.
func TestCodeErrors(t *testing.T) {
	begin(t, 50)
	s := theHouse(t)
	for _, c := range []struct {
		story, environment string
		says               []string // as Puppet Server, the directory apart
	}{
		{"syntax", "broken", []string{"Syntax error at 'mode'", "manifests/site.pp, line: 4, column: 5"}},
		{"unparsable", "production", []string{"Syntax error at 'mode'", "modules/story/manifests/unparsable.pp, line: 5"}},
		{"raises", "production", []string{"Error while evaluating a Function Call, the powder keg blew up", "manifests/raises.pp, line: 4, column: 3"}},
		{"nonexistent", "production", []string{"Could not find class ::story::nonexistent", "manifests/site.pp, line: 4"}},
	} {
		t.Run(c.story, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, s, "code-"+c.story+".test", "story="+c.story)
			out := a.run(t, 1, "--environment", c.environment)
			contains(t, out, append(c.says, "Error 500 on SERVER", "Could not retrieve catalog; skipping run")...)
			r := a.lastReport(t) // the failed run is known, with the error in its log
			if r.Status != "failed" || !reportSays(r, c.says[0]) {
				t.Errorf("report: status %s, log %+v", r.Status, r.Logs)
			}
			s.logged(t, a.name, c.says[0])
			a.env = append(a.env, "FACTER_story=basic")
			a.run(t, 2) // nothing is harmed
		})
	}
}

func reportSays(r api.Report, text string) bool {
	for _, line := range r.Logs {
		if strings.Contains(line.Message, text) {
			return true
		}
	}
	return false
}

// Compiles that never end, or eat memory, are stopped with a clear error, and the
// next compile is as good as ever.
func TestRunawayCompiles(t *testing.T) {
	begin(t, 90)
	s := startServer(t, "--autosign", "all", "--compile-timeout", "30s", "--compile-memory-bytes", "268435456", "--compile-patience", "5m")
	s.deploy(t, "production")
	for _, c := range []struct{ story, says string }{{"endless", "30s"}, {"hungry", "memory"}} {
		a := newAgent(t, s, c.story+".test", "story="+c.story)
		children := s.children()
		out := a.run(t, 1)
		contains(t, out, "Error 500 on SERVER", c.says)
		s.logged(t, a.name, c.says)
		if r := a.lastReport(t); r.Status != "failed" {
			t.Errorf("report: %s", r.Status)
		}
		a.env = append(a.env, "FACTER_story=basic")
		a.run(t, 2)
		if now := len(s.children()); now > len(children)+4*len(s.pids()) {
			t.Errorf("%d child processes before, %d after: a stopped compile left something", len(children), now)
		}
	}
}

// badRequest is one wrong thing to send, and what comes of it.
type badRequest struct {
	story, method, path, contentType string
	body                             []byte
	headers                          map[string]string
	status                           int
	says                             string
}

// Facts, catalogs requests and reports that are too large, broken or cut are refused in
// words; what was stored before stays.
func TestBadBodies(t *testing.T) {
	begin(t, 20)
	s := theHouse(t)
	n := enrol(t, s, "bad-bodies.test")
	facts, report := "/puppet/v3/facts/"+n.name+"?environment=production", "/puppet/v3/report/"+n.name+"?environment=production"
	catalog := "/puppet/v3/catalog/" + n.name + "?environment=production"
	uuid := newUUID()
	for _, good := range []struct {
		path string
		body []byte
	}{{facts, factsJSON(n.name, map[string]any{"kept": "as it was"})}, {report, reportJSON(n.name, uuid)}} {
		if a := n.must(t, http.MethodPut, good.path, "application/json", good.body); a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", good.path, a.status, a.body)
		}
	}
	huge := factsJSON(n.name, map[string]any{"huge": strings.Repeat("x", 17<<20)})
	whole := reportJSON(n.name, newUUID())
	const form, asJSON = "application/x-www-form-urlencoded", "application/json"
	for _, c := range []badRequest{
		{"facts of 17 MB", http.MethodPut, facts, asJSON, huge, nil, http.StatusRequestEntityTooLarge, "facts"},
		{"facts of 17 MB, compressed", http.MethodPut, facts, asJSON, gzipped(huge), map[string]string{
			"Content-Encoding": "gzip",
		}, http.StatusRequestEntityTooLarge, "facts"},
		{"catalog with facts of 17 MB", http.MethodPost, catalog, form, catalogForm(n.name, "production",
			map[string]any{"huge": strings.Repeat("x", 17<<20)}), nil, http.StatusRequestEntityTooLarge, "facts"},
		{"broken JSON as facts", http.MethodPut, facts, asJSON, []byte(`{"name": "` + n.name + `", "values": {`), nil, http.StatusBadRequest, "facts"},
		{"facts of another node", http.MethodPut, facts, asJSON, factsJSON("somebody-else.test", nil), nil, http.StatusBadRequest, "somebody-else.test"},
		{"facts that are a list", http.MethodPut, facts, asJSON, []byte(`[1, 2]`), nil, http.StatusBadRequest, "facts"},
		{"deep nesting", http.MethodPut, facts, asJSON, []byte(`{"name":"` + n.name + `","values":` + strings.Repeat(`{"a":`, 50000) + "1" +
			strings.Repeat("}", 50000) + "}"), nil, http.StatusBadRequest, "facts"},
		{"catalog with broken facts", http.MethodPost, catalog, form, []byte("facts_format=application%2Fjson&facts=%257Bnope"), nil, http.StatusBadRequest, "facts"},
		{"broken JSON as report", http.MethodPut, report, asJSON, []byte(`{"host": nonsense}`), nil, http.StatusBadRequest, "report"},
		{"report cut in half", http.MethodPut, report, asJSON, whole[:len(whole)/2], nil, http.StatusBadRequest, "report"},
		{"report of another node", http.MethodPut, report, asJSON, reportJSON("somebody-else.test", newUUID()), nil, http.StatusBadRequest, "somebody-else.test"},
		{"no environment", http.MethodPut, "/puppet/v3/facts/" + n.name, asJSON, factsJSON(n.name, nil), nil, http.StatusBadRequest, "environment"},
	} {
		t.Run(c.story, func(t *testing.T) { checkRefused(t, n, c) })
	}
	t.Run("report cut by the network", func(t *testing.T) { cutUpload(t, n, report, whole) })

	kept := decode[map[string]any](t, s, "node", "facts", n.name)
	same(t, "kept facts", any("as it was"), kept["kept"])
	reports := decode[api.List[api.Report]](t, s, "report", "list", "--node", n.name).Items
	if len(reports) != 1 || reports[0].TransactionUUID != uuid {
		t.Errorf("stored reports: %+v", reports)
	}
	s.logged(t, n.name, "413")
	s.logged(t, n.name, "400")
}

// A real agent with far too many facts: the run ends, and its operator is told why.
func TestAgentWithHugeFacts(t *testing.T) {
	begin(t, 40)
	a := newAgent(t, theHouse(t), "huge.test", "story=basic")
	a.run(t, 2)
	facts := filepath.Join(a.home, "facts")
	if err := os.Mkdir(facts, 0o755); err != nil {
		t.Fatal(err)
	}
	const fact = "Facter.add(:huge) { setcode { 'x' * 17_825_792 } }\n"
	if err := os.WriteFile(filepath.Join(facts, "huge.rb"), []byte(fact), 0o600); err != nil {
		t.Fatal(err)
	}
	good := a.env
	a.env = append(slices.Clip(good), "FACTERLIB="+facts)
	out := a.run(t, 1)
	contains(t, out, "Error 413 on SERVER: Payload Too Large", "16777216 bytes", "Could not retrieve catalog; skipping run")
	a.server.logged(t, a.name, "request is wrong", "413")
	a.env = good
	a.run(t, 0)
	if stored := decode[map[string]any](t, a.server, "node", "facts", a.name); stored["huge"] != nil {
		t.Error("the huge fact is stored")
	}
}

// checkRefused sends what c says and looks at the refusal.
func checkRefused(t *testing.T, n *node, c badRequest) {
	t.Helper()
	headers := map[string]string{"Content-Type": c.contentType}
	maps.Copy(headers, c.headers)
	a, err := n.doHeaders(c.method, c.path, headers, c.body)
	if err != nil {
		t.Fatal(err)
	}
	var told struct {
		Message string
		Kind    string `json:"issue_kind"`
	}
	if err := json.Unmarshal([]byte(a.body), &told); err != nil {
		t.Errorf("the refusal is no JSON, so agents show it raw: %v %.300q", err, a.body)
	}
	if a.status != c.status || !strings.Contains(told.Message, c.says) || told.Kind == "" {
		t.Errorf("answer: %d %.300s, want %d with %q", a.status, a.body, c.status, c.says)
	}
}

// cutUpload sends half of what it promised, and hangs up.
func cutUpload(t *testing.T, n *node, path string, body []byte) {
	t.Helper()
	c := n.dial(t)
	_, err := fmt.Fprintf(c, "PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, len(body), body[:len(body)/2])
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	n.server.logged(t, "/puppet/v3/report/"+n.name, "ended")
}

// A node may ask only for itself, and without a certificate there is nothing to see.
func TestNobodyGetsInUnproven(t *testing.T) {
	begin(t)
	s := theHouse(t)
	a, b, nobody := enrol(t, s, "mine.test"), enrol(t, s, "yours.test"), anonymous(t, s)
	for _, c := range []struct {
		by           *node
		method, path string
	}{
		{a, http.MethodGet, "/puppet/v3/node/" + b.name + "?environment=production"},
		{a, http.MethodPost, "/puppet/v3/catalog/" + b.name + "?environment=production"},
		{a, http.MethodPut, "/puppet/v3/facts/" + b.name + "?environment=production"},
		{a, http.MethodPut, "/puppet/v3/report/" + b.name + "?environment=production"},
		{a, http.MethodGet, "/puppet-ca/v1/certificate_statuses/all"},
		{a, http.MethodPut, "/puppet-ca/v1/certificate_status/" + b.name},
		{a, http.MethodGet, "/api/v1/nodes"},
		{nobody, http.MethodGet, "/puppet/v3/node/" + a.name + "?environment=production"},
		{nobody, http.MethodGet, "/puppet/v3/file_content/modules/story/a.txt?environment=production"},
		{nobody, http.MethodPost, "/puppet/v3/catalog/" + a.name + "?environment=production"},
		{nobody, http.MethodGet, "/api/v1/nodes"},
		{nobody, http.MethodGet, "/api/v1/reports"},
		{nobody, http.MethodGet, "/metrics"},
	} {
		var body []byte
		if c.method != http.MethodGet { // who sends one where none is taken is told that first
			body = []byte("{}")
		}
		got := c.by.must(t, c.method, c.path, "application/json", body)
		if got.status != http.StatusForbidden && got.status != http.StatusUnauthorized {
			t.Errorf("%s %s as %q: %d %.200s", c.method, c.path, c.by.name, got.status, got.body)
		}
	}
	if got := b.must(t, http.MethodGet, "/puppet/v3/node/"+b.name+"?environment=production", "", nil); got.status != http.StatusOK {
		t.Errorf("a node's own: %d %s", got.status, got.body)
	}
	for _, path := range []string{"/status/v1/simple", "/puppet-ca/v1/certificate/ca", "/puppet-ca/v1/certificate_revocation_list/ca"} {
		if got := nobody.must(t, http.MethodGet, path, "", nil); got.status != http.StatusOK {
			t.Errorf("GET %s without a certificate: %d %s", path, got.status, got.body)
		}
	}
}

// A second server on the same data directory is refused; the first does not notice.
func TestSecondServerOnSameData(t *testing.T) {
	begin(t)
	s := startServer(t, "--autosign", "all")
	r := tuttiWith(t, s.env, "server", "--data", s.data, "--listen", "127.0.0.1:0")
	if r.code != 5 {
		t.Errorf("exit code %d, want 5 (refused)\n%s", r.code, r.text())
	}
	contains(t, r.text(), "another server", fmt.Sprint(s.cmd.Process.Pid), s.data, "docs/many-servers.md")
	if !s.answers() {
		t.Error("the first server does not answer any more")
	}
	enrol(t, s, "still-works.test")
}

// A data directory that cannot be written is refused at the start, in words.
func TestReadOnlyDataDirectory(t *testing.T) {
	begin(t)
	dir := mountTmpfs(t, "size=64m")
	s := newServer(dir)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	before := fileList(t, s.data)
	remount(t, dir, "ro")
	r := tuttiWith(t, s.env, "server", "--data", s.data, "--listen", "127.0.0.1:0")
	if r.code == 0 {
		t.Errorf("it started:\n%s", r.text())
	}
	contains(t, r.text(), s.data, "cannot be written", "read-only file system")
	same(t, "files", before, fileList(t, s.data))
	fresh := tuttiWith(t, s.env, "server", "--data", filepath.Join(dir, "new"), "--listen", "127.0.0.1:0")
	if fresh.code == 0 {
		t.Errorf("it started in a new directory:\n%s", fresh.text())
	}
	contains(t, fresh.text(), filepath.Join(dir, "new"), "read-only file system")

	remount(t, dir, "rw")
	s.log = filepath.Join(t.TempDir(), "server.log")
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// A full disk stops what has to be written, with words for the sender and the log; what was
// acknowledged stays, and when there is room again everything goes on.
func TestFullDisk(t *testing.T) {
	begin(t, 60)
	dir := mountTmpfs(t, "size=96m")
	s := newServer(dir, "--autosign", "all")
	s.log = filepath.Join(t.TempDir(), "server.log") // the log has its own disk
	s.showLog(t)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	s.deploy(t, "production")
	n := enrol(t, s, "full.test")
	facts, report := "/puppet/v3/facts/"+n.name+"?environment=production", "/puppet/v3/report/"+n.name+"?environment=production"
	for _, c := range []struct {
		path string
		body []byte
	}{{facts, factsJSON(n.name, map[string]any{"kept": "as it was"})}, {report, reportJSON(n.name, newUUID())}} {
		if a := n.must(t, http.MethodPut, c.path, "application/json", c.body); a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", c.path, a.status, a.body)
		}
	}
	agent := newAgent(t, s, "full-agent.test", "story=basic")
	agent.run(t, 2)
	filler := fillDisk(t, dir)
	agent.env = append(agent.env, "FACTER_colour=green") // something new to store
	out := agent.run(t, 1)
	contains(t, out, "Error 503 on SERVER", "full") // this is what its operator sees
	noise := strings.Repeat("not compressible? ", 1<<16)
	a := n.must(t, http.MethodPut, facts, "application/json", factsJSON(n.name, map[string]any{"noise": noise, "kept": "changed"}))
	if a.status < 500 || !strings.Contains(a.body, "full") {
		t.Errorf("facts on a full disk: %d %.300s", a.status, a.body)
	}
	b := n.must(t, http.MethodPut, "/puppet/v3/file_bucket_file/sha256/"+sha256Hex([]byte(noise))+"/tmp/x?environment=production",
		"application/octet-stream", []byte(noise))
	if b.status < 500 || !strings.Contains(b.body, "full") {
		t.Errorf("a backup on a full disk: %d %.300s", b.status, b.body)
	}
	changed := t.TempDir()
	if err := os.CopyFS(changed, os.DirFS("testdata/control/other")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(changed, "large.txt"), []byte(noise), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := s.try(t, "code", "deploy", "other", changed); r.code == 0 || !strings.Contains(r.text(), "full") {
		t.Errorf("a deploy on a full disk: %d %s", r.code, r.text())
	}
	s.logged(t, "full")

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	kept := decode[map[string]any](t, s, "node", "facts", n.name)
	same(t, "kept facts", any("as it was"), kept["kept"])
	s.tutti(t, "code", "deploy", "other", changed)
	agent.run(t, 0)
}

// fillDisk writes a file until nothing fits any more.
func fillDisk(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range []int{1 << 20, 4096, 1} {
		_, err = io.Copy(file, &endless{bytes.Repeat([]byte{1}, block)})
	}
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("the disk did not fill up: %v", err)
	}
	_ = file.Close()
	return path
}

// endless reads as the same block again and again.
type endless struct{ block []byte }

func (e *endless) Read(p []byte) (int, error) { return copy(p, e.block), nil }

// An agent whose clock is an hour off converges; the server says what it sees.
func TestClockAnHourOff(t *testing.T) {
	begin(t, 30)
	library, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(library) == 0 {
		t.Fatal("libfaketime is missing: apt-get install faketime")
	}
	for _, offset := range []string{"-1h", "+1h"} {
		t.Run(offset, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, theHouse(t), "hour"+strings.NewReplacer("+", "-ahead-", "-", "-behind-").Replace(offset)+".test", "story=basic")
			a.env = append(a.env, "LD_PRELOAD="+library[0], "FAKETIME="+offset)
			a.run(t, 2)
			r := a.lastReport(t)
			if r.Status != "changed" {
				t.Errorf("report: %s", r.Status)
			}
			now := time.Now()
			if off := now.Sub(r.ReceivedAt).Abs(); off > 10*time.Minute {
				t.Errorf("the report's arrival is told by the wrong clock: %s", r.ReceivedAt)
			}
			if off := now.Sub(r.StartedAt).Abs(); off < 50*time.Minute {
				t.Errorf("the test does not test: the run began %s ago by its own clock", off)
			}
			if items := a.reports(t); len(items) != 1 {
				t.Errorf("%d reports", len(items))
			}
			a.run(t, 0)
			a.server.logged(t, a.name, "clock is off")
		})
	}
}
