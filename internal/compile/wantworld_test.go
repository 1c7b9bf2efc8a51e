package compile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// tree is made-up code: files by name. A node reads site.pp, the file of its role, and
// what that says: words after "fact" are facts, "export" exports the fact addr,
// "collect" collects what others export, "chase" exports what it collected, one more.
type tree map[string]string

func (t tree) digest() fleet.Digest {
	text, _ := json.Marshal(t) // sorts by name
	return fleet.DigestOf(text)
}

// fleetWorld is a dispatcher and a wanter over a fake store, with nodes, code, groups
// and exported resources that a test changes.
type fleetWorld struct {
	*world
	wanter    *compile.Wanter
	reuser    *compile.Reuser
	inventory *compiletest.Inventory

	mu        sync.Mutex
	trees     map[fleet.Digest]tree
	code      tree
	revision  int64
	given     map[fleet.Certname]string
	released  map[fleet.Certname]bool
	newest    map[fleet.Certname]string // what the newest catalog was made of
	exported  map[fleet.Certname]string
	compiled  map[fleet.Certname]string // what the last compilation was made of
	savedBy   map[fleet.Certname]int64
	ended     map[fleet.Certname]time.Time // when that was
	total     int
	needless  []string
	braking   bool
	digests   map[fleet.Certname]fleet.Digest // of the newest catalogs
	following atomic.Bool
	ahead     atomic.Bool
	refresh   atomic.Int64 // a time.Duration
	slower    atomic.Int64 // a time.Duration, by which compilations take longer
}

// pause lets nothing compile until resume.
func (w *fleetWorld) pause(t *testing.T) {
	t.Helper()
	if err := w.queue.Pause(t.Context(), compile.Pause{Environment: production, By: "alice", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
}

func (w *fleetWorld) resume(t *testing.T) {
	t.Helper()
	if err := w.queue.Resume(t.Context(), production); err != nil {
		t.Fatal(err)
	}
}

func newFleetWorld(t fataler) *fleetWorld {
	t.Helper()
	w := &fleetWorld{
		world: newWorld(t), inventory: compiletest.NewInventory(), trees: map[fleet.Digest]tree{}, given: map[fleet.Certname]string{},
		released: map[fleet.Certname]bool{}, newest: map[fleet.Certname]string{}, exported: map[fleet.Certname]string{},
		compiled: map[fleet.Certname]string{}, ended: map[fleet.Certname]time.Time{}, savedBy: map[fleet.Certname]int64{},
		digests: map[fleet.Certname]fleet.Digest{},
	}
	w.ahead.Store(true)
	w.following.Store(true)
	orders := compile.Orders{Inputs: w.facts, Classifier: w}
	w.reuser = compile.NewReuser(compile.ReuserParts{
		Store: w.queue.Reusables, Queue: w.queue, Orders: orders, Inventory: w.inventory, Versions: w, Documents: w.docs, Results: w, Engine: w.compiler.Engine,
		Wake: func() { w.dispatcher.Wake() }, VolatileTTL: func() time.Duration { return time.Hour }, CheckOneIn: func() int { return 0 },
	})
	w.dispatcher.Orders, w.dispatcher.Reuser, w.dispatcher.Results = orders, w.reuser, w
	w.service.Reuser = w.reuser
	w.compiler.Play(w.compile)
	w.deploy(tree{"site.pp": "1"})
	w.reopen(t, nil)
	return w
}

// reopen makes a new wanter, as after a crash.
func (w *fleetWorld) reopen(t fataler, log io.Writer) {
	t.Helper()
	parts := compile.WanterParts{
		Store: w.queue.Wants, Standings: w.queue.Wants, Readings: w.queue.Wants, Reuser: w.reuser, Environments: w.versions, Grouping: w, Modes: w,
		Wake:  func() { w.dispatcher.Wake() },
		Ahead: func() bool { return w.ahead.Load() }, Follow: func() bool { return w.following.Load() }, OnSign: func() bool { return true },
		RefreshAfter: func() time.Duration { return time.Duration(w.refresh.Load()) },
	}
	if log != nil {
		parts.Log = slog.New(slog.NewTextHandler(log, nil))
	}
	cfg := compile.DefaultWanter()
	cfg.Batch = 3 // steps are cut as for many nodes
	var err error
	if w.wanter, err = compile.NewWanter(parts, cfg); err != nil {
		t.Fatalf("%v", err)
	}
}

// start runs both; stop ends them.
func (w *fleetWorld) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := w.world.start(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = w.wanter.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
		ended()
	}
}

// deploy makes a version of files the current one.
func (w *fleetWorld) deploy(files tree) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.code == nil {
		w.code = tree{}
	}
	maps.Copy(w.code, files)
	kept := maps.Clone(w.code)
	w.trees[kept.digest()] = kept
	w.versions.Set(production, kept.digest())
}

// set gives a node facts.
func (w *fleetWorld) set(node fleet.Certname, facts map[string]string) {
	text, _ := json.Marshal(facts)
	w.facts.Set(node, string(text))
	w.queue.SetHome(node, production)
	w.wanter.Hint()
}

// group changes what groups give a node.
func (w *fleetWorld) group(node fleet.Certname, given string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.given[node] = given
	w.revision++
}

// made is what a node's catalog is made of: what it reads, as one text, and what it
// exports. An error is code that does not compile.
func (w *fleetWorld) made(node fleet.Certname, code tree, facts map[string]string, given string,
	hosts []compile.Exported,
) (text, exports string, reads compile.Reads, err error) {
	file := "roles/" + facts["role"] + ".pp"
	reads.Sources.Files = []string{file, "site.pp"}
	reads.Values = []string{"/facts/role"}
	lines := []string{"site " + code["site.pp"], "role " + facts["role"] + " " + code[file], "given " + given}
	words := strings.Fields(code[file])
	for i, word := range words {
		switch word {
		case "fact":
			reads.Values = append(reads.Values, "/facts/"+words[i+1])
			lines = append(lines, words[i+1]+" "+facts[words[i+1]])
		case "export":
			reads.Values = append(reads.Values, "/facts/addr")
			lines = append(lines, "addr "+facts["addr"])
			exports = facts["addr"]
		case "collect", "chase":
			rows, _ := compile.EncodeExported(hosts)
			lines = append(lines, "hosts "+string(rows))
			if word == "chase" {
				exports = fmt.Sprint(len(rows), " ", len(string(fleet.DigestOf(rows))), fleet.DigestOf(rows))
			}
		case "broken":
			return "", "", reads,
				&compile.Error{Cause: compile.CauseCode, Message: "broken for " + string(node) + ", forever on node " + string(node), File: file, Line: 1}
		}
	}
	return strings.Join(lines, "\n"), exports, reads, nil
}

const hostCollector = `{"type":"Host","filter":null}`

func (w *fleetWorld) hosts(ctx context.Context, node fleet.Certname) []compile.Exported {
	found, _ := w.inventory.Exported(ctx, compile.Collector{Node: node, Type: "Host", MaxBytes: 1 << 20})
	return found
}

// compile is the made-up compiler. It takes a moment.
func (w *fleetWorld) compile(ctx context.Context, o compile.Order) (compile.Outcome, error) {
	hosts := w.hosts(ctx, o.Node)
	w.mu.Lock()
	before, known := w.compiled[o.Node], w.ended[o.Node].Before(time.Now())
	w.mu.Unlock()
	<-time.After(100*time.Millisecond + time.Duration(w.slower.Load()))
	var facts map[string]string
	if err := json.Unmarshal(o.Facts, &facts); err != nil {
		return compile.Outcome{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	text, exports, reads, err := w.made(o.Node, w.trees[o.Version], facts, string(o.Classes), hosts)
	w.total++
	if err != nil {
		return compile.Outcome{}, err
	}
	if known && before == text { // what overlaps cannot know
		w.needless = append(w.needless, string(o.Node)+": "+text)
	}
	w.compiled[o.Node], w.ended[o.Node] = text, time.Now()
	body, _ := json.Marshal(text)
	out := compile.Outcome{Reads: &reads, Catalog: fmt.Appendf(nil, `{"resources":[{"type":"Notify","title":%s,"exported":false}]}`, body)}
	if strings.Contains(text, "\nhosts ") {
		rows, _ := compile.EncodeExported(hosts)
		out.Asked = []compile.Question{{Kind: compile.AskedCollect, Text: hostCollector, Rows: len(hosts), Answer: fleet.DigestOf(rows)}}
	}
	if exports != "" {
		out.Exported = fmt.Appendf(nil, `[{"type":"Host","title":%q,"exported":true,"parameters":{"ip":%q}}]`, o.Node, exports)
	}
	return out, nil
}

// Held implements compile.Results.
func (w *fleetWorld) Held(_ context.Context, c compile.Compilation) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.braking && c.Catalog != w.digests[c.Node]
	if !held {
		w.queue.SetHeld(c.Node, false)
	}
	return held, nil
}

// brake holds each catalog that is another than its node's, or none.
func (w *fleetWorld) brake(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.braking = on
}

func (w *fleetWorld) newestOf(node fleet.Certname) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.newest[node]
}

// SaveCatalog implements compile.Results.
func (w *fleetWorld) SaveCatalog(ctx context.Context, r compile.Result) error {
	exported, catalog, err := catalog.Split(r.Document)
	if err != nil {
		return err
	}
	var read struct{ Resources []struct{ Title string } }
	var offered []struct {
		Title      string
		Parameters json.RawMessage
	}
	if err := json.Unmarshal(catalog, &read); err != nil {
		return err
	}
	if err := json.Unmarshal(exported, &offered); err != nil {
		return err
	}
	var resources []compiletest.Resource
	for _, o := range offered {
		resources = append(resources, compiletest.Resource{Type: "Host", Title: o.Title, Exported: true, Parameters: o.Parameters})
	}
	node := r.Compilation.Node
	if held, _ := w.Held(ctx, r.Compilation); held {
		w.queue.SetHeld(node, true)
		return compile.ErrHeld
	}
	w.mu.Lock()
	w.digests[node] = r.Compilation.Catalog
	if r.Compilation.ID < w.savedBy[node] { // an earlier one changes nothing
		w.mu.Unlock()
		return nil
	}
	w.savedBy[node] = r.Compilation.ID
	w.inventory.Replace(node, resources...)
	changed := w.exported[node] != string(exported)
	w.exported[node], w.newest[node] = string(exported), read.Resources[0].Title
	w.mu.Unlock()
	if changed {
		w.queue.Note(compile.ExportsChanged, node, "Host")
	}
	return nil
}

// Changes implements compile.Differ.
func (w *fleetWorld) Changes(_ context.Context, _ fleet.Environment, from, to fleet.Digest) (*compile.Changes, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	older, newer := w.trees[from], w.trees[to]
	if older == nil || newer == nil {
		return nil, fault.New(fault.NotFound, "no such version")
	}
	c := &compile.Changes{Files: map[string]bool{}}
	for _, side := range []tree{older, newer} {
		for name := range side {
			if older[name] != newer[name] {
				c.Files[name] = true
			}
		}
	}
	return c, nil
}

// Classify implements compile.Classifier.
func (w *fleetWorld) Classify(_ context.Context, node fleet.Certname, _ fleet.Environment, _, _ json.RawMessage) (compile.Classification, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.given[node] == "" {
		return compile.Classification{}, nil
	}
	return compile.Classification{Classes: fmt.Appendf(nil, `{%q:{}}`, w.given[node])}, nil
}

// Revision implements compile.Grouping.
func (w *fleetWorld) Revision(context.Context) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.revision, nil
}

// Facts implements compile.Grouping.
func (w *fleetWorld) Facts(context.Context) ([]string, error) { return nil, nil }

// Environment implements compile.Grouping.
func (w *fleetWorld) Environment(_ context.Context, _ fleet.Certname, otherwise fleet.Environment) (fleet.Environment, error) {
	return otherwise, nil
}

// InReleased implements compile.Modes.
func (w *fleetWorld) InReleased(_ context.Context, nodes []fleet.Certname) (map[fleet.Certname]bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[fleet.Certname]bool{}
	for _, node := range nodes {
		found[node] = w.released[node]
	}
	return found, nil
}

// settle waits until nothing moves any more.
func (w *fleetWorld) settle() { <-time.After(5 * time.Minute) }

// stale lists the nodes in live mode whose newest catalog is not what a fresh
// compilation gives; those whose code does not compile are left out.
func (w *fleetWorld) stale() (wrong []string) {
	for _, node := range []fleet.Certname{"a", "b", "c", "d", "e"} {
		raw, _, err := w.facts.Facts(context.Background(), node)
		if err != nil {
			continue
		}
		var facts map[string]string
		_ = json.Unmarshal(raw, &facts)
		hosts := w.hosts(context.Background(), node)
		given, _ := w.Classify(context.Background(), node, production, nil, nil)
		w.mu.Lock()
		text, _, _, err := w.made(node, w.code, facts, string(given.Classes), hosts)
		if err == nil && !w.released[node] && w.newest[node] != text {
			wrong = append(wrong, fmt.Sprintf("%s has %q, fresh is %q", node, w.newest[node], text))
		}
		w.mu.Unlock()
	}
	return wrong
}

// count is how many compilations there were since it was called last.
func (w *fleetWorld) counted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.total
	w.total = 0
	return n
}
