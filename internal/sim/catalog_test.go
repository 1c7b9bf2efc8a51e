package sim_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/sim"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// desk gives every node one catalog, and takes reports, but not the first one. As a server it knows a report that it has: an agent
// that is killed before it has read the answer leaves it to the next one.
type desk struct {
	*httptest.Server

	mu        sync.Mutex
	pointer   pxp.CatalogPointer // without a catalog: none yet
	documents map[string][]byte
	reports   map[string][]string // catalog_uuid by node
	texts     map[string]bool
	refused   int
	fetched   int // documents
}

func openDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{documents: map[string][]byte{}, reports: map[string][]string{}, texts: map[string]bool{}}
	d.Server = httptest.NewServer(http.HandlerFunc(d.answer))
	t.Cleanup(d.Close)
	return d
}

func (d *desk) answer(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := path.Base(r.URL.Path)
	switch {
	case r.Method == http.MethodPut && d.refused == 0:
		d.refused++
		http.Error(w, "not now", http.StatusServiceUnavailable)
	case r.Method == http.MethodPut:
		var report struct {
			UUID string `json:"catalog_uuid"`
		}
		text, _ := io.ReadAll(r.Body)
		if d.texts[string(text)] {
			return
		}
		d.texts[string(text)] = true
		_ = json.Unmarshal(text, &report)
		d.reports[name] = append(d.reports[name], report.UUID)
	case strings.HasPrefix(r.URL.Path, "/node/v1/catalogs/"):
		d.fetched++
		_, _ = w.Write(d.documents[name])
	case d.pointer.Catalog == "":
		http.NotFound(w, r)
	case r.Header.Get("If-None-Match") == d.pointer.UUID:
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("Etag", d.pointer.UUID)
		_, _ = w.Write(pxp.Data(d.pointer))
	}
}

func (d *desk) give(t *testing.T, nth int) pxp.CatalogPointer {
	t.Helper()
	document, digest, err := catalog.Normalise(fmt.Appendf(nil, `{"resources":[{"title":"%d"}]}`, nth), nil)
	if err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.documents[string(digest)] = document
	d.pointer = pxp.CatalogPointer{Mode: "live", Catalog: string(digest), Environment: "production", Version: "v", UUID: fmt.Sprint("u", nth)}
	return d.pointer
}

func (d *desk) reported(node string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.reports[node], " ")
}

// Nodes that are told of a catalog fetch it once, apply it when they are told to, and report it, whatever breaks.
func TestSimulatedNodesFollowHints(t *testing.T) {
	t.Parallel()
	h, d := open(t), openDesk(t)
	f := h.fleet(t, 3, func(c *sim.Config) { c.Catalogs = d.URL })
	names := sim.Names(3, "test")
	tell := func(p pxp.CatalogPointer, apply string, nodes ...string) {
		for _, node := range nodes {
			id := uuid.NewString()
			eventually(t, node+" took the hint", func() bool {
				h.order(node, id, wire.BlockingRequest, pxp.Request{
					Module: pxp.Catalog, Action: pxp.Changed, Params: pxp.Data(pxp.CatalogChange{CatalogPointer: p, Apply: apply}),
				})
				return strings.Contains(string(h.answers()[id].Data), `"results":{}`)
			})
		}
	}
	first := d.give(t, 1)
	tell(first, pxp.ApplyScheduled, names[0])
	tell(first, pxp.ApplyNow, names[1], names[2])
	for _, node := range names[1:] {
		eventually(t, node+" reports", func() bool { return d.reported(node) == "u1" })
	}
	f.Do(sim.Step{Kind: sim.Crash, Nodes: []int{1}})
	second := d.give(t, 2)
	tell(second, pxp.ApplyNow, names...)
	for node, want := range map[string]string{names[0]: "u2", names[1]: "u1 u2", names[2]: "u1 u2"} {
		eventually(t, node+" reports the second", func() bool { return d.reported(node) == want })
		var applied []string
		for _, a := range f.Recorder().Applied(node) {
			applied = append(applied, a.UUID)
		}
		if got := strings.Join(applied, " "); got != want {
			t.Errorf("%s applied %s, reported %s", node, got, want)
		}
	}
	ordered := uuid.NewString()
	h.order(names[0], ordered, wire.NonBlockingRequest, pxp.Request{
		Module: pxp.Puppet, Action: pxp.Run, NotifyOutcome: true, Params: pxp.Data(pxp.PuppetParams{Env: []string{}, Flags: []string{}}),
	})
	eventually(t, "an ordered run applies the catalog again", func() bool { return d.reported(names[0]) == "u2 u2" })
	last := f.Recorder().Applied(names[0])[1].Report
	eventually(t, "its results name its report", func() bool { return strings.Contains(string(h.answers()[ordered].Data), last) })
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fetched > 6 || d.refused != 1 {
		t.Errorf("%d documents were fetched, %d reports refused", d.fetched, d.refused)
	}
}
