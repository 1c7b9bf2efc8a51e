package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of the page about the orchestrator's API, on a simulated node.
func TestThePageAboutTheOrchestratorAPI(t *testing.T) {
	begin(t, 10)
	address := steadyAddress(t)
	s := startServer(t, "--autosign", "all", "--orchestrator-listen", address)
	enroller, err := newEnroller(s)
	if err != nil {
		t.Fatal(err)
	}
	defer enroller.Close()
	nodes, err := startFleet(s, enroller, "web-1.test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nodes.close() }()
	(&chaos{server: s, client: apiClient(t, s)}).deploy(t)
	dir := t.TempDir()
	certificate, err := os.ReadFile(filepath.Join(s.data, "ca", "ca_crt.pem"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "ca.pem"), certificate, 0o600)
	}
	page, read := os.ReadFile(filepath.Join(docs, "orchestrator-api.md"))
	if err != nil || read != nil {
		t.Fatal(err, read)
	}
	text := strings.NewReplacer(
		"tutti.example.com:8143", strings.Replace(address, "127.0.0.1", "localhost", 1), "web-1.example.com", "web-1.test", "jobs/12", "jobs/1", `"12"`, `"1"`,
		"job show 12", "job show 1",
		`"task":"package","params":{"name":"openssl","action":"status"}`, `"task":"chaos::mark","params":{"label":"x","sleep":20,"exitcode":0}`,
	).Replace(string(page))
	eventually(t, patience, "the node is connected", func() bool { return connected(t, s) == 1 })
	s.followsText(t, dir, "orchestrator-api.md", text)
	eventually(t, patience, "the job is stopped", func() bool { return strings.Contains(s.try(t, "job", "show", "1").out, "stopp") })
}
