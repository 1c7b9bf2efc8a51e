package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

// jobServer answers as a server with one job, 12, whose runs end as the test says.
type jobServer struct {
	t       *testing.T
	env     []string
	plan    api.JobPlan
	runs    []api.JobRun                // as they end
	output  map[string][]api.JobLine    // by node
	task    api.Task                    //
	modules map[string]api.ActionModule // of nodes, beside lamp
	pongs   []api.Pong
	lamp    api.ActionModule   // a module of nodes
	answers []api.ActionAnswer // to its action status
	calls   []api.ActionCall   // that are recorded
	kind    string             // of the job; empty: command
	refuse  *api.Problem       // of each start
	hold    chan struct{}      // the stream waits for it before it ends; may be nil
	mu      sync.Mutex
	ordered map[string]json.RawMessage // the last order of each kind, dry runs left out
	path    string                     // of the last question
	stopped bool
}

func newJobServer(t *testing.T) *jobServer {
	t.Helper()
	s := &jobServer{t: t, ordered: map[string]json.RawMessage{}, output: map[string][]api.JobLine{}}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"TUTTI_SERVER=" + server.URL, "TUTTI_CA_FILE=" + ca, "TUTTI_TOKEN=tutti_x", "HOME=" + dir, "TUTTI_DATA=" + dir}
	return s
}

// job is the job when its runs have ended.
func (s *jobServer) job() api.Job {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	end := at.Add(41 * time.Second)
	j := api.Job{
		ID: "12", Kind: cmp.Or(s.kind, "command"), Title: "uptime", State: "finished", Actor: "ann", CreatedAt: at, FinishedAt: &end, Nodes: len(s.runs),
		Counts: map[string]int{},
	}
	for _, r := range s.runs {
		j.Counts[r.State]++
		if r.State != "succeeded" {
			j.State = "failed"
		}
	}
	return j
}

func (s *jobServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, api.Prefix)
	switch {
	case r.Method == http.MethodPost && strings.HasPrefix(path, "/jobs/") && strings.Count(path, "/") == 2:
		s.order(w, r, strings.TrimPrefix(path, "/jobs/"))
	case path == "/jobs/12/rerun":
		s.order(w, r, "rerun")
	case path == "/jobs/12/stop":
		s.mu.Lock()
		s.stopped = true
		s.mu.Unlock()
		s.answer(w, s.job())
	case path == "/jobs/12":
		s.answer(w, s.job())
	case path == "/jobs/12/runs":
		s.answer(w, api.List[api.JobRun]{Items: s.runs})
	case path == "/jobs/12/events":
		s.events(w, r)
	case path == "/jobs/12/output":
		s.answer(w, api.List[api.JobLine]{Items: s.output[r.URL.Query().Get("node")]})
	case path == "/job-files":
		content, _ := io.ReadAll(r.Body)
		s.answer(w, api.JobUploaded{Digest: digestOf(content), Bytes: int64(len(content))})
	case path == "/environments/production/tasks/"+s.task.Name:
		s.answer(w, s.task)
	case path == "/environments/production/tasks":
		s.answer(w, api.List[api.Task]{Items: []api.Task{s.task, {Name: "other"}}})
	case path == "/jobs":
		s.answer(w, api.List[api.Job]{Items: []api.Job{s.job()}})
	case path == "/ping":
		text, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.ordered["ping"] = text
		s.mu.Unlock()
		s.answer(w, api.List[api.Pong]{Items: s.pongs})
	case s.modules[strings.TrimPrefix(path, "/actions/")].Module != "":
		s.answer(w, s.modules[strings.TrimPrefix(path, "/actions/")])
	case path == "/actions/"+s.lamp.Module:
		s.answer(w, s.lamp)
	case strings.HasPrefix(path, "/actions/") && strings.HasSuffix(path, "/ask"):
		s.ask(w, r)
	case path == "/calls":
		s.answer(w, api.List[api.ActionCall]{Items: s.calls})
	case len(s.calls) > 0 && path == "/calls/"+s.calls[0].ID:
		s.answer(w, s.calls[0])
	case path == "/nodes":
		s.answer(w, api.List[api.Node]{Items: []api.Node{{Name: "web-1"}, {Name: "web-2"}}})
	default:
		w.WriteHeader(http.StatusNotFound)
		s.answer(w, api.Problem{Kind: "not_found", Message: "nothing here: " + path})
	}
}

func (s *jobServer) order(w http.ResponseWriter, r *http.Request, kind string) {
	text, _ := io.ReadAll(r.Body)
	var common api.JobOrder
	_ = json.Unmarshal(text, &common)
	if common.DryRun {
		s.answer(w, api.JobStarted{Plan: s.plan})
		return
	}
	if s.refuse != nil {
		w.WriteHeader(map[string]int{"denied": 403, "invalid": 400, "conflict": 409}[s.refuse.Kind])
		s.answer(w, s.refuse)
		return
	}
	s.mu.Lock()
	s.ordered[kind] = text
	s.mu.Unlock()
	started := s.job()
	started.State, started.FinishedAt = "queued", nil
	s.answer(w, api.JobStarted{Job: &started, Plan: s.plan})
}

func (s *jobServer) ask(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.ordered["ask"], s.path = text, r.URL.Path
	s.mu.Unlock()
	events := []api.ActionEvent{{Asked: &api.ActionAsked{Module: "lamp", Nodes: len(s.answers), Action: s.lamp.Actions[1]}}} // the one that reads
	for _, a := range s.answers {
		events = append(events, api.ActionEvent{Answer: &a})
	}
	for _, e := range events {
		text, _ := json.Marshal(e)
		_, _ = fmt.Fprintf(w, "event: change\ndata: %s\n\n", text)
	}
	_, _ = fmt.Fprint(w, "event: end\ndata: {}\n\n")
}

func (s *jobServer) events(w http.ResponseWriter, r *http.Request) {
	for i, run := range s.runs {
		text, _ := json.Marshal(api.JobEvent{Number: int64(i + 1), Run: &run})
		_, _ = fmt.Fprintf(w, "event: change\ndata: %s\n\n", text)
	}
	_ = http.NewResponseController(w).Flush()
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-r.Context().Done():
			return
		}
	}
	ended := s.job()
	text, _ := json.Marshal(api.JobEvent{Number: int64(len(s.runs) + 1), Job: &ended})
	_, _ = fmt.Fprintf(w, "event: change\ndata: %s\n\nevent: end\ndata: {}\n\n", text)
}

func (s *jobServer) answer(w io.Writer, value any) {
	if err := json.NewEncoder(w).Encode(value); err != nil {
		s.t.Error(err)
	}
}

// order of a kind as it was sent.
func sentOrder[T any](t *testing.T, s *jobServer, kind string) (order T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := json.Unmarshal(s.ordered[kind], &order); err != nil {
		t.Fatalf("no order of a %s: %v", kind, err)
	}
	return order
}

// result is how a command ended.
type result struct {
	code     int
	out, err string
}

func (s *jobServer) tutti(ctx context.Context, in string, change func(*System), args ...string) result {
	var out, err bytes.Buffer
	system := System{In: strings.NewReader(in), Out: &out, Err: &err, Env: s.env, Completes: time.Minute}
	if change != nil {
		change(&system)
	}
	code := Run(ctx, args, system)
	return result{code, out.String(), err.String()}
}

// run makes runs for tests.
func run(node, state, reason, output string) api.JobRun {
	begun := time.Date(2026, 3, 1, 12, 0, 1, 0, time.UTC)
	ended := begun.Add(3 * time.Second)
	r := api.JobRun{Job: "12", Node: node, State: state, Reason: reason, StartedAt: &begun, FinishedAt: &ended}
	if output != "" {
		r.Output = api.JobRunOutput{Lines: strings.Count(output, "\n"), Bytes: int64(len(output)), Digest: digestOf([]byte(output))}
	}
	return r
}

func lines(node, stdout, stderr string) (list []api.JobLine) {
	for stream, text := range map[string]string{"stdout": stdout, "stderr": stderr} {
		for line := range strings.Lines(text) {
			list = append(list, api.JobLine{Node: node, Stream: stream, Number: len(list) + 1, Text: strings.TrimSuffix(line, "\n")})
		}
	}
	return list
}
