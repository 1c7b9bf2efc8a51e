package puppet_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/cas/filebucket/filebuckettest"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/inventory/inventorytest"
	"github.com/tutti-project/tutti/internal/protocol/puppet"
)

const web = "web-1.example.org"

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// bench is a handler over stores in memory and answers that a test sets.
type bench struct {
	http.Handler
	blobs     *castest.Store
	inventory *inventorytest.Fake
	bucket    *filebuckettest.Fake
	catalogs  *catalogs
	logs      *syncBuffer
}

// newBench makes a handler; each change may replace part of its configuration.
func newBench(tb testing.TB, changes ...func(*puppet.Config)) *bench {
	tb.Helper()
	b := &bench{
		blobs: castest.New(), inventory: inventorytest.New(), bucket: filebuckettest.New(),
		catalogs: &catalogs{}, logs: &syncBuffer{},
	}
	lib := newTrees(tb, b.blobs)
	config := puppet.Config{
		Trees: lib, Versions: lib.store,
		Checkin: b.catalogs, Places: environments{}, Environments: environments{},
		Blobs: b.blobs, Reports: b.inventory, Bucket: b.bucket,
		PuppetVersion: func() string { return "7.23.0" }, CompilerName: "tutti.example.org",
		Limits: puppet.Limits{Wait: time.Minute},
		Log:    slog.New(slog.NewTextHandler(b.logs, nil)),
		Now:    func() time.Time { return noon },
	}
	b.catalogs.Service = checkin.Service{
		Trust:        checkin.Trust{Authority: authority{}, External: func(context.Context, fleet.Certname) (json.RawMessage, error) { return nil, nil }},
		Environments: environments{}, Facts: b.inventory, Delivery: allLive{}, Server: config.CompilerName, Now: config.Now,
	}
	for _, change := range changes {
		change(&config)
	}
	b.Handler = puppet.New(config)
	return b
}

// catalogs is the flow, with one document as the answer to every visit; it remembers the visits.
type catalogs struct {
	checkin.Service
	mu     sync.Mutex
	asks   []checkin.Visit
	answer func(checkin.Visit) (checkin.Answer, error)
}

func (c *catalogs) Catalog(_ context.Context, ask checkin.Visit) (checkin.Answer, error) {
	c.mu.Lock()
	c.asks = append(c.asks, ask)
	answer := c.answer
	c.mu.Unlock()
	if answer != nil {
		return answer(ask)
	}
	return checkin.Answer{Document: json.RawMessage(`{"name":"` + string(ask.Node) + `"}`), Environment: ask.Environment}, nil
}

func (c *catalogs) last(t *testing.T) checkin.Visit {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asks) == 0 {
		t.Fatal("no catalog was asked for")
	}
	return c.asks[len(c.asks)-1]
}

// environments knows production and other; nodes named pinned-* get other.
type environments struct{}

func (environments) Of(_ context.Context, node fleet.Certname, requested fleet.Environment) (checkin.Place, error) {
	switch {
	case requested != "" && requested != "production" && requested != "other":
		return checkin.Place{}, fault.New(fault.NotFound, "there is no environment %s", requested)
	case strings.HasPrefix(string(node), "pinned-"):
		return checkin.Place{Environment: "other"}, nil
	case requested == "":
		return checkin.Place{Environment: "production"}, nil
	default:
		return checkin.Place{Environment: requested}, nil
	}
}

func (e environments) OrOwn(ctx context.Context, node fleet.Certname, requested fleet.Environment) (checkin.Place, error) {
	place, err := e.Of(ctx, node, requested)
	if err != nil {
		return e.Of(ctx, node, "")
	}
	return place, err
}

func (environments) ListEnvironments(context.Context) ([]puppet.EnvironmentSettings, error) {
	return []puppet.EnvironmentSettings{
		{Name: "production", ModulePath: []string{"/code/production/modules"}, Manifest: "/code/production/manifests"},
		{Name: "other"},
	}, nil
}

// authority has issued certificates to all nodes.
type authority struct{}

func (authority) Issued(_ context.Context, node fleet.Certname) (*x509.Certificate, error) {
	return &x509.Certificate{Subject: pkix.Name{CommonName: string(node)}}, nil
}

func (authority) Trusted(cert *x509.Certificate, _ json.RawMessage) (json.RawMessage, error) {
	return json.Marshal(map[string]any{"authenticated": "remote", "certname": cert.Subject.CommonName})
}

// allLive is a delivery of which nobody makes use.
type allLive struct{ checkin.Delivery }

func (allLive) Held(context.Context, fleet.Certname) (s deliver.Standing, ok bool, err error) {
	return s, false, nil
}

func (allLive) OnHold(context.Context, fleet.Certname) (l deliver.Loss, ok bool, err error) {
	return l, false, nil
}

// syncBuffer is a log that may be written to and read at once.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// asNode is who a node is after its certificate was checked.
func asNode(name string) fleet.Actor { return fleet.Actor{Kind: fleet.NodeActor, Name: name} }

// agentAccept is what a Puppet 7 agent accepts as a catalog.
const agentAccept = "application/vnd.puppet.rich+json, application/json, application/vnd.puppet.rich+pson, text/pson"

// want describes an answer; zero fields are not looked at.
type want struct {
	status  int
	body    string
	holds   string // a part of the body
	headers map[string]string
}

// send makes a request of web-1 (headers as "Name: value").
func (b *bench) send(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	return b.sendAs(asNode(web), method, target, strings.NewReader(body), headers...)
}

func (b *bench) sendAs(actor fleet.Actor, method, target string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, body)
	r.Header.Set("Accept", "*/*")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
		if value == "" {
			r.Header.Del(name)
		}
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r.WithContext(fleet.WithActor(r.Context(), actor)))
	return w
}

// check compares an answer with what was wanted.
func check(t *testing.T, w *httptest.ResponseRecorder, want want) {
	t.Helper()
	if want.status != 0 && w.Code != want.status {
		t.Errorf("status %d, want %d; body %.300s", w.Code, want.status, w.Body)
	}
	if want.body != "" && w.Body.String() != want.body {
		t.Errorf("body\n%s\nwant\n%s", w.Body, want.body)
	}
	if !strings.Contains(w.Body.String(), want.holds) {
		t.Errorf("body\n%.600s\ndoes not hold\n%s", w.Body, want.holds)
	}
	for name, value := range want.headers {
		if got := w.Header().Get(name); got != value {
			t.Errorf("header %s is %q, want %q", name, got, value)
		}
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write([]byte(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func gunzipped(t *testing.T, body io.Reader) string {
	t.Helper()
	r, err := gzip.NewReader(body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// missing tells whether content is not stored.
func (b *bench) missing(t *testing.T, content string) bool {
	t.Helper()
	missing, err := b.blobs.Missing(t.Context(), []fleet.Digest{fleet.DigestOf([]byte(content))})
	if err != nil {
		t.Fatal(err)
	}
	return len(missing) == 1
}

// values are the stored facts of web-1.
func (b *bench) values(t *testing.T) string {
	t.Helper()
	facts, err := b.inventory.Facts(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	return string(facts.Values)
}

// lose removes every blob.
func (b *bench) lose(t *testing.T) {
	t.Helper()
	nothing := func(fleet.Digest) bool { return false }
	if _, _, err := b.blobs.Sweep(t.Context(), nothing, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
}

// failing is a fact store that cannot.
type failing struct{ err error }

func (f failing) SaveFacts(context.Context, inventory.FactSet) (inventory.FactSet, []string, error) {
	return inventory.FactSet{}, nil, f.err
}

func (f failing) Facts(context.Context, fleet.Certname) (inventory.FactSet, error) {
	return inventory.FactSet{}, f.err
}

func (f failing) FactsAsTold(context.Context, fleet.Certname) (inventory.FactSet, error) {
	return inventory.FactSet{}, f.err
}

func (f failing) FactLeaves(context.Context, []fleet.Certname, []string) (map[fleet.Certname][]facts.Leaf, error) {
	return nil, f.err
}

// withFacts has facts stored elsewhere.
func withFacts(store inventory.FactStore) func(*puppet.Config) {
	return func(c *puppet.Config) { c.Checkin.(*catalogs).Facts = store }
}
