package source_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/code/source/sourcetest"
	"github.com/tutti-project/tutti/internal/fleet"
)

// noticing sees whether the work tree is still there when it is noted how a deploy ended.
type noticing struct {
	source.Store

	dir   string
	trees chan int
}

func (n noticing) SaveBranch(ctx context.Context, b source.Branch) error {
	if b.State == source.Complete {
		trees, _ := filepath.Glob(filepath.Join(n.dir, "tree-*"))
		n.trees <- len(trees)
	}
	return n.Store.SaveBranch(ctx, b)
}

// trees is a service over one repository, and where its work trees are.
type trees struct {
	*testing.T
	dir      string
	repo     *sourcetest.Repositories
	deployer *sourcetest.Deployer
	service  *source.Service
	seen     chan int // how many there were when a deploy had ended
	stop     func()
}

func newTrees(t *testing.T, from source.Source, files map[string]string) *trees {
	t.Helper()
	w := &trees{T: t, dir: t.TempDir(), repo: &sourcetest.Repositories{}, deployer: &sourcetest.Deployer{}, seen: make(chan int, 10)}
	w.repo.Push("production", files)
	var err error
	w.service, err = source.Open(t.Context(), source.Parts{
		Store: noticing{sourcetest.NewStore(), w.dir, w.seen}, Sealer: sourcetest.Seals{}, Repositories: w.repo,
		Modules: sourcetest.Modules(nil), Deployer: w.deployer, Blobs: castest.New(), Dir: w.dir, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.service.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Cleanup(w.stop)
	from.Name, from.Secrets.URL = "control", "git.example/control"
	if _, err := w.service.Add(t.Context(), from, false); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *trees) left() []string {
	w.Helper()
	left, err := filepath.Glob(filepath.Join(w.dir, "tree-*"))
	if err != nil {
		w.Fatal(err)
	}
	return left
}

// Nobody waits for a work tree to go, which takes long; and one that somebody else than git wrote to goes.
func TestWorkTreesThatAreNotKept(t *testing.T) {
	t.Parallel()
	withModules := site("")
	withModules["Puppetfile"] = ""
	for name, w := range map[string]*trees{
		"with modules":    newTrees(t, source.Source{}, withModules),
		"with submodules": newTrees(t, source.Source{Submodules: true}, site("")),
	} {
		if there := <-w.seen; there != 1 {
			t.Errorf("%s: %d work trees when the deploy ended", name, there)
		}
		w.stop()
		if left := w.left(); len(left) > 0 {
			t.Errorf("%s: %v are left", name, left)
		}
	}
}

// The next deploy has the tree of the one before, whatever its branch is; a deploy that fails leaves none, and a source that is removed takes its tree along.
func TestTheNextDeployHasTheTree(t *testing.T) {
	t.Parallel()
	files := site("")
	files["Puppetfile"] = ""
	w := newTrees(t, source.Source{NoModules: true}, files)
	<-w.seen
	w.deploy("production")
	first := w.left()
	w.repo.Push("other", site("other"))
	if _, err := w.service.Look(t.Context(), "control", false); err != nil {
		t.Fatal(err)
	}
	<-w.seen
	w.deploy("other")
	if diff := cmp.Diff(first, w.left()); diff != "" || len(first) != 1 {
		t.Errorf("the trees differ (-first +left):\n%s", diff)
	}
	w.deployer.Refuse(errors.New("no"))
	if _, err := w.service.Deploy(t.Context(), []fleet.Environment{"other"}, ""); err != nil {
		t.Fatal(err)
	}
	for w.state("other") != source.Failed {
		<-time.After(time.Millisecond)
	}
	for len(w.left()) > 0 { // behind the deploy
		<-time.After(time.Millisecond)
	}
	w.deployer.Refuse(nil)
	w.deploy("other")
	w.deploy("production")
	if err := w.service.Remove(t.Context(), "control"); err != nil {
		t.Fatal(err)
	}
	w.stop()
	if left := w.left(); len(left) > 0 {
		t.Errorf("%v are left of a source that was removed", left)
	}
}

// deploy deploys an environment again, and waits for the end.
func (w *trees) deploy(env fleet.Environment) {
	w.Helper()
	if _, err := w.service.Deploy(w.Context(), []fleet.Environment{env}, ""); err != nil {
		w.Fatal(err)
	}
	<-w.seen
}

func (w *trees) state(env fleet.Environment) source.State {
	for _, b := range w.service.Branches("control") {
		if b.Environment == env {
			return b.State
		}
	}
	return ""
}
