package source_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/code/source/sourcetest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestStoreInMemory(t *testing.T) {
	t.Parallel()
	sourcetest.RunStore(t, func(*testing.T) source.Store { return sourcetest.NewStore() })
}

// world is a service and what is around it.
type world struct {
	*testing.T
	store    *sourcetest.Store
	repo     *sourcetest.Repositories
	deployer *sourcetest.Deployer
	modules  sourcetest.Modules
	blobs    *castest.Store
	service  *source.Service
	stop     func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, store: sourcetest.NewStore(), repo: &sourcetest.Repositories{}, deployer: &sourcetest.Deployer{}, blobs: castest.New()}
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

// start starts a service over what is stored.
func (w *world) start() {
	w.Helper()
	var err error
	w.service, err = source.Open(w.Context(), source.Parts{
		Store: w.store, Sealer: sourcetest.Seals{}, Repositories: w.repo,
		Modules:  sourcetest.Modules(func(dir string) error { return w.modules.Install(w.Context(), dir) }),
		Deployer: w.deployer, Blobs: w.blobs, Dir: w.TempDir(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	service := w.service
	go func() { ended <- service.Run(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			w.Error(err)
		}
		ended <- nil
	}
}

func (w *world) add(s source.Source) {
	w.Helper()
	s.Name, s.Secrets.URL = "control", "user:pw@git.example/control"
	if _, err := w.service.Add(w.Context(), s, false); err != nil {
		w.Fatal(err)
	}
	if w.repo.Hold == nil {
		w.looked()
	}
}

// looked waits until the service looked at the source by itself, and for what that led to.
func (w *world) looked() {
	w.Helper()
	for {
		if s, err := w.service.Source("control"); err != nil {
			w.Fatal(err)
		} else if !s.LookedAt.IsZero() {
			w.settle()
			return
		}
		<-time.After(time.Millisecond)
	}
}

// look looks at the source, and waits for what that leads to.
func (w *world) look() source.Looked {
	w.Helper()
	looked, err := w.service.Look(w.Context(), "control", false)
	if err != nil {
		w.Fatal(err)
	}
	w.settle()
	return looked
}

// settle waits until nothing is queued or deploying.
func (w *world) settle() {
	w.Helper()
	wanted := map[fleet.Environment]int64{}
	for _, b := range w.service.Branches("") {
		wanted[b.Environment] = max(b.ID, b.NextID)
	}
	if _, err := w.service.Wait(w.Context(), wanted); err != nil {
		w.Fatal(err)
	}
}

func (w *world) branch(env fleet.Environment) source.Branch {
	w.Helper()
	for _, b := range w.service.Branches("") {
		if b.Environment == env {
			return b
		}
	}
	w.Fatalf("%s is no branch", env)
	return source.Branch{}
}

// deployed is what was deployed: environment, commit, who.
func (w *world) deployed() (list []string) {
	for _, d := range w.deployer.Deployed() {
		list = append(list, string(d.Environment)+" "+d.Commit[:7]+" "+d.Origin+" "+d.Actor)
	}
	return list
}

func (w *world) same(want, got any) {
	w.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("(-want +got):\n%s", diff)
	}
}

func site(text string) map[string]string { return map[string]string{"manifests/site.pp": text} }

func TestBranchesBecomeEnvironments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	production, feature := w.repo.Push("production", site("# 1")), w.repo.Push("feature/tls-1;x", site("# 2"))
	w.repo.Push("draft", site("# 3"))
	w.repo.Push(strings.Repeat("x", 200), site("# 4"))
	w.add(source.Source{Branches: []string{"!draft"}})
	looked := w.look()
	if len(looked.Refused) != 1 || !strings.Contains(looked.Refused[0], "at most 128") {
		t.Errorf("refused: %q", looked.Refused)
	}
	w.same(2, len(w.deployed()))
	for _, want := range []string{
		"production " + production[:7] + " git.example/control@production source control",
		"feature_tls_1_x " + feature[:7] + " git.example/control@feature/tls-1;x source control",
	} {
		if !strings.Contains(strings.Join(w.deployed(), "\n"), want) {
			t.Errorf("%q is not among %q", want, w.deployed())
		}
	}
	if again := w.look(); len(again.Deploys) != 0 {
		t.Errorf("nothing changed, and %v is deployed", again.Deploys)
	}
	forced := w.repo.Push("production", site("# forced"))
	w.look()
	w.same(forced, w.branch("production").Commit)
	w.same(3, len(w.deployed()))
}

func TestNamesOfEnvironments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source source.Source
		branch string
		env    fleet.Environment
		wanted bool
	}{
		"as it is":            {source.Source{}, "production", "production", true},
		"with a prefix":       {source.Source{Prefix: "web"}, "main", "web_main", true},
		"of other characters": {source.Source{}, "Feature/a-b.c;d é", "Feature_a_b_c_d__", true},
		"that leads up":       {source.Source{}, "../../etc", "______etc", true},
		"a glob":              {source.Source{Branches: []string{"release/*"}}, "release/1/2", "release_1_2", true},
		"not the glob":        {source.Source{Branches: []string{"release/*"}}, "xrelease/1", "", false},
		"an expression":       {source.Source{Branches: []string{"/main|v[0-9]+/"}}, "v12", "v12", true},
		"all of it":           {source.Source{Branches: []string{"/main|v[0-9]+/"}}, "v12x", "", false},
		"but not":             {source.Source{Branches: []string{"*", "!wip/*"}}, "wip/x", "", false},
	} {
		env, wanted, err := c.source.Environment(c.branch)
		if env != c.env || wanted != c.wanted || err != nil {
			t.Errorf("%s: %q, %v, %v", name, env, wanted, err)
		}
	}
	if _, _, err := (source.Source{}).Environment(strings.Repeat("x", 200)); fault.Of(err) != fault.Invalid || !strings.Contains(err.Error(), "at most 128") {
		t.Errorf("of 200 characters: %v", err)
	}
}

func TestSourcesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, change := range map[string]func(*source.Source){
		"its name":      func(s *source.Source) { s.Name = "a/b" },
		"no URL":        func(s *source.Source) { s.Secrets.URL = "" },
		"its prefix":    func(s *source.Source) { s.Prefix = "a-b" },
		"an expression": func(s *source.Source) { s.Branches = []string{"/(/"} },
		"no pattern":    func(s *source.Source) { s.Branches = []string{"!"} },
		"its interval":  func(s *source.Source) { s.Interval = time.Second },
		"its key":       func(s *source.Source) { s.Secrets.Key = "ssh-ed25519 AAAA" },
		"its secret":    func(s *source.Source) { s.Secrets.Webhook = "short" },
	} {
		s := source.Source{Name: "a", Secrets: source.Secrets{URL: "x"}}
		change(&s)
		if _, err := w.service.Add(t.Context(), s, false); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want Invalid", name, err)
		}
	}
	w.same(0, len(w.service.Sources()))
}

func TestADeletedBranch(t *testing.T) {
	t.Parallel()
	for _, purge := range []bool{false, true} {
		w := newWorld(t)
		w.repo.Push("production", site("# 1"))
		w.repo.Push("feature", site("# 2"))
		w.add(source.Source{Purge: purge})
		w.look()
		w.repo.Drop("feature")
		looked := w.look()
		if purge {
			w.same([]fleet.Environment{"feature"}, looked.Purged)
			w.same([]fleet.Environment{"feature"}, w.deployer.Removed())
			continue
		}
		if len(looked.Gone) != 1 || looked.Gone[0].GoneAt.IsZero() {
			w.Errorf("gone: %+v", looked.Gone)
		}
		if w.branch("feature").GoneAt.IsZero() || len(w.deployer.Removed()) > 0 {
			t.Errorf("it is %+v, removed %v", w.branch("feature"), w.deployer.Removed())
		}
		w.repo.Push("feature", site("# 2"))
		w.look()
		if !w.branch("feature").GoneAt.IsZero() {
			t.Error("it is back, and nobody says so")
		}
	}
}

func TestAnEmptyRepositoryPurgesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Push("production", site("# 1"))
	w.add(source.Source{Purge: true})
	w.look()
	w.repo.Drop("production")
	w.look()
	if len(w.deployer.Removed()) > 0 {
		t.Error("it was deleted")
	}
}

func TestARepositoryThatCannotBeReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Push("production", site("# 1"))
	w.add(source.Source{})
	w.look()
	w.repo.Fail(fault.New(fault.Unavailable, "it did not come in time"))
	if _, err := w.service.Look(t.Context(), "control", false); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	s, err := w.service.Source("control")
	if err != nil || s.Trouble != "it did not come in time" {
		t.Errorf("its trouble is %q, %v", s.Trouble, err)
	}
	w.repo.Fail(nil)
	w.look()
	if s, err = w.service.Source("control"); err != nil || s.Trouble != "" {
		t.Errorf("its trouble is %q, %v", s.Trouble, err)
	}
}

// What was accepted survives the server.
func TestARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Hold, w.repo.Began = make(chan struct{}), make(chan string, 10)
	w.repo.Push("production", site("# 1"))
	w.add(source.Source{Secrets: source.Secrets{Webhook: "0123456789abcdef"}})
	<-w.repo.Began
	w.stop()
	rows, err := w.store.Sources(t.Context())
	if err != nil || len(rows) != 1 || bytes.Contains(rows[0].Sealed, []byte("pw")) {
		t.Fatalf("stored: %+v, %v", rows, err)
	}
	if w.branch("production").State != source.Deploying {
		t.Fatalf("it is %+v", w.branch("production"))
	}
	w.repo.Hold = nil
	w.start()
	w.settle()
	// A look that came while it ran, and before its commit was known, has asked for another one: that may run still.
	if b := w.branch("production"); b.Ended.State != source.Complete || b.Commit == "" {
		t.Errorf("it is %+v", b)
	}
	s, err := w.service.Source("control")
	if err != nil || s.Secrets.URL != "user:pw@git.example/control" || s.Secrets.Webhook != "0123456789abcdef" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestTwoSourcesDoNotShareAnEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Push("production", site("# 1"))
	w.add(source.Source{})
	w.look()
	if _, err := w.service.Add(t.Context(), source.Source{Name: "other", Secrets: source.Secrets{URL: "y"}}, false); err != nil {
		t.Fatal(err)
	}
	looked, err := w.service.Look(t.Context(), "other", false)
	if err != nil || len(looked.Refused) != 1 || !strings.Contains(looked.Refused[0], "a branch of the source control already") {
		t.Errorf("%+v, %v", looked, err)
	}
	if err := w.service.Remove(t.Context(), "control"); err != nil {
		t.Fatal(err)
	}
	if looked, err = w.service.Look(t.Context(), "other", false); err != nil || len(looked.Refused) > 0 {
		t.Errorf("%+v, %v", looked, err)
	}
	if b := w.branch("production"); b.Source != "other" { // by this look, or by one that the service made itself
		t.Errorf("it is %+v", b)
	}
}

func TestReplacingKeepsSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(source.Source{Secrets: source.Secrets{Webhook: "0123456789abcdef"}})
	s := source.Source{Name: "control", Prefix: "x", Secrets: source.Secrets{URL: "z"}}
	if _, err := w.service.Add(t.Context(), s, false); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want Conflict", err)
	}
	if _, err := w.service.Add(t.Context(), s, true); err != nil {
		t.Fatal(err)
	}
	got, err := w.service.Source("control")
	if err != nil || got.Secrets.Webhook != "0123456789abcdef" || got.URL != "z" || got.Prefix != "x" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Hints while somebody looks are one more look.
func TestHintsAreFolded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Push("production", site("# 1"))
	w.add(source.Source{})
	w.look()
	last := w.repo.Push("production", site("# 2"))
	for range 50 {
		if err := w.service.Hint("control"); err != nil {
			t.Fatal(err)
		}
	}
	for w.branch("production").Commit != last {
		<-time.After(time.Millisecond)
	}
	if n := len(w.deployed()); n != 2 {
		t.Errorf("deployed %d times", n)
	}
	if err := w.service.Hint("contro"); !fault.Is(err, fault.NotFound) || !strings.Contains(fault.Hint(err), "control") {
		t.Errorf("got %v", err)
	}
}
