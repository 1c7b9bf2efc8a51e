package trace_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/event/trace"
	"github.com/tutti-project/tutti/internal/event/trace/tracetest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/release"
)

var (
	noon        = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	transaction = "0f0e0d0c-0b0a-4908-8706-050403020100"
	asTrace     = strings.ReplaceAll(transaction, "-", "")
)

// recorder is that of one server, which tells the collector all when told is called.
func recorder(t *testing.T, c *tracetest.Collector, server string, share float64) (r *trace.Recorder, told func()) {
	t.Helper()
	r, err := trace.Open(trace.Config{URL: c.URL, Share: share, Server: server, Version: "1", Installation: "AB:CD"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return r, r.Close
}

type source struct {
	answer compile.Answer
	err    error
}

func (s source) Catalog(context.Context, compile.Ask) (compile.Answer, error) { return s.answer, s.err }

// A run asks one server twice, and another one compiles: three steps of one trace, which the run's transaction_uuid names.
func TestOneCatalogOverTwoServers(t *testing.T) {
	c := tracetest.Start(t)
	a, toldA := recorder(t, c, "a", 1)
	b, toldB := recorder(t, c, "b", 1)
	ask := compile.Ask{Node: "web-1.test", Environment: "production", Transaction: transaction}
	row := compile.Compilation{
		ID: 7, Node: "web-1.test", Environment: "production", Transaction: transaction, Priority: compile.Waited, Attempts: 1,
		WantedAt: noon, FinishedAt: noon.Add(3 * time.Second), Cost: compile.Cost{Wall: 2 * time.Second, CPU: time.Second},
	}
	_, err := trace.Catalogs{Source: source{err: fault.Later(time.Second, "come back")}, Recorder: a}.Catalog(t.Context(), ask)
	if fault.RetryAfter(err) != time.Second {
		t.Errorf("what the source says is lost: %v", err)
	}
	b.Compiled(row)
	answer, err := trace.Catalogs{Source: source{answer: compile.Answer{Catalog: []byte("{}"), Compilation: row}}, Recorder: a}.Catalog(t.Context(), ask)
	if err != nil || string(answer.Catalog) != "{}" {
		t.Errorf("what the source says is lost: %v, %v", answer, err)
	}
	toldA()
	toldB()
	steps := c.Of(asTrace)
	if len(steps) != 4 {
		t.Fatalf("steps of %s: %+v; all: %+v", asTrace, steps, c.Steps())
	}
	by := map[string]tracetest.Step{}
	for _, s := range steps {
		by[s.Name+" "+s.About["tutti.result"]] = s
	}
	if s := by["catalog request told to come back"]; s.Server != "a" || s.Failed != "come back" || s.About["tutti.node"] != "web-1.test" {
		t.Errorf("the first question: %+v", s)
	}
	if s := by["catalog request stored"]; s.Server != "a" || s.Failed != "" || s.About["tutti.compilation"] != "7" {
		t.Errorf("the second question: %+v", s)
	}
	whole := by["compilation "]
	if whole.Server != "b" || !whole.Begin.Equal(noon) || whole.End.Sub(whole.Begin) != 3*time.Second || whole.Under != "" {
		t.Errorf("the compilation: %+v", whole)
	}
	if s := by["compile "]; s.Under != whole.ID || s.End.Sub(s.Begin) != 2*time.Second || s.About["tutti.cpu_ms"] != "1000" {
		t.Errorf("the compiler's time: %+v", s)
	}
}

type ledger struct {
	job.Store
	applied []job.Applied
	err     error
}

func (l ledger) Apply(context.Context, []job.Event) ([]job.Applied, error) { return l.applied, l.err }

// One server sends a job's order, another one takes the answer: both are parts of the job, whose end either may have seen.
func TestOneJobOverTwoServers(t *testing.T) {
	c := tracetest.Start(t)
	a, toldA := recorder(t, c, "a", 1)
	b, toldB := recorder(t, c, "b", 1)
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	j := job.Job{ID: 6, Spec: job.Spec{Kind: job.Puppet}, Status: job.Working, CreatedAt: at(0), Counts: job.Counts{job.Sent: 1}}
	run := job.Run{ID: "r", Job: 6, Node: "web-1.test", State: job.Sent, SentAt: at(1), Attempts: 1}
	apply := func(r *trace.Recorder, all ...job.Applied) {
		t.Helper()
		if got, err := (trace.Jobs{Store: ledger{applied: all}, Recorder: r}).Apply(t.Context(), nil); err != nil || len(got) != len(all) {
			t.Errorf("what the store says is lost: %v, %v", got, err)
		}
	}
	apply(a, job.Applied{Run: run, Job: j}, job.Applied{Verdict: job.Same, Run: run, Job: j})
	j.Status, j.FinishedAt, j.Counts, j.Reason = job.Failed, at(5), job.Counts{job.RunFailed: 1}, "1 of 1 failed"
	run.State, run.FinishedAt, run.Reason = job.RunFailed, at(5), "exit code 1"
	run.Puppet = &job.PuppetResult{Transaction: transaction}
	apply(b, job.Applied{Run: run, Job: j})
	toldA()
	toldB()
	steps := c.Steps()
	slices.SortFunc(steps, func(x, y tracetest.Step) int { return strings.Compare(x.Name, y.Name) })
	if len(steps) != 3 || steps[0].Name != "job" || steps[1].Name != "run" || steps[2].Name != "wait for its turn" {
		t.Fatalf("steps: %+v", steps)
	}
	whole := steps[0]
	if whole.Server != "b" || whole.Failed != "1 of 1 failed" || whole.End.Sub(whole.Begin) != 5*time.Second || whole.About["tutti.nodes"] != "1" {
		t.Errorf("the job: %+v", whole)
	}
	if s := steps[1]; s.Server != "b" || s.Failed != "exit code 1" || s.End.Sub(s.Begin) != 4*time.Second || !slices.Equal(s.With, []string{asTrace}) {
		t.Errorf("the run: %+v", s)
	}
	if s := steps[2]; s.Server != "a" || s.End.Sub(s.Begin) != time.Second {
		t.Errorf("the wait: %+v", s)
	}
	for _, s := range steps[1:] {
		if s.Trace != whole.Trace || s.Under != whole.ID {
			t.Errorf("%s is no part of the job: %+v", s.Name, s)
		}
	}
	if _, err := (trace.Jobs{Store: ledger{err: errors.New("no")}, Recorder: a}).Apply(t.Context(), nil); err == nil {
		t.Error("the store's error is lost")
	}
}

type shelf struct {
	release.Store
	saved release.Release
}

func (s shelf) SaveRelease(context.Context, release.Change) (release.Release, error) {
	return s.saved, nil
}

// A release's waves are parts of it, and name the jobs that they ordered. A step that is told twice is the same one.
func TestOneRelease(t *testing.T) {
	c := tracetest.Start(t)
	r, told := recorder(t, c, "a", 1)
	rel := release.Release{
		ID: 3, Kind: release.Forward, State: release.Running, Wave: 1, CreatedAt: noon, Counts: release.Counts{},
		Waves: []release.Wave{{Number: 1, Nodes: 2, Job: 6, StartedAt: noon.Add(time.Second), EndedAt: noon.Add(3 * time.Second)}, {Number: 2, Nodes: 5}},
	}
	save := func(rel release.Release) {
		t.Helper()
		if _, err := (trace.Releases{Store: shelf{saved: rel}, Recorder: r}).SaveRelease(t.Context(), release.Change{}); err != nil {
			t.Error(err)
		}
	}
	save(rel)
	rel.State, rel.EndedAt, rel.Reason = release.Aborted, noon.Add(4*time.Second), "somebody aborted it"
	save(rel)
	r.Compiled(compile.Compilation{ID: 1}) // without times: nothing to tell
	ended := job.Job{ID: 6, Status: job.Finished, CreatedAt: noon, FinishedAt: noon.Add(time.Second)}
	if _, err := (trace.Jobs{Store: ledger{applied: []job.Applied{{Job: ended}}}, Recorder: r}).Apply(t.Context(), nil); err != nil {
		t.Error(err)
	}
	told()
	waves, wholes, ordered := map[string]tracetest.Step{}, []tracetest.Step{}, ""
	for _, s := range c.Steps() {
		switch s.Name {
		case "wave":
			waves[s.ID] = s
		case "release":
			wholes = append(wholes, s)
		case "job":
			ordered = s.Trace
		}
	}
	if len(waves) != 1 || len(wholes) != 1 || wholes[0].Failed != "somebody aborted it" || wholes[0].About["tutti.state"] != "aborted" {
		t.Fatalf("waves %+v of %+v", waves, wholes)
	}
	for _, w := range waves {
		if w.Under != wholes[0].ID || w.Trace != wholes[0].Trace || !slices.Equal(w.With, []string{ordered}) || w.About["tutti.nodes"] != "2" {
			t.Errorf("the wave: %+v", w)
		}
	}
}

// All servers keep the same traces: those whose identity says so.
func TestAllServersKeepTheSameTraces(t *testing.T) {
	c := tracetest.Start(t)
	kept := map[string]map[string]bool{"a": {}, "b": {}}
	for server := range kept {
		r, told := recorder(t, c, server, 0.3)
		for id := range int64(1000) {
			r.Compiled(compile.Compilation{ID: id, WantedAt: noon, FinishedAt: noon.Add(time.Second)})
		}
		told()
	}
	for _, s := range c.Steps() {
		kept[s.Server][s.Trace] = true
	}
	if n := len(kept["a"]); n < 200 || n > 400 {
		t.Errorf("of 1000 traces %d are kept, not about 300", n)
	}
	for trace := range kept["a"] {
		if !kept["b"][trace] {
			t.Fatalf("%s is kept on one server only", trace)
		}
	}
	if len(kept["a"]) != len(kept["b"]) {
		t.Errorf("%d and %d traces are kept", len(kept["a"]), len(kept["b"]))
	}
}

// A collector that is away holds nobody up, and is spoken of once.
func TestTheCollectorIsAway(t *testing.T) {
	c := tracetest.Start(t)
	c.Refuse(true)
	var log bytes.Buffer
	r, err := trace.Open(trace.Config{URL: c.URL, Share: 1, Server: "a"}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for id := range int64(2000) { // some batches
		r.Compiled(compile.Compilation{ID: id, WantedAt: noon, FinishedAt: noon})
	}
	r.Close()
	if n := strings.Count(log.String(), "takes no traces"); n != 1 || !strings.Contains(log.String(), "503 Service Unavailable: not now") {
		t.Errorf("it is said %d times:\n%s", n, log.String())
	}
	var off *trace.Recorder // nobody wants traces
	off.Compiled(compile.Compilation{ID: 1, WantedAt: noon, FinishedAt: noon})
	off.Close()
}

// A collector that is silent holds up the end of a server for a moment, and is no reason for it to fail. A long error is cut.
func TestTheCollectorIsSilent(t *testing.T) {
	c := tracetest.Start(t)
	r, told := recorder(t, c, "a", 1)
	r.Compiled(compile.Compilation{ID: 1, WantedAt: noon, FinishedAt: noon, Err: &compile.Error{Message: strings.Repeat("é", 5000)}})
	told()
	if steps := c.Steps(); len(steps) != 1 || len(steps[0].Failed) > 1100 || !strings.HasPrefix(steps[0].Failed, "éé") || !utf8.ValidString(steps[0].Failed) {
		t.Errorf("a long error: %.2000v", steps)
	}
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(silent) })
	var log bytes.Buffer
	r, err := trace.Open(trace.Config{URL: server.URL, Share: 1, Server: "a"}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r.Compiled(compile.Compilation{ID: 1, WantedAt: noon, FinishedAt: noon})
	r.Close()
	if !strings.Contains(log.String(), "lost") {
		t.Errorf("that traces are lost is not said: %s", log.String())
	}
}

func TestWhereTracesGo(t *testing.T) {
	for url, says := range map[string]string{
		"collector:4318":                     "it is not http://HOST:PORT/v1/traces",
		"ftp://collector/v1/traces":          "it is not http://HOST:PORT/v1/traces",
		"https://":                           "it is not http://HOST:PORT/v1/traces",
		"https://me:secret@collector/traces": "it has a user or a password",
	} {
		_, err := trace.Open(trace.Config{URL: url, Share: 1}, slog.New(slog.DiscardHandler))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Detail(err), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if r, err := trace.Open(trace.Config{}, nil); r != nil || err != nil {
		t.Errorf("no collector: %v, %v", r, err)
	}
}
