package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// reuseWorld is a server without its doors, a control repository with modules of
// Debian's, and a few nodes, all of which change.
type reuseWorld struct {
	t      *testing.T
	p      *parts
	orders compile.Orders
	fresh  *freshCompiler

	env, base string // the environment's directory, and that of real modules
	facts     map[fleet.Certname]map[string]any
	group     *classify.Group // the one that changes; nil: there is none
	version   fleet.Digest
	serial    int
	compiled  uint64 // compilations that the server did
	asked     int    // catalogs that nodes asked for
	failed    int    // of them, those that there were none of
}

var reuseNodes = []fleet.Certname{"db1.example", "mon1.example", "plain1.example", "web1.example", "web2.example"}

// realModules are copied from Debian's packages, so that they can be changed.
var realModules = []string{"concat", "inifile", "ntp", "stdlib"}

func newReuseWorld(t *testing.T) *reuseWorld {
	t.Helper()
	c := settings.Default()
	c.Data, c.CompileWorkers, c.MaxLoad, c.IdleLoad, c.CompileJIT, c.ReuseCheck = filepath.Join(t.TempDir(), "data"), 2, 0, 0, false, 0
	c.CatalogHoldBelow, c.CatalogWarnBelow = "off", "off" // a random change may leave no resource; that must be given, too
	p, err := open(t.Context(), c, newLogger(c, t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- p.ruby.Run(ctx) }()
	go func() { ended <- p.dispatch.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended, p.close()); err != nil {
			t.Error(err)
		}
	})
	w := &reuseWorld{
		t: t, p: p, fresh: newFreshCompiler(t, checkin.Questions{Asker: p.store.Queries}),
		env: filepath.Join(t.TempDir(), "env"), base: filepath.Join(t.TempDir(), "base"), facts: map[fleet.Certname]map[string]any{},
	}
	w.orders = compile.Orders{Inputs: asTold{p.store.Facts}, Classifier: checkin.Classes{Groups: p.groups}, ServerFacts: p.serverFacts()}
	for path, text := range reuseControlRepo {
		w.write(path, text)
	}
	w.write("environment.conf", "modulepath = modules:"+w.base+"\n")
	for _, name := range realModules {
		w.copyModule(name)
	}
	for _, node := range reuseNodes {
		host, _, _ := strings.Cut(string(node), ".")
		w.facts[node] = map[string]any{
			"role": strings.TrimRight(host, "0123456789"), "osfamily": "Debian", "operatingsystem": "Debian", "operatingsystemrelease": "12.11",
			"os": map[string]any{
				"family": "Debian", "name": "Debian",
				"release": map[string]any{"major": "12", "minor": "11", "full": "12.11"}, "distro": map[string]any{"codename": "bookworm"},
			},
			"networking": map[string]any{"hostname": host, "fqdn": string(node), "ip": "192.0.2." + fmt.Sprint(len(w.facts)+1), "mtu": 1500},
			"labels":     map[string]any{"rack": "a"}, "weight": 10, "uptime": "1 day", "memory": map[string]any{"free": 1}, "is_virtual": false,
			"id": "root", "path": "/usr/bin:/bin", "fqdn": string(node), "hostname": host, "kernel": "Linux", "clientversion": "7.23.0",
			"virtual": "physical", "puppetversion": "7.23.0", "ipaddress": "192.0.2.1",
		}
		w.saveFacts(node)
	}
	w.deploy()
	return w
}

func (w *reuseWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *reuseWorld) copyModule(name string) {
	from := filepath.Join("/usr/share/puppet/modules", name)
	if _, err := os.Stat(from); err != nil {
		w.t.Fatalf("no Puppet module %s here: make test-deps", name)
	}
	from, err := filepath.EvalSymlinks(from)
	w.must(err)
	w.must(filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".md") || strings.Contains(path, "/spec/") || strings.Contains(path, "/locales/") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			w.writeTo(filepath.Join(w.base, name, strings.TrimPrefix(path, from+"/")), string(text))
		}
		return err
	}))
}

func (w *reuseWorld) writeTo(path, text string) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte(text), 0o644))
}

func (w *reuseWorld) write(path, text string) { w.writeTo(filepath.Join(w.env, path), text) }

func (w *reuseWorld) exists(path string) bool {
	_, err := os.Stat(filepath.Join(w.env, path))
	return err == nil
}

func (w *reuseWorld) saveFacts(node fleet.Certname) {
	w.t.Helper()
	values, err := json.Marshal(w.facts[node])
	w.must(err)
	now := time.Now()
	_, _, err = w.p.store.Facts.SaveFacts(w.t.Context(), inventory.FactSet{
		Certname: node, Environment: "production", Values: values, ReceivedAt: now, Timestamp: now, Origin: inventory.Origin{ProducedAt: now},
	})
	w.must(err)
}

// deploy makes the directories the environment's version.
func (w *reuseWorld) deploy() {
	w.t.Helper()
	bundle, err := code.Build(w.t.Context(), w.env, code.BuildOptions{})
	w.must(err)
	_, err = bundle.Upload(w.t.Context(), w.p.blobs)
	w.must(err)
	v, err := w.p.library.Deploy(w.t.Context(), code.Deployment{
		Environment: "production", Manifest: bundle.Manifest,
		At: time.Now(), Actor: "test", Origin: "test",
	})
	w.must(err)
	w.version = v.ID
}

func (w *reuseWorld) trusted(node fleet.Certname) json.RawMessage {
	return fmt.Appendf(nil, `{"authenticated":"remote","certname":%q,"extensions":{},"external":{},"hostname":"x","domain":"example"}`, node)
}

// current is what each node is given now: a digest, or the word failed. Nodes ask
// again until nobody's catalog changes any more: some collect what others export.
func (w *reuseWorld) current() map[fleet.Certname]string {
	w.t.Helper()
	catalogs := map[fleet.Certname]string{}
	for range 6 {
		before := maps.Clone(catalogs)
		for _, node := range reuseNodes {
			w.serial++
			w.asked++
			answer, err := w.p.catalogs.Catalog(w.t.Context(), compile.Ask{
				Node: node, Environment: "production", Version: w.version, Trusted: w.trusted(node), Static: true,
				Transaction: fmt.Sprintf("t-%d", w.serial), Patience: 5 * time.Minute,
			})
			if failed := (*compile.Error)(nil); errors.As(err, &failed) {
				catalogs[node] = "failed"
				continue
			}
			w.must(err)
			catalogs[node] = string(answer.Compilation.Catalog)
		}
		if maps.Equal(before, catalogs) {
			break
		}
	}
	w.compiled = w.p.dispatch.Stats().Done
	return catalogs
}

// compiledFresh is what each node would be given if everything was compiled anew.
func (w *reuseWorld) compiledFresh() (catalogs map[fleet.Certname]string, documents map[fleet.Certname][]byte) {
	w.t.Helper()
	orders := make([]compile.Order, len(reuseNodes))
	for i, node := range reuseNodes {
		order, _, err := w.orders.Build(w.t.Context(), compile.Compilation{Node: node, Environment: "production", Version: w.version, Trusted: w.trusted(node)})
		w.must(err)
		orders[i] = order
	}
	root, release, err := w.p.trees.Path(w.t.Context(), w.version)
	w.must(err)
	defer release()
	results, err := w.fresh.compile(w.t.Context(), root, orders)
	w.must(err)
	catalogs, documents = map[fleet.Certname]string{}, map[fleet.Certname][]byte{}
	for i, result := range results {
		if result.failed != "" {
			catalogs[reuseNodes[i]] = "failed"
			w.failed++
			w.t.Logf("%s does not compile: %.200s", reuseNodes[i], result.failed)
			continue
		}
		inlined, _, err := inliner{w.p.library}.Inline(w.t.Context(), "production", w.version, result.outcome.Catalog)
		w.must(err)
		result.outcome.Catalog = inlined
		document, digest, err := catalog.Normalise(result.outcome.Catalog, result.outcome.Exported)
		w.must(err)
		catalogs[reuseNodes[i]], documents[reuseNodes[i]] = string(digest), document
	}
	return catalogs, documents
}

// check fails the test when a node's catalog is not what it should be.
func (w *reuseWorld) check(what string) bool {
	w.t.Helper()
	got := w.current()
	want, texts := w.compiledFresh()
	if maps.Equal(got, want) {
		return true
	}
	for _, node := range slices.Sorted(maps.Keys(want)) {
		if got[node] != want[node] {
			old, err := documents{w.p.blobs}.Document(w.t.Context(), fleet.Digest(got[node]))
			w.t.Errorf("after %s: %s is given %.12s, a fresh compilation gives %.12s; (%v) ours:\n%.4000s\nfresh:\n%.4000s", what,
				node, got[node], want[node], err, old, texts[node])
		}
	}
	return false
}
