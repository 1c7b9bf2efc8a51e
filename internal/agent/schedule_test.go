package agent

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/agent/connection"
	agentorders "github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/schedule"
	"github.com/tutti-project/tutti/internal/agent/schedule/scheduletest"
	"github.com/tutti-project/tutti/internal/fault"
	simulated "github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

func TestStateFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.json")
	scheduletest.StoreSuite(t, func() schedule.Store { return stateFile{path} })
	must(t, os.WriteFile(path, []byte("{"), 0o600))
	if _, err := (stateFile{path}).Load(); fault.Of(err) != fault.Invalid {
		t.Errorf("a damaged file: %v", err)
	}
}

// machine is a node whose Puppet runs are made up.
func machine(t *testing.T, m *simulated.Machine, c Config) func() runner {
	t.Helper()
	return func() runner {
		spool, programs := m.Boot()
		d := &daemon{Config: c, Options: Options{}, log: discard, catalogs: openTest(t, t.TempDir()), unsent: newSignal()}
		d.engine = agentorders.New(agentorders.Config{
			Spool: spool, Runner: programs, Log: discard,
			Modules: agentorders.Modules(agentorders.Node{OS: "linux", PuppetRun: []string{"/run"}, Catalog: d.catalogs.Current}),
		})
		must(t, d.engine.Start(t.Context()))
		t.Cleanup(d.engine.Close)
		return runner{d}
	}
}

func TestRunner(t *testing.T) {
	t.Parallel()
	m := &simulated.Machine{Program: func(string, agentorders.Command) simulated.Ending {
		return simulated.Ending{Stdout: `{"status":"unchanged","metrics":{}}`}
	}}
	open := machine(t, m, Default())
	scheduletest.RunnerSuite(t, func() schedule.Runner { return open() })
}

// What a run is started with: as the settings say, and from the catalog that is kept if there is one.
func TestRunFlags(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var orders []pxp.PuppetOrder
	m := &simulated.Machine{Program: func(_ string, c agentorders.Command) simulated.Ending {
		var o pxp.PuppetOrder
		if err := json.Unmarshal(c.Input, &o); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		orders = append(orders, o)
		return simulated.Ending{Stdout: `{"status":"changed","metrics":{},"catalog":"d","transaction_uuid":"u"}`}
	}}
	r := machine(t, m, Config{RunNoop: true})()
	must(t, r.Begin(t.Context(), "first"))
	if o, err := r.Await(t.Context(), "first"); err != nil || o != (schedule.Outcome{Status: schedule.Changed, Catalog: "d", UUID: "u"}) {
		t.Errorf("got %+v, %v", o, err)
	}
	h := newHub(t)
	digest := h.give(t, "role", 1)
	r.catalogs.servers, r.RunNoop = []string{h.URL}, false
	must(t, r.catalogs.Refresh(t.Context()))
	must(t, r.Begin(t.Context(), "second"))
	if _, err := r.Await(t.Context(), "second"); err != nil {
		t.Error(err)
	}
	if got := string(orders[0].Input); !strings.Contains(got, `["--no-splay","--noop"]`) || orders[0].Configuration.Catalog != nil {
		t.Errorf("without a catalog: %s, %+v", got, orders[0].Configuration)
	}
	if got := string(orders[1].Input); !strings.Contains(got, `["--no-splay","--use_cached_catalog"]`) || orders[1].Configuration.Catalog.Digest != digest {
		t.Errorf("with a catalog: %s, %+v", got, orders[1].Configuration)
	}
	select {
	case <-r.unsent:
	default:
		t.Error("nobody looks for a report that the run left")
	}
}

// A run that was ordered may leave a report, too, that no server took: it is delivered when the run is over, not at the next
// look ten minutes later.
func TestReportsAreLookedForAfterOrders(t *testing.T) {
	t.Parallel()
	d := &daemon{log: discard, unsent: newSignal()}
	var err error
	d.link, err = connection.New(connection.Config{
		URLs: []string{"wss://localhost:1"}, URI: wire.NewURI("web-1", agentType), Log: discard,
		TLS: func() (*tls.Config, error) { return &tls.Config{MinVersion: tls.VersionTLS12}, nil },
	})
	must(t, err)
	for messageType, want := range map[string]int{wire.ProvisionalResponse: 0, wire.BlockingResponse: 0, wire.NonBlockingResponse: 1} {
		_ = d.send(wire.Message{Type: messageType}) // nobody is there
		if len(d.unsent) != want {
			t.Errorf("after %s: %d, want %d", messageType, len(d.unsent), want)
		}
		for len(d.unsent) > 0 {
			<-d.unsent
		}
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	exit := 1
	for name, c := range map[string]struct {
		record agentorders.Record
		stdout string
		want   schedule.Outcome
	}{
		"unchanged": {
			agentorders.Record{}, `{"status":"unchanged","transaction_uuid":"u","catalog":"d"}`, schedule.Outcome{Status: schedule.Unchanged, UUID: "u", Catalog: "d"},
		},
		"noop": {
			agentorders.Record{}, `{"status":"unchanged","transaction_uuid":"u","pending":3}`, schedule.Outcome{Status: schedule.Unchanged, UUID: "u", Pending: 3},
		},
		"failed": {
			agentorders.Record{Status: agentorders.Failure},
			`{"status":"failed","transaction_uuid":"u","error_type":"agent_exit_non_zero","error":"code 1"}`,
			schedule.Outcome{Status: schedule.Failed, UUID: "u", Detail: "code 1"},
		},
		"another catalog": {
			agentorders.Record{}, `{"status":"changed","transaction_uuid":"u","error_type":"other_catalog","error":"other"}`, schedule.Outcome{
				Status: schedule.Failed, UUID: "u", Detail: "other",
			},
		},
		"disabled": {
			agentorders.Record{}, `{"status":"unknown","error_type":"agent_disabled","error":"disabled"}`, schedule.Outcome{
				Status: schedule.Disabled, Detail: "disabled",
			},
		},
		"locked": {
			agentorders.Record{}, `{"status":"unknown","error_type":"agent_locked","error":"locked"}`, schedule.Outcome{Status: schedule.NotDone, Detail: "locked"},
		},
		"no output": {agentorders.Record{Status: agentorders.Failure}, ``, schedule.Outcome{Status: schedule.NotDone, Detail: pxp.Vanished}},
		"ended by somebody": {
			agentorders.Record{Status: agentorders.Failure, Error: "cancelled: lunch"}, ``, schedule.Outcome{Status: schedule.NotDone, Detail: "cancelled: lunch"},
		},
	} {
		if got := outcomeOf(c.record, agentorders.Output{Exit: &exit, Stdout: []byte(c.stdout + "\n")}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A hint that says now lets the node run, once the catalog is there; the others do not.
func TestHints(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	runs := &scheduletest.Machine{}
	d := &daemon{Config: Default(), log: discard, catalogs: openTest(t, t.TempDir(), h.URL), changed: newSignal()}
	state := &scheduletest.Store{}
	must(t, state.Save(schedule.State{Began: time.Now()}))
	var err error
	d.schedule, err = schedule.New(schedule.Config{Interval: time.Hour}, runs, freshener{d}, state, discard)
	must(t, err)
	d.told(pxp.CatalogChange{Apply: pxp.ApplyScheduled})
	if d.applyNow.Load() {
		t.Error("a hint that says scheduled applies at once")
	}
	digest := h.give(t, "role", 1)
	d.told(pxp.CatalogChange{Apply: pxp.ApplyNow})
	go func() { _ = d.keepCatalogs(t.Context()) }()
	deadline := time.After(time.Minute)
	for {
		if s, _ := d.schedule.State(); !s.Told.IsZero() {
			break
		}
		select {
		case <-deadline:
			t.Fatal("nobody told the schedule")
		case <-time.After(5 * time.Millisecond):
		}
	}
	if got := d.catalogs.Current(); got == nil || got.Digest != digest {
		t.Errorf("kept %+v", got)
	}
}

// A server that fails once, long after the last question that went well, is asked again soon: the hint that was meant for now is not given again.
func TestAServerThatFailsOnceIsAskedAgainSoon(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	d := &daemon{Config: Default(), log: discard, catalogs: openTest(t, t.TempDir(), h.URL), changed: newSignal()}
	within := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.After(30 * time.Second); !holds(); {
			select {
			case <-deadline:
				t.Fatal(what)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	has := func(digest string) func() bool {
		return func() bool {
			got := d.catalogs.Current()
			return got != nil && got.Digest == digest
		}
	}
	first := h.give(t, "first", 1)
	d.changed.give()
	go func() { _ = d.keepCatalogs(t.Context()) }()
	within("there is no catalog", has(first))
	h.requests()
	h.set(func() { h.status = http.StatusServiceUnavailable })
	second := h.give(t, "second", 2)
	d.changed.give()
	within("nobody asks after the hint", func() bool { return len(h.requests()) > 0 })
	h.set(func() { h.status = 0 })
	within("the first catalog is still there", has(second))
}

func TestRunSettings(t *testing.T) {
	t.Parallel()
	for text, change := range map[string]func(*Config){
		"runs":                  func(c *Config) { c.Runs = "sometimes" },
		"run_interval":          func(c *Config) { c.RunInterval = time.Millisecond },
		"run_splay":             func(c *Config) { c.RunSplay = time.Hour },
		"catalog_poll_interval": func(c *Config) { c.CatalogPoll = 0 },
	} {
		c := Default()
		c.Servers = []string{"https://localhost:8140"}
		must(t, c.Check())
		change(&c)
		if err := c.Check(); fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// box is a server that takes reports.
func box(t *testing.T, status *int) (url string, got func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		text, _ := io.ReadAll(r.Body)
		all = append(all, r.Method+" "+r.URL.String()+" "+string(text))
		w.WriteHeader(*status)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(all) }
}

func TestReportsAreDeliveredLate(t *testing.T) {
	t.Parallel()
	status, dir := http.StatusServiceUnavailable, filepath.Join(t.TempDir(), "reports")
	address, got := box(t, &status)
	r := &reports{dir: dir, node: "web1", servers: []string{address}, client: http.DefaultClient, keep: time.Hour, log: discard}
	must(t, r.Deliver(t.Context())) // nothing there yet
	must(t, os.Mkdir(dir, 0o700))
	for n := range 3 {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-u.json", n)), fmt.Appendf(nil, `{"environment":"e%d"}`, n), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(dir, "4-u.json"), []byte(`damaged`), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, ".new-1"), []byte(`half`), 0o600))
	old := filepath.Join(dir, "0-u.json")
	must(t, os.Chtimes(old, time.Now(), time.Now().Add(-2*time.Hour)))
	if err := r.Deliver(t.Context()); fault.Of(err) != fault.Unavailable || r.Waiting() != 3 {
		t.Errorf("a server that does not take it: %v, %d wait", err, r.Waiting())
	}
	status = http.StatusOK
	must(t, r.Deliver(t.Context()))
	must(t, r.Deliver(t.Context()))
	want := []string{
		`PUT /puppet/v3/report/web1?environment=e1 {"environment":"e1"}`, // not taken
		`PUT /puppet/v3/report/web1?environment=e1 {"environment":"e1"}`, `PUT /puppet/v3/report/web1?environment=e2 {"environment":"e2"}`,
	}
	if diff := cmp.Diff(want, got()); diff != "" || r.Waiting() != 0 {
		t.Errorf("%d wait; sent (-want +got):\n%s", r.Waiting(), diff)
	}
	must(t, os.WriteFile(filepath.Join(dir, "5-u.json"), []byte(`{}`), 0o600))
	status = http.StatusBadRequest
	if err := r.Deliver(t.Context()); err != nil || r.Waiting() != 0 {
		t.Errorf("one that is never taken: %v, %d wait", err, r.Waiting())
	}
}

// crowded is a server that takes one report a minute.
type crowded struct {
	last time.Time
	got  []string
}

func (c *crowded) RoundTrip(r *http.Request) (*http.Response, error) {
	text, _ := io.ReadAll(r.Body)
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
	if wait := time.Minute - time.Since(c.last); wait > 0 {
		answer.StatusCode = http.StatusTooManyRequests
		answer.Header.Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
		return answer, nil
	}
	c.last = time.Now()
	c.got = append(c.got, string(text))
	return answer, nil
}

// A server that was away takes the reports that waited, each in its turn.
func TestReportsWaitTheirTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for n := range 3 {
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-u.json", n)), fmt.Appendf(nil, `{"environment":"e%d"}`, n), 0o600))
		}
		server, began := &crowded{}, time.Now()
		r := &reports{dir: dir, node: "web1", servers: []string{"https://s:8140"}, client: &http.Client{Transport: server}, keep: 1e6 * time.Hour, log: discard}
		must(t, r.Deliver(t.Context()))
		want := []string{`{"environment":"e0"}`, `{"environment":"e1"}`, `{"environment":"e2"}`}
		if diff := cmp.Diff(want, server.got); diff != "" || r.Waiting() != 0 || time.Since(began) != 2*time.Minute {
			t.Errorf("after %s, %d wait; sent (-want +got):\n%s", time.Since(began), r.Waiting(), diff)
		}
	})
}

func TestTooManyReports(t *testing.T) {
	t.Parallel()
	r := &reports{dir: t.TempDir(), keep: time.Hour, log: discard}
	for n := range maxReports + 5 {
		must(t, os.WriteFile(filepath.Join(r.dir, fmt.Sprintf("%06d-u.json", n)), nil, 0o600))
	}
	names, err := r.list(t.Context())
	if err != nil || len(names) != maxReports || names[0] != "000005-u.json" || !slices.IsSorted(names) || r.Waiting() != maxReports {
		t.Errorf("%d reports from %s, %v", len(names), names[0], err)
	}
}
