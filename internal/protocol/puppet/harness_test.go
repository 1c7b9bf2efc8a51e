package puppet_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
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
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/filebucket/filebuckettest"
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
		Catalogs: b.catalogs, Environments: environments{}, Trust: trust{},
		Blobs: b.blobs, Facts: b.inventory, Reports: b.inventory, Bucket: b.bucket,
		PuppetVersion: "7.23.0", CompilerName: "tutti.example.org",
		Limits: puppet.Limits{Wait: time.Minute},
		Log:    slog.New(slog.NewTextHandler(b.logs, nil)),
		Now:    func() time.Time { return noon },
	}
	for _, change := range changes {
		change(&config)
	}
	b.Handler = puppet.New(config)
	return b
}

// catalogs answers every ask with one document, and remembers the asks.
type catalogs struct {
	mu     sync.Mutex
	asks   []puppet.Ask
	answer func(puppet.Ask) (puppet.Answer, error)
}

func (c *catalogs) Catalog(_ context.Context, ask puppet.Ask) (puppet.Answer, error) {
	c.mu.Lock()
	c.asks = append(c.asks, ask)
	answer := c.answer
	c.mu.Unlock()
	if answer != nil {
		return answer(ask)
	}
	return puppet.Answer{Document: json.RawMessage(`{"name":"` + string(ask.Node) + `"}`), Environment: ask.Environment}, nil
}

func (c *catalogs) last(t *testing.T) puppet.Ask {
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

func (environments) NodeEnvironment(_ context.Context, node fleet.Certname, requested fleet.Environment) (fleet.Environment, error) {
	switch {
	case requested != "" && requested != "production" && requested != "other":
		return "", fault.New(fault.NotFound, "there is no environment %s", requested)
	case strings.HasPrefix(string(node), "pinned-"):
		return "other", nil
	case requested == "":
		return "production", nil
	default:
		return requested, nil
	}
}

func (environments) ListEnvironments(context.Context) ([]puppet.EnvironmentSettings, error) {
	return []puppet.EnvironmentSettings{
		{Name: "production", ModulePath: []string{"/code/production/modules"}, Manifest: "/code/production/manifests"},
		{Name: "other"},
	}, nil
}

type trust struct{}

func (trust) Trusted(_ context.Context, node fleet.Certname, _ *x509.Certificate) (json.RawMessage, error) {
	return json.Marshal(map[string]any{"authenticated": "remote", "certname": node})
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

func withFacts(store inventory.FactStore) func(*puppet.Config) {
	return func(c *puppet.Config) { c.Facts = store }
}
