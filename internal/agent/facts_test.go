package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/agent/facter"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/facts/factqueue/factqueuetest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/node"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// sampled is a node whose facts a test changes.
type sampled struct {
	mu     sync.Mutex
	values map[string]string // JSON by name
	asked  [][]string        // nil for all
	fails  bool
}

func (m *sampled) set(name, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[name] = value
}

func (m *sampled) answer(names []string) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, names)
	if m.fails {
		return nil, errors.New("Facter hangs")
	}
	values := map[string]json.RawMessage{}
	for name, value := range m.values {
		if names == nil {
			values[name] = json.RawMessage(value)
		}
	}
	for _, name := range names {
		if value, ok := m.values[name]; ok {
			values[name] = json.RawMessage(value)
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	canonical, _, err := facts.Canonical(text)
	return canonical, err
}

func (m *sampled) All(context.Context) (facter.Facts, error) {
	values, err := m.answer(nil)
	return facter.Facts{Values: values, Timestamp: time.Now(), Environment: "production"}, err
}

func (m *sampled) Some(_ context.Context, names []string) (json.RawMessage, error) {
	return m.answer(names)
}

// office is a server: its intake, and what came over the wire.
type office struct {
	store   *factqueuetest.Fake
	handler http.Handler
	mu      sync.Mutex
	watched []string
	away    bool
	late    int // answers of 503
	methods []string
}

func (o *office) Watched(context.Context, fleet.Certname) ([]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.watched, nil
}

// RoundTrip makes it the client's transport: no connections, so that time can be made to pass.
func (o *office) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	away, late := o.away, o.late > 0
	if late {
		o.late--
	}
	if !away && r.Method != http.MethodGet {
		o.methods = append(o.methods, r.Method)
	}
	o.mu.Unlock()
	w := httptest.NewRecorder()
	switch {
	case away:
		return nil, errors.New("connection refused")
	case late:
		w.Header().Set("Retry-After", "40")
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		o.handler.ServeHTTP(w, r.WithContext(fleet.WithActor(r.Context(), fleet.Actor{Kind: fleet.NodeActor, Name: "web-1"})))
	}
	return w.Result(), nil
}

func (o *office) seen() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := o.methods
	o.methods = nil
	return seen
}

func (o *office) stored(t *testing.T) string {
	t.Helper()
	facts, err := o.store.Facts(t.Context(), "web-1")
	must(t, err)
	return string(facts.Values)
}

func openOffice(t *testing.T) *office {
	t.Helper()
	o := &office{store: factqueuetest.NewFake()}
	service, err := factqueue.New(t.Context(), factqueue.Parts{Store: o.store, Inventory: o.store, Watch: o}, factqueue.Config{})
	must(t, err)
	o.handler = node.New(node.Config{Facts: service, RequestID: func(context.Context) string { return "" }, Log: discard})
	return o
}

func newTestFacts(t *testing.T, o *office, m *sampled, dir string) *submitter {
	t.Helper()
	f := &submitter{
		source: m, store: factsFile(filepath.Join(dir, "facts.json")), servers: []string{"https://away.test:8140", "https://tutti.test:8140"},
		client: &http.Client{Transport: transports{o}}, interval: 30 * time.Minute, watch: 5 * time.Minute, log: discard,
		wanted: newSignal(), back: newSignal(), turn: make(chan struct{}, 1), blind: map[string]int{},
	}
	f.kept = f.store.load(discard)
	return f
}

// transports knows two servers, of which the first is never there.
type transports struct{ *office }

func (s transports) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == "away.test:8140" {
		return nil, errors.New("no route to host")
	}
	return s.office.RoundTrip(r)
}

// living runs f until the test ends.
func living(t *testing.T, f *submitter) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestFactsAreSubmittedInTheirTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o, m := openOffice(t), &sampled{values: map[string]string{"a": "1", "os": `{"family":"Debian"}`}}
		f := newTestFacts(t, o, m, dir)
		living(t, f)
		synctest.Wait()
		same(t, "at once", []string{"PUT"}, o.seen())
		m.set("a", "2")
		pass(20 * time.Minute)
		same(t, "before it is time", []string(nil), o.seen())
		pass(15 * time.Minute)
		same(t, "after an interval", []string{"PATCH"}, o.seen())
		same(t, "stored", `{"a":2,"os":{"family":"Debian"}}`, o.stored(t))
		f.wanted.give()
		synctest.Wait()
		same(t, "when asked", []string{"PATCH"}, o.seen())
		// A run brings facts of its own: the difference does not fit any more.
		run := []byte(`{"a":3}`)
		_, err := o.store.SaveFacts(t.Context(), factqueue.Set{Node: "web-1", Values: run, Digest: fleet.DigestOf(run), AcceptedAt: time.Now()})
		must(t, err)
		m.set("a", "4")
		f.wanted.give()
		synctest.Wait()
		same(t, "after a run", []string{"PATCH", "PUT"}, o.seen())
		same(t, "stored", `{"a":4,"os":{"family":"Debian"}}`, o.stored(t))
		status := f.status()
		if status.Accepted == nil || status.Next == nil || status.Waiting || status.Problem != "" || status.Number == 0 {
			t.Errorf("status: %+v", status)
		}
	})
}

func TestWatchedFactsAreSubmittedSoon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o, m := openOffice(t), &sampled{values: map[string]string{"a": "1", "role": `"web"`, "os": `{"family":"Debian","up":1}`}}
		o.watched = []string{"/clientcert", "/os/family", "/role", "/"}
		living(t, newTestFacts(t, o, m, dir))
		synctest.Wait()
		same(t, "at once", []string{"PUT"}, o.seen())
		m.set("a", "2")
		m.set("os", `{"family":"Debian","up":2}`)
		pass(11 * time.Minute)
		same(t, "nothing watched changed", []string(nil), o.seen())
		same(t, "asked for", [][]string{nil, {"clientcert", "os", "role"}, {"clientcert", "os", "role"}}, m.asked)
		m.set("role", `"db"`)
		pass(6 * time.Minute)
		same(t, "a watched one changed", []string{"PATCH"}, o.seen())
		same(t, "stored", `{"a":2,"os":{"family":"Debian","up":2},"role":"db"}`, o.stored(t))
		o.mu.Lock()
		o.watched = []string{"/a"} // another catalog
		o.mu.Unlock()
		m.set("a", "3")
		pass(6 * time.Minute)
		same(t, "another one is watched", []string{"PATCH"}, o.seen())
	})
}

// blinking is a sampled on which a fact looks otherwise when it is asked for alone.
type blinking struct{ *sampled }

func (b blinking) Some(context.Context, []string) (json.RawMessage, error) {
	return json.RawMessage(`{"a":"alone"}`), nil
}

func TestALookThatIsWrongEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o, m := openOffice(t), &sampled{values: map[string]string{"a": "1"}}
		o.watched = []string{"/a"}
		f := newTestFacts(t, o, m, dir)
		f.interval, f.source = 24*time.Hour, blinking{m}
		living(t, f)
		pass(3 * time.Hour)
		same(t, "submissions", 1+blindAfter, len(o.seen()))
	})
}

func TestFactsWaitForTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o, m := openOffice(t), &sampled{values: map[string]string{"a": "1"}}
		o.away = true
		f := newTestFacts(t, o, m, dir)
		living(t, f)
		pass(2 * time.Hour)
		if status := f.status(); !status.Waiting || status.Problem == "" || status.Accepted != nil {
			t.Errorf("while the server is away: %+v", status)
		}
		m.set("a", "2")
		pass(34 * time.Minute)
		same(t, "what waits is replaced", `{"a":2}`, string(f.known()))
		f.wanted.give() // an interval begins: none ends in the minutes below
		synctest.Wait()
		o.mu.Lock()
		o.away, o.late = false, 1
		o.mu.Unlock()
		f.back.give()
		synctest.Wait()
		same(t, "a server that wants to be left alone", []string{"PUT"}, o.seen())
		pass(39 * time.Second)
		same(t, "still", []string(nil), o.seen())
		pass(6 * time.Minute)
		same(t, "then", []string{"PUT"}, o.seen())
		same(t, "stored", `{"a":2}`, o.stored(t))
	})
}

// Facts that are due meanwhile wait, too, when the server said when to come back.
func TestDueFactsLeaveTheServerAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o, m := openOffice(t), &sampled{values: map[string]string{"a": "1"}}
		o.late = 1
		f := newTestFacts(t, o, m, dir)
		living(t, f)
		synctest.Wait()
		same(t, "at first", []string{"PUT"}, o.seen())
		f.wanted.give()
		pass(39 * time.Second)
		same(t, "meanwhile", []string(nil), o.seen())
		pass(6 * time.Minute)
		same(t, "then", []string{"PUT"}, o.seen())
	})
}

// What an earlier agent submitted is the base of the next difference, unless it is lost; numbers grow though the
// clock goes back.
func TestAnAgentRemembersWhatItSubmitted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o, m := openOffice(t), &sampled{values: map[string]string{"a": "1"}}
		f := newTestFacts(t, o, m, dir)
		var a agenda
		f.resolve(t.Context(), &a)
		f.submit(t.Context(), &a)
		kept := f.keeping()
		kept.Number += int64(24 * time.Hour / time.Microsecond)
		_, err := o.store.SaveFacts(t.Context(), factqueue.Set{Node: "web-1", Number: kept.Number, Values: kept.Values, Digest: kept.Digest})
		must(t, err)
		again := newTestFacts(t, o, m, dir)
		if due := again.firstDue(time.Now()); time.Until(due) < 29*time.Minute {
			t.Errorf("after a restart facts are due at %s", due)
		}
		m.set("a", "2")
		again.resolve(t.Context(), &a)
		again.submit(t.Context(), &a)
		same(t, "the clock went back", []string{"PUT", "PATCH", "PUT"}, o.seen())
		same(t, "stored", `{"a":2}`, o.stored(t))
		must(t, write(string(again.store), []byte(`{"number":`), 0o600))
		lost := newTestFacts(t, o, m, dir)
		m.set("a", "3")
		lost.resolve(t.Context(), &a)
		lost.submit(t.Context(), &a)
		same(t, "what it submitted is lost", []string{"PUT", "PUT"}, o.seen())
		same(t, "stored", `{"a":3}`, o.stored(t))
		m.fails = true
		lost.resolve(t.Context(), &a)
		if status := lost.status(); status.Problem == "" || a.fails != 1 {
			t.Errorf("while Facter fails: %+v", status)
		}
	})
}

// outputs is a spool with the output of one run.
type outputs struct {
	orders.Spool
	stdout string
}

func (outputs) Save(orders.Record) error { return nil }

func (o outputs) Output(string) (orders.Output, error) {
	return orders.Output{Stdout: []byte(o.stdout)}, nil
}

func TestFactsFollowRunsThatChangedSomething(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		record orders.Record
		stdout string
		want   bool
	}{
		"changed":    {orders.Record{Module: pxp.Puppet, Status: orders.Success}, `{"status":"changed"}`, true},
		"failed":     {orders.Record{Module: pxp.Puppet, Status: orders.Failure}, `{"status":"failed"}`, true},
		"unchanged":  {orders.Record{Module: pxp.Puppet, Status: orders.Success}, `{"status":"unchanged"}`, false},
		"running":    {orders.Record{Module: pxp.Puppet, Status: orders.Running}, "", false},
		"delivered":  {orders.Record{Module: pxp.Puppet, Status: orders.Success, Notify: true, Delivered: true}, `{"status":"changed"}`, false},
		"runonce":    {orders.Record{Module: "puppet", Action: "runonce", Status: orders.Success}, `{"status":"changed"}`, true},
		"disable":    {orders.Record{Module: "puppet", Action: "disable", Status: orders.Success}, `{"status":"changed"}`, false},
		"no run":     {orders.Record{Module: pxp.Task, Status: orders.Success}, "", false},
		"not known":  {orders.Record{Module: pxp.Puppet, Status: orders.Undetermined}, "", true},
		"not wanted": {orders.Record{Module: pxp.Puppet, Status: orders.Success, Delivered: true}, `{"status":"changed"}`, true},
	} {
		s := afterRuns{outputs{stdout: c.stdout}, newSignal()}
		must(t, s.Save(c.record))
		if got := len(s.changed) == 1; got != c.want {
			t.Errorf("%s: submitted %v", name, got)
		}
	}
}
