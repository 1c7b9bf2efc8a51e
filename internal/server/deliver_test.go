package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// deliverWorld is a server without its doors that compiles one small manifest.
type deliverWorld struct {
	*testing.T
	p        *parts
	releases catalogReleases
}

const heldNode fleet.Certname = "web-1.example"

func newDeliverWorld(t *testing.T, change ...func(*settings.Config)) *deliverWorld {
	t.Helper()
	c := settings.Default()
	c.Data, c.CompileWorkers, c.MaxLoad, c.CompileJIT, c.ReuseCheck = filepath.Join(t.TempDir(), "data"), 1, 0, false, 0
	for _, f := range change {
		f(&c)
	}
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
	w := &deliverWorld{t, p, p.catalogReleases()}
	w.facts(heldNode, "web")
	return w
}

func (w *deliverWorld) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *deliverWorld) facts(node fleet.Certname, role string) {
	w.Helper()
	now := time.Now()
	_, _, err := w.p.store.Facts.SaveFacts(w.Context(), inventory.FactSet{
		Certname: node, Environment: "production", Values: fmt.Appendf(nil, `{"role":%q,"clientversion":"7.23.0"}`, role), ReceivedAt: now, Timestamp: now,
		Origin: inventory.Origin{ProducedAt: now},
	})
	w.must(err)
}

// deploy makes the manifest production's code and returns the version.
func (w *deliverWorld) deploy(manifest string) fleet.Digest {
	w.Helper()
	return w.deployTree(map[string]string{"manifests/site.pp": manifest})
}

// deployTree makes files production's code and returns the version.
func (w *deliverWorld) deployTree(files map[string]string) fleet.Digest {
	w.Helper()
	return w.deployTo("production", files)
}

func (w *deliverWorld) deployTo(env fleet.Environment, files map[string]string) fleet.Digest {
	w.Helper()
	dir := w.TempDir()
	for path, text := range files {
		w.must(os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755))
		w.must(os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644))
	}
	bundle, err := code.Build(w.Context(), dir, code.BuildOptions{})
	w.must(err)
	_, err = bundle.Upload(w.Context(), w.p.blobs)
	w.must(err)
	v, err := w.p.library.Deploy(w.Context(), code.Deployment{Environment: env, Manifest: bundle.Manifest, At: time.Now(), Actor: "test", Origin: "test"})
	w.must(err)
	return v.ID
}

// manifest gives a node one resource.
func manifest(word string) string {
	return "notify { \"" + word + " on ${facts['role']}\": }\n"
}

// asks is what a stock agent is answered; text is the whole catalog, or the error.
func (w *deliverWorld) asks(node fleet.Certname) (answer checkin.Answer, text string) {
	w.Helper()
	trusted := fmt.Appendf(nil, `{"authenticated":"remote","certname":%q,"extensions":{},"external":{},"hostname":"web-1","domain":"example"}`, node)
	place, err := w.p.places.Of(w.Context(), node, "production")
	if err != nil {
		return answer, fault.Of(err).String() + ": " + fault.Detail(err)
	}
	answer, err = w.p.checkin.Catalog(w.Context(), checkin.Visit{
		Request: checkin.Request{Node: node, Requested: "production", Transaction: uuid.NewString(), Stays: true, Static: true},
		Place:   place, Trusted: trusted,
	})
	if err != nil {
		return answer, fault.Of(err).String() + ": " + fault.Detail(err)
	}
	return answer, string(answer.Document)
}

func (w *deliverWorld) gives(what string, node fleet.Certname, want string) checkin.Answer {
	w.Helper()
	answer, text := w.asks(node)
	if !strings.Contains(text, want) {
		w.Errorf("%s: %s is given %.400s; want %q", what, node, text, want)
	}
	return answer
}

// stage prepares a version until nothing is compiled any more.
func (w *deliverWorld) stage(version fleet.Digest, ticket string) deliver.Prepared {
	w.Helper()
	for {
		all, err := w.releases.Stage(w.Context(), []fleet.Certname{heldNode}, "", string(version)[:12], ticket)
		w.must(err)
		if all[0].State != deliver.Compiling {
			return all[0]
		}
		select {
		case <-w.Context().Done():
			w.Fatal("it never ended")
		case <-time.After(20 * time.Millisecond): // as the command line asks again
		}
	}
}

func (w *deliverWorld) release(p deliver.Prepared) deliver.Outcome {
	w.Helper()
	outcomes, err := w.releases.ReleaseAll(w.Context(), []deliver.Prepared{p}, deliver.Order{By: "ann", Why: "test"}, "")
	w.must(err)
	return outcomes[0]
}

func (w *deliverWorld) mode(m deliver.ModeSet) {
	w.Helper()
	_, err := w.p.deliver.SetMode(w.Context(), m)
	w.must(err)
}

func TestReleasedMode(t *testing.T) {
	t.Parallel()
	w := newDeliverWorld(t)
	one := w.deploy(manifest("one"))
	first := w.gives("live", heldNode, "one on web")
	w.mode(deliver.ModeSet{Node: heldNode, Mode: deliver.Released, By: "ann"})

	two := w.deploy(manifest("two"))
	compiled := w.p.dispatch.Stats().Done
	w.facts(heldNode, "db")
	again := w.gives("released, with other code and facts", heldNode, "one on web")
	if string(again.Document) != string(first.Document) || w.p.dispatch.Stats().Done != compiled {
		t.Errorf("not what it had, or something was compiled: %s\n%s", again.Document, first.Document)
	}
	release, ok, err := w.p.checkin.HeldAt(t.Context(), heldNode)
	if err != nil || !ok || release != (checkin.Code{Environment: "production", Version: one}) {
		t.Errorf("files: %+v %v %v", release, ok, err)
	}
	if place, err := w.p.places.Of(t.Context(), heldNode, "elsewhere"); err != nil || place.Environment != "production" {
		t.Errorf("environment: %s %v", place.Environment, err)
	}

	ready := w.stage(two, "t-1")
	w.gives("staged", heldNode, "one on web")
	if ready.State != deliver.Ready {
		t.Fatalf("staged: %+v", ready)
	}
	if got := w.release(ready); !got.Released || got.Generation != 2 {
		t.Errorf("released: %+v", got)
	}
	given := w.gives("after the release", heldNode, "two on db")
	if given.CodeID != string(two) {
		t.Errorf("code id %s, want %s", given.CodeID, two)
	}
	if got := w.stage(two, "t-2"); got.State != deliver.Unchanged {
		t.Errorf("once more: %+v", got)
	}
	w.shown("two on db", ready.Catalog.UUID)

	three := w.deploy("notify { 'three': \n")
	if got := w.stage(three, "t-3"); got.State != deliver.Broken || !strings.Contains(got.Reason, "Syntax error") {
		t.Errorf("broken code: %+v", got)
	}
	if all, err := w.releases.Stage(t.Context(), []fleet.Certname{heldNode}, "", "000000", "t-4"); err != nil || all[0].State != deliver.Broken {
		t.Errorf("unknown version: %+v %v", all, err)
	}
	w.gives("after failures", heldNode, "two on db")
	w.keeps(one, two)
}

// shown checks that the inventory shows what was released, and that it can be used again.
func (w *deliverWorld) shown(title, uuid string) {
	w.Helper()
	c, err := w.p.store.Catalogs.Catalog(w.Context(), heldNode)
	w.must(err)
	found := false
	for _, r := range c.Resources {
		found = found || r.Title == title
	}
	if !found || c.UUID != uuid {
		w.Errorf("the inventory shows %+v, want %s (%s)", c.Resources, title, uuid)
	}
	if newest, err := w.p.store.Reusables.Newest(w.Context(), heldNode, "production"); err != nil || newest.UUID != uuid || newest.Inputs == nil {
		w.Errorf("what it was made of: %+v %v", newest, err)
	}
	if rest, err := w.p.store.Deliveries.Unpromoted(w.Context(), "", 10); err != nil || len(rest) > 0 {
		w.Errorf("not promoted: %+v %v", rest, err)
	}
}

// keeps checks that housekeeping keeps what generations name.
func (w *deliverWorld) keeps(versions ...fleet.Digest) {
	w.Helper()
	for i := range keepVersions { // so that they are no longer among the last
		w.deploy(manifest(fmt.Sprint("later ", i)))
	}
	far := time.Now().Add(365 * 24 * time.Hour)
	_, err := w.p.store.Versions.PruneVersions(w.Context(), far, keepVersions)
	w.must(err)
	_, err = w.p.store.Queue.Prune(w.Context(), far)
	w.must(err)
	for _, version := range versions {
		if _, err := w.releases.Version(w.Context(), "production", string(version)); err != nil {
			w.Errorf("version %s: %v", version.Short(), err)
		}
	}
	kept := map[fleet.Digest]bool{}
	w.must(w.p.housekeeper.referred(w.Context(), func(d fleet.Digest) { kept[d] = true }))
	generations, err := w.p.store.Deliveries.Generations(w.Context(), heldNode)
	w.must(err)
	for _, g := range generations {
		if !kept[g.Digest] {
			w.Errorf("the document of generation %d is not kept", g.Number)
		}
	}
	if err := w.p.deployments().RemoveEnvironment(w.Context(), "production"); fault.Of(err) != fault.Conflict || err == nil {
		w.Errorf("remove the environment: %v", err)
	}
}

func TestReleasedWithoutAGeneration(t *testing.T) {
	t.Parallel()
	w := newDeliverWorld(t)
	version := w.deploy(manifest("one"))
	w.mode(deliver.ModeSet{Group: string(classify.RootID), Mode: deliver.Released, By: "ann"})
	w.gives("nothing released", heldNode,
		"conflict: web-1.example is in released mode and no catalog was released to it yet; release one: tutti catalog release web-1.example --version")
	if _, ok, err := w.p.checkin.HeldAt(t.Context(), heldNode); ok || err != nil {
		t.Errorf("its files are held: %v", err)
	}
	w.release(w.stage(version, "t-1"))
	w.gives("released", heldNode, "one on web")
	w.mode(deliver.ModeSet{Node: heldNode, Mode: deliver.Live, By: "ann"})
	w.deploy(manifest("two"))
	w.gives("live again", heldNode, "two on web")
}

// TestWhatSlipsThrough: a plain row that ends when its node has come into released mode
// changes nothing.
func TestWhatSlipsThrough(t *testing.T) {
	t.Parallel()
	w := newDeliverWorld(t)
	w.deploy(manifest("one"))
	w.gives("live", heldNode, "one on web")
	version := w.deploy(manifest("two"))
	w.mode(deliver.ModeSet{Node: heldNode, Mode: deliver.Released})
	c, err := w.p.store.Queue.Want(t.Context(), compile.Want{
		Node: heldNode, Environment: "production", Version: version, Priority: compile.Waited, At: time.Now(), Trusted: json.RawMessage(`{}`),
	})
	w.must(err)
	w.p.dispatch.Wake()
	for c.State != compile.Done {
		select {
		case <-t.Context().Done():
			t.Fatal("it never ended")
		case <-time.After(20 * time.Millisecond):
		}
		c, err = w.p.store.Queue.Compilation(t.Context(), c.ID)
		w.must(err)
	}
	shown, err := w.p.store.Catalogs.Catalog(t.Context(), heldNode)
	w.must(err)
	if shown.Compilation == c.ID || shown.Digest == c.Catalog {
		t.Errorf("the inventory shows what was not released: %+v", shown)
	}
	w.gives("still", heldNode, "one on web")
}
