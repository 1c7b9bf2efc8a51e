package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// A server whose disk is full starts, serves what it has, says in its health what is wrong, and
// refuses what it would have to store. When there is room it goes on by itself.
func TestStartOnAFullDisk(t *testing.T) {
	begin(t)
	dir := mountTmpfs(t, "size=128m")
	s := newServer(dir, "--autosign", "all")
	s.log = filepath.Join(t.TempDir(), "server.log") // the log has its own disk
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	s.deploy(t, "production")
	n := enrol(t, s, "full-start.test")
	facts, file := "/puppet/v3/facts/"+n.name+"?environment=production", "/puppet/v3/file_content/modules/story/tree/one.txt?environment=production"
	before := n.must(t, http.MethodGet, file, "", nil)
	if before.status != http.StatusOK {
		t.Fatalf("%s: %d %s", file, before.status, before.body)
	}
	ballast := filepath.Join(s.data, "ballast")
	if !within(patience, func() bool { info, err := os.Stat(ballast); return err == nil && info.Size() == 8<<20 }) {
		t.Fatal("the server keeps no ballast")
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	filler := fillDisk(t, dir)
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	s.showLog(t)
	if !within(startTimeout, func() bool { return s.gone() || !s.answers() && s.url != "" }) || s.gone() {
		t.Fatalf("the server did not come up (exit code %d)", s.exitCode())
	}
	s.logged(t, "starts read-only", "the server's disk is full")
	var services map[string]struct {
		State  string         `json:"state"`
		Status map[string]any `json:"status"`
	}
	status := n.must(t, http.MethodGet, "/status/v1/services", "", nil)
	if err := json.Unmarshal([]byte(status.body), &services); err != nil || status.status != http.StatusServiceUnavailable {
		t.Fatalf("status: %d %s, %v", status.status, status.body, err)
	}
	storage := services["storage"]
	reason, _ := storage.Status["reason"].(string)
	same(t, "health", "error", storage.State)
	contains(t, reason, "the server's disk is full (", "stores nothing until")
	if a := n.must(t, http.MethodGet, "/status/v1/simple", "", nil); a.status != http.StatusServiceUnavailable || a.body != "error" {
		t.Errorf("health: %d %s", a.status, a.body)
	}
	if a := n.must(t, http.MethodGet, file, "", nil); a.status != http.StatusOK || a.body != before.body {
		t.Errorf("a file on a full disk: %d %s", a.status, a.body)
	}
	a := n.must(t, http.MethodPut, facts, "application/json", factsJSON(n.name, map[string]any{"a": "1"}))
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("facts on a full disk: %d %s", a.status, a.body)
	}
	contains(t, a.body, "the server's disk is full (")
	backup := "/puppet/v3/file_bucket_file/sha256/" + sha256Hex([]byte("old")) + "//etc/motd?environment=production"
	if a := n.must(t, http.MethodPut, backup, "application/octet-stream", []byte("old")); a.status != http.StatusServiceUnavailable {
		t.Errorf("a backup on a full disk: %d %s", a.status, a.body)
	}
	if _, err := os.Stat(ballast); err == nil {
		t.Error("the ballast was not given up")
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if !within(patience, s.answers) {
		t.Error("the server is not well again")
	}
	if a := n.must(t, http.MethodPut, facts, "application/json", factsJSON(n.name, map[string]any{"a": "1"})); a.status != http.StatusOK {
		t.Errorf("facts with room again: %d %s", a.status, a.body)
	}
	if !within(patience, func() bool { _, err := os.Stat(ballast); return err == nil }) {
		t.Error("there is no ballast for the next time")
	}
}

// Every command of the page on limits works.
func TestTheCommandsOfTheLimitsPage(t *testing.T) {
	begin(t, 40)
	s := startServer(t)
	s.follows(t, t.TempDir(), "limits.md")
}
