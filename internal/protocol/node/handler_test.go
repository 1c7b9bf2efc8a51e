package node_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/deliver/delivertest"
	"github.com/tutti-project/tutti/internal/fleet"
	nodeapi "github.com/tutti-project/tutti/internal/protocol/node"
)

// bench is a handler with one node that is in released mode, and one in live mode.
type bench struct {
	*nodeapi.Handler
	store    *delivertest.Fake
	delivery *deliver.Service
	blobs    map[string]fleet.Digest
}

func newBench(tb testing.TB) *bench {
	tb.Helper()
	b := &bench{store: delivertest.New(), blobs: map[string]fleet.Digest{}}
	b.delivery = deliver.NewService(deliver.Parts{
		Store: b.store, Groups: new(delivertest.Groups), Promoter: new(delivertest.Shown), Setting: func() deliver.Mode { return deliver.Live },
	})
	blobs := castest.New()
	for _, text := range []string{"one", "two", "three", "small"} {
		body := strings.Repeat(text+" ", 1000)
		if text == "small" {
			body = text
		}
		digest, _, err := blobs.Put(context.Background(), strings.NewReader(body))
		if err != nil {
			tb.Fatal(err)
		}
		b.blobs[text] = digest
	}
	b.Handler = nodeapi.New(nodeapi.Config{
		Deliveries: b.delivery, Blobs: blobs, RequestID: func(context.Context) string { return "req-1" }, Log: slog.New(slog.DiscardHandler),
	})
	b.store.Gave("web-1", b.catalog("one"), 1)
	b.store.Gave("db-1", b.catalog("three"), 1)
	return b
}

func (b *bench) catalog(text string) deliver.Catalog {
	c := delivertest.CatalogOf(text)
	c.Digest = b.blobs[text]
	return c
}

// call asks as a node; an empty name is nobody.
func (b *bench) call(node, path string, headers ...string) *httptest.ResponseRecorder {
	actor := fleet.Actor{Kind: fleet.Anonymous}
	if node != "" {
		actor = fleet.Actor{Kind: fleet.NodeActor, Name: node}
	}
	r := httptest.NewRequest(http.MethodGet, nodeapi.Prefix+path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r.WithContext(fleet.WithActor(r.Context(), actor)))
	return w
}

func (b *bench) released(t *testing.T, text string) {
	t.Helper()
	if _, err := b.delivery.SetMode(t.Context(), deliver.ModeSet{Node: "web-1", Mode: deliver.Released}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.delivery.Release(t.Context(), "web-1", deliver.Order{Catalog: b.catalog(text), By: "ann"}, ""); err != nil {
		t.Fatal(err)
	}
}

func TestPointer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.call("web-1", "/catalog")
	var p deliver.Pointer
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusOK || p.Mode != deliver.Live || p.Catalog != b.blobs["one"] ||
		p.UUID != "uuid-of-one" {
		t.Fatalf("%d %s, %v", w.Code, w.Body, err)
	}
	tag := w.Header().Get("Etag")
	if again := b.call("web-1", "/catalog", "If-None-Match", tag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("asked again: %d %s", again.Code, again.Body)
	}
	b.released(t, "two")
	w = b.call("web-1", "/catalog", "If-None-Match", tag)
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusOK || p.Generation != 2 || p.Mode != deliver.Released ||
		p.Catalog != b.blobs["two"] {
		t.Errorf("after a release: %d %s, %v", w.Code, w.Body, err)
	}
	if w := b.call("new-1", "/catalog"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "new-1") {
		t.Errorf("of a node without a catalog: %d %s", w.Code, w.Body)
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.released(t, "two")
	b.store.Gave("web-1", b.catalog("small"), 1) // staged, say
	for text, want := range map[string]int{"one": http.StatusOK, "two": http.StatusOK, "three": http.StatusNotFound, "small": http.StatusNotFound} {
		w := b.call("web-1", "/catalogs/"+string(b.blobs[text]))
		if w.Code != want || want == http.StatusOK && fleet.DigestOf(w.Body.Bytes()) != b.blobs[text] {
			t.Errorf("%s: %d, want %d", text, w.Code, want)
		}
	}
	path := "/catalogs/" + string(b.blobs["two"])
	w := b.call("web-1", path, "Accept-Encoding", "br, gzip")
	unpacked, err := gzip.NewReader(w.Body)
	if err != nil || w.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("with gzip: %v %v", w.Header(), err)
	}
	body, err := io.ReadAll(unpacked)
	if err != nil || fleet.DigestOf(body) != b.blobs["two"] {
		t.Errorf("unpacked: %d bytes, %v", len(body), err)
	}
	for _, accept := range []string{"gzip", "", "gzip;q=0"} {
		if w := b.call("web-1", path, "If-None-Match", w.Header().Get("Etag"), "Accept-Encoding", accept); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
			t.Errorf("asked again with %q: %d", accept, w.Code)
		}
	}
	if w := b.call("db-1", "/catalogs/"+string(b.blobs["three"])); w.Code != http.StatusOK {
		t.Errorf("a live node's own: %d", w.Code)
	}
}

func TestWhoIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for path, want := range map[string]int{
		"/catalog":                            http.StatusForbidden,
		"/catalogs/" + string(b.blobs["one"]): http.StatusForbidden,
		"/other":                              http.StatusNotFound,
	} {
		w := b.call("", path)
		var p api.Problem
		if err := json.NewDecoder(bytes.NewReader(w.Body.Bytes())).Decode(&p); err != nil || w.Code != want || p.RequestID != "req-1" {
			t.Errorf("%s: %d %s, %v", path, w.Code, w.Body, err)
		}
	}
	if w := b.call("web-1", "/catalogs/none"); w.Code != http.StatusBadRequest {
		t.Errorf("no digest: %d", w.Code)
	}
}

// BenchmarkPointerUnchanged is a node that asks and has what it may have.
func BenchmarkPointerUnchanged(b *testing.B) {
	w := newBench(b)
	tag := w.call("web-1", "/catalog").Header().Get("Etag")
	for b.Loop() {
		if got := w.call("web-1", "/catalog", "If-None-Match", tag); got.Code != http.StatusNotModified {
			b.Fatal(got.Code)
		}
	}
}
