package agent

import (
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// hub is a server as far as a node asks it for catalogs.
type hub struct {
	*httptest.Server

	mu        sync.Mutex
	pointer   string // empty: none yet
	documents map[string][]byte
	status    int // instead of every answer; 0: none
	asked     []string
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{documents: map[string][]byte{}}
	h.Server = httptest.NewServer(http.HandlerFunc(h.answer))
	t.Cleanup(h.Close)
	return h
}

func (h *hub) answer(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	digest, isDocument := strings.CutPrefix(r.URL.Path, documentPath)
	tag := fmt.Sprintf("%q", fleet.DigestOf([]byte(h.pointer)))
	switch {
	case h.status != 0:
		http.Error(w, "out of order", h.status)
	case isDocument && h.documents[digest] != nil:
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(h.documents[digest])
		_ = z.Close()
	case isDocument || h.pointer == "":
		http.NotFound(w, r)
	case r.Header.Get("If-None-Match") == tag:
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("ETag", tag)
		_, _ = w.Write([]byte(h.pointer))
	}
}

// give lets the node have a catalog with a class of that name.
func (h *hub) give(t *testing.T, name string, generation int) (digest string) {
	t.Helper()
	document, sum, err := catalog.Normalise([]byte(`{"name":"web1","resources":[{"type":"Class","title":"`+name+`"}]}`), nil)
	must(t, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.documents[string(sum)] = document
	h.pointer = fmt.Sprintf(`{"mode":"released","catalog":%q,"environment":"production","version":"v%d","uuid":"u%d","generation":%d}`, sum, generation,
		generation, generation)
	return string(sum)
}

func (h *hub) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// requests are the last parts of the paths that were asked for since the last call.
func (h *hub) requests() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all, h.asked = h.asked, nil
	return all
}

func openTest(t *testing.T, dir string, servers ...string) *catalogs {
	t.Helper()
	c := &catalogs{dir: dir, node: "web1", servers: servers, client: http.DefaultClient, log: discard}
	must(t, c.open())
	return c
}

func wantRequests(t *testing.T, h *hub, want ...string) {
	t.Helper()
	if got := h.requests(); !slices.Equal(got, want) {
		t.Errorf("asked for %v, want %v", got, want)
	}
}

func TestCatalogIsFetchedAndKept(t *testing.T) {
	t.Parallel()
	ctx, h, dir := t.Context(), newHub(t), t.TempDir()
	c := openTest(t, dir, h.URL)
	if err := c.Refresh(ctx); fault.Of(err) != fault.NotFound || c.Current() != nil {
		t.Errorf("before there is a catalog: %v, %v", err, c.Current())
	}
	wantRequests(t, h, "catalog")
	first := h.give(t, "first", 1)
	must(t, c.Refresh(ctx))
	wantRequests(t, h, "catalog", first)
	must(t, c.Refresh(ctx))
	wantRequests(t, h, "catalog") // 304
	got := c.Current()
	if got.Digest != first || got.Node != "web1" || got.Environment != "production" || got.Version != "v1" || got.UUID != "u1" || !intact(got.Document, first) {
		t.Errorf("kept %+v", got)
	}

	h.set(func() { h.pointer = strings.Replace(h.pointer, `"v1"`, `"v1b"`, 1) }) // the same catalog, of another version
	must(t, c.Refresh(ctx))
	wantRequests(t, h, "catalog")
	if got := c.Current(); got.Version != "v1b" || got.Digest != first {
		t.Errorf("kept %+v", got)
	}

	again := openTest(t, dir, h.URL) // after a restart
	if diff := cmp.Diff(c.Current(), again.Current()); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	must(t, again.Refresh(ctx))
	wantRequests(t, h, "catalog")
}

func TestOldCatalogsAreForgotten(t *testing.T) {
	t.Parallel()
	ctx, h, dir := t.Context(), newHub(t), t.TempDir()
	c := openTest(t, dir, h.URL)
	must(t, os.WriteFile(filepath.Join(dir, newPrefix+"123"), []byte("half"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "plugins"), []byte("mark"), 0o600))
	var digests []string
	for n := range 5 {
		digests = append(digests, h.give(t, fmt.Sprint("role", n), n+1))
		must(t, c.Refresh(ctx))
	}
	h.give(t, "role3", 6) // and back
	h.requests()
	must(t, c.Refresh(ctx))
	wantRequests(t, h, "catalog") // it is still there
	entries, err := os.ReadDir(dir)
	must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	want := []string{currentName, digests[2] + ".json", digests[3] + ".json", digests[4] + ".json", "plugins"}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept files (-want +got):\n%s", diff)
	}
}

// What is damaged on the disk is noticed, and comes again.
func TestDamagedCatalogComesAgain(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(c *catalogs) error{
		"changed": func(c *catalogs) error { return os.WriteFile(c.Current().Document, []byte(`{}`), 0o600) },
		"gone":    func(c *catalogs) error { return os.Remove(c.Current().Document) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, h, dir := t.Context(), newHub(t), t.TempDir()
			c := openTest(t, dir, h.URL)
			digest := h.give(t, "role", 1)
			must(t, c.Refresh(ctx))
			h.requests()
			must(t, damage(c))
			must(t, c.Refresh(ctx))
			wantRequests(t, h, "catalog", digest)
			if !intact(c.Current().Document, digest) {
				t.Error("it is still damaged")
			}
		})
	}
	h, dir := newHub(t), t.TempDir()
	digest := h.give(t, "role", 1)
	must(t, os.WriteFile(filepath.Join(dir, currentName), []byte(`{"catalog":"../../etc/passwd"}`), 0o600))
	c := openTest(t, dir, h.URL)
	if c.Current() != nil {
		t.Errorf("a damaged pointer was believed: %+v", c.Current())
	}
	must(t, c.Refresh(t.Context()))
	if c.Current().Digest != digest {
		t.Errorf("kept %+v", c.Current())
	}
}

// Whatever a server does wrong, what is kept stays, and the reason is shown.
func TestServersThatAreWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wrong func(h *hub, digest string)
		want  string
		kind  fault.Kind
	}{
		"another document":      {func(h *hub, d string) { h.documents[d] = []byte(`{"exported":[],"catalog":{"resources":[]}}`) }, "another digest", fault.Invalid},
		"no document":           {func(h *hub, d string) { delete(h.documents, d) }, "no catalog", fault.Unavailable},
		"a document of nothing": {func(h *hub, _ string) { none(h) }, "is no catalog", fault.Invalid},
		"a pointer of nothing":  {func(h *hub, _ string) { h.pointer = `{"catalog":"x"}` }, "field catalog", fault.Invalid},
		"no JSON":               {func(h *hub, _ string) { h.pointer = `<html>` }, "cannot be used", fault.Invalid},
		"too much":              {func(h *hub, _ string) { h.pointer = strings.Repeat(" ", maxPointerBytes+1) }, "more than 65536 bytes", fault.Invalid},
		"busy":                  {func(h *hub, _ string) { h.status = http.StatusServiceUnavailable }, "out of order", fault.Unavailable},
		"no catalog any more":   {func(h *hub, _ string) { h.pointer = "" }, "no catalog for this node", fault.NotFound},
		"away":                  {func(h *hub, _ string) { go h.CloseClientConnections(); _ = h.Listener.Close() }, "cannot reach", fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			kept := openTest(t, t.TempDir(), h.URL)
			kept.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			h.give(t, "good", 1)
			must(t, kept.Refresh(t.Context()))
			before := kept.Current()
			other := h.give(t, "other", 2)
			h.set(func() { c.wrong(h, other) })
			err := kept.Refresh(t.Context())
			if fault.Of(err) != c.kind || !strings.Contains(fault.Detail(err), c.want) || kept.status().Problem != fault.Detail(err) {
				t.Errorf("got %v, problem %q", err, kept.status().Problem)
			}
			if diff := cmp.Diff(before, kept.Current()); diff != "" || !intact(before.Document, before.Digest) {
				t.Errorf("what is kept changed (-want +got):\n%s", diff)
			}
		})
	}
}

// none makes a pointer to a document that is what its digest says, and no catalog.
func none(h *hub) {
	digest := string(fleet.DigestOf([]byte("nothing")))
	h.documents[digest] = []byte("nothing")
	h.pointer = `{"mode":"live","catalog":"` + digest + `","environment":"e","version":"v","uuid":"u"}`
}

// The next server is asked when the first one is away; none at all is said so.
func TestCatalogFromTheNextServer(t *testing.T) {
	t.Parallel()
	h, away := newHub(t), httptest.NewServer(http.NotFoundHandler())
	away.Close()
	digest := h.give(t, "role", 1)
	c := openTest(t, t.TempDir(), away.URL, h.URL)
	must(t, c.Refresh(t.Context()))
	if c.Current().Digest != digest || c.status().Problem != "" || c.status().Asked == nil {
		t.Errorf("kept %+v, %+v", c.Current(), c.status())
	}
	if err := openTest(t, t.TempDir()).Refresh(t.Context()); fault.Of(err) != fault.NotFound {
		t.Errorf("without servers: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := c.Refresh(ended); err == nil {
		t.Error("a refresh outlived its context")
	}
}
