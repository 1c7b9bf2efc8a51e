package e2e_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/sim"
)

// enterprise is a client of Puppet Enterprise's orchestrator: TLS 1.2, a token in its header, a type also on GET, and 200 or 202 is what it takes.
type enterprise struct {
	t     *testing.T
	base  string
	token string
	http  *http.Client
}

func newEnterprise(t *testing.T, s *server, address string) *enterprise {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(s.data, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(address, ":")
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots(t), MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &enterprise{
		t: t, base: "https://localhost:" + port + "/orchestrator/v1", token: strings.TrimSpace(string(token)),
		http: &http.Client{Transport: transport, Timeout: time.Minute},
	}
}

// try asks; an error is one of the connection.
func (e *enterprise) try(method, url, body string) (status int, answer map[string]any, err error) {
	request, err := http.NewRequestWithContext(e.t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Authentication", e.token)
	response, err := e.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it is read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, err
	}
	if err := json.Unmarshal(text, &answer); err != nil || !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		e.t.Errorf("%s %s: %d, %v in %.300s", method, url, response.StatusCode, err, text)
	}
	return response.StatusCode, answer, nil
}

func (e *enterprise) do(method, path, body string, want int) map[string]any {
	e.t.Helper()
	status, answer, err := e.try(method, e.base+path, body)
	if err != nil || status != want {
		e.t.Fatalf("%s %s: %d %v, %v; want %d", method, path, status, answer, err, want)
	}
	return answer
}

// job follows a link to a job until it is over, as the clients poll, also while the server is away.
func (e *enterprise) job(link string) (j map[string]any) {
	e.t.Helper()
	eventually(e.t, patience, "the job is over", func() bool {
		status, answer, err := e.try(http.MethodGet, link, "")
		j = answer
		return err == nil && status == http.StatusOK && (answer["state"] == "finished" || answer["state"] == "failed" || answer["state"] == "stopped")
	})
	return j
}

// in is what is inside of an answer.
func in(value any, keys ...any) any {
	for _, key := range keys {
		switch key := key.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[key]
		case int:
			list, _ := value.([]any)
			if value = nil; key < len(list) {
				value = list[key]
			}
		}
	}
	return value
}

// Clients of Puppet Enterprise find their port, start, poll and stop work, and `tutti job` sees the same jobs. The server goes and comes in
// the middle of a poll.
func TestOrchestratorAPI(t *testing.T) {
	begin(t, 25)
	address, people := steadyAddress(t), steadyAddress(t)
	s := startServer(t, "--autosign", "all", "--listen", steadyAddress(t), "--orchestrator-listen", address, "--rbac-listen", people, "--job-reconnect", "10m")
	enroller, err := newEnroller(s)
	if err != nil {
		t.Fatal(err)
	}
	defer enroller.Close()
	names := sim.Names(4, "orch.test")
	nodes, err := startFleet(s, enroller, names...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nodes.close() }()
	(&chaos{server: s, client: apiClient(t, s)}).deploy(t)
	e := newEnterprise(t, s, address)
	s.fixedPorts(t, e, newEnterprise(t, s, people))

	eventually(t, patience, "all are connected", func() bool {
		asked := e.do(http.MethodPost, "/inventory", `{"nodes":["`+strings.Join(names, `","`)+`"]}`, 200)
		connected := 0
		for i := range names {
			if in(asked, "items", i, "connected") == true {
				connected++
			}
		}
		return connected == len(names)
	})
	task := func(sleep float64, exit int, more string) string {
		return fmt.Sprintf(`{"task":"chaos::mark","environment":"production","noop":null,"params":{"label":"x","sleep":%g,"exitcode":%d},%s"scope":{"nodes":["%s"]}}`,
			sleep, exit, more, strings.Join(names, `","`))
	}
	plan := e.do(http.MethodPost, "/command/plan_start", `{"plan_name":"a::b","params":{}}`, 202)
	started := e.do(http.MethodPost, "/command/plan_task", task(3, 0, fmt.Sprintf(`"plan_job":"%v",`, plan["name"])), 202)
	link, number := fmt.Sprint(in(started, "job", "id")), fmt.Sprint(in(started, "job", "name"))
	if err := s.crash(); err != nil {
		t.Fatal(err)
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	over := e.job(link)
	if over["state"] != "finished" || over["type"] != "plan_task" {
		t.Errorf("the job over a crash: %v", over)
	}
	e.do(http.MethodPost, "/command/plan_finish", fmt.Sprintf(`{"plan_job":"%v","result":"","status":"success"}`, plan["name"]), 202) // it outlived the server
	results := e.do(http.MethodGet, "/jobs/"+number+"/nodes", "", 200)
	for i := range names {
		if in(results, "items", i, "state") != "finished" || in(results, "items", i, "result") == nil {
			t.Errorf("node %v", in(results, "items", i))
		}
	}
	e.do(http.MethodGet, "/jobs/"+number+"/report", "", 200)
	events := e.do(http.MethodGet, "/jobs/"+number+"/events", "", 200)
	if list, _ := events["items"].([]any); in(list, len(list)-1, "type") != "job_finished" {
		t.Errorf("events %v", events)
	}
	if shown := s.tutti(t, "job", "show", number); !strings.Contains(shown, "chaos::mark") || !strings.Contains(shown, "succeeded") {
		t.Errorf("tutti job show %s:\n%s", number, shown)
	}

	slow := fmt.Sprint(in(e.do(http.MethodPost, "/command/task", task(60, 0, ""), 202), "job", "name"))
	s.tutti(t, "job", "stop", slow, "--kill")
	if j := e.job(e.base + "/jobs/" + slow); j["state"] != "stopped" {
		t.Errorf("stopped by the command: %v", j)
	}
	failed := e.job(fmt.Sprint(in(e.do(http.MethodPost, "/command/task", task(0, 3, ""), 202), "job", "id")))
	if failed["state"] != "failed" {
		t.Errorf("a task that fails: %v", failed)
	}
	unknown := e.do(http.MethodGet, "/jobs/999", "", 404)
	if unknown["kind"] != "puppetlabs.orchestrator/unknown-job" {
		t.Errorf("%v", unknown)
	}
	e.do(http.MethodGet, "//jobs", "", 404)
	service := strings.TrimSuffix(e.base, "/orchestrator/v1") + "/status/v1/services/orchestrator-service?level=info"
	if status, answer, err := e.try(http.MethodGet, service, ""); err != nil || status != 200 || answer["state"] != "running" {
		t.Errorf("status: %d %v, %v", status, answer, err)
	}
}

// fixedPorts gets a token where clients look for tokens, and uses it where they look for the orchestrator. What neither port serves is refused
// there as everything else is: in JSON, with a kind.
func (s *server) fixedPorts(t *testing.T, orchestrator, people *enterprise) {
	t.Helper()
	newShell(t, t.TempDir(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "TUTTI_DATA="+s.data).
		types("echo correct horse battery | tutti user create ann --role operator --password-stdin")
	root := func(e *enterprise) string { return strings.TrimSuffix(e.base, "/orchestrator/v1") }
	status, issued, err := people.try(http.MethodPost, root(people)+"/rbac-api/v1/auth/token",
		`{"login":"ann","password":"correct horse battery","lifetime":"1h"}`)
	if err != nil || status != http.StatusOK {
		t.Fatalf("a token of the port for tokens: %d %v, %v", status, issued, err)
	}
	ann := *orchestrator
	ann.token = fmt.Sprint(issued["token"])
	ann.do(http.MethodGet, "/jobs", "", 200)
	for _, e := range []*enterprise{orchestrator, people} {
		for path, kind := range map[string]string{
			"/orchestrator/v1/nothing": "puppetlabs.orchestrator/not-found", "/orchestrator/v2/jobs": "puppetlabs.orchestrator/not-found",
			"/rbac-api/v1/nothing": "puppetlabs.rbac/not-found", "/rbac-api/v3/users": "puppetlabs.rbac/not-found",
			"/activity-api/v1/events": "puppetlabs.activity/not-found", "/code-manager/v2/deploys": "puppetlabs.code-manager/not-found",
			"/inventory/v1/query": "tutti/not-found", "/nothing": "tutti/not-found", "/": "tutti/not-found",
		} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				if status, answer, err := e.try(method, root(e)+path, "{}"); err != nil || status != http.StatusNotFound || answer["kind"] != kind || answer["msg"] == "" {
					t.Errorf("%s %s%s: %d %v, %v; want 404 %s", method, root(e), path, status, answer, err, kind)
				}
			}
		}
	}
}
