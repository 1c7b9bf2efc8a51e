package source_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/code/source/sourcetest"
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

// Nobody waits for the work tree to go, which takes long; and it goes.
func TestTheWorkTreeGoesBehindTheDeploy(t *testing.T) {
	t.Parallel()
	repo, dir := &sourcetest.Repositories{}, t.TempDir()
	repo.Push("production", site(""))
	watched := noticing{sourcetest.NewStore(), dir, make(chan int, 1)}
	service, err := source.Open(t.Context(), source.Parts{
		Store: watched, Sealer: sourcetest.Seals{}, Repositories: repo, Modules: sourcetest.Modules(nil), Deployer: &sourcetest.Deployer{},
		Blobs: castest.New(), Dir: dir, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	if _, err := service.Add(t.Context(), source.Source{Name: "control", Secrets: source.Secrets{URL: "git.example/control"}}, false); err != nil {
		t.Fatal(err)
	}
	if trees := <-watched.trees; trees != 1 {
		t.Errorf("%d work trees when the deploy ended", trees)
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "tree-*")); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}
