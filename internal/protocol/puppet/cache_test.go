package puppet_test

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"weak"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/puppet"
)

// forgetful makes every tree anew, as a library does that was asked for many
// others meanwhile, and knows whether the last one is still in memory.
type forgetful struct {
	store code.Store
	blobs cas.Store
	last  weak.Pointer[code.Tree]
}

func (f *forgetful) Current(ctx context.Context, env fleet.Environment) (*code.Tree, error) {
	tree, err := code.NewLibrary(f.store, f.blobs).Current(ctx, env)
	f.last = weak.Make(tree)
	return tree, err
}

func (f *forgetful) Tree(ctx context.Context, env fleet.Environment, id code.VersionID) (*code.Tree, error) {
	return code.NewLibrary(f.store, f.blobs).Tree(ctx, env, id)
}

// Answers stay for a long time; the trees that they were made of are a hundred
// times as large.
func TestCachedAnswersDoNotHoldTrees(t *testing.T) {
	t.Parallel()
	trees := &forgetful{}
	b := newBench(t, func(c *puppet.Config) {
		lib := c.Trees.(library)
		trees.store, trees.blobs = lib.store, c.Blobs
		c.Trees = trees
	})
	ask := func() string {
		w := b.send(http.MethodGet, "/puppet/v3/file_metadatas/plugins?environment=production&recurse=true&links=manage", "", "Accept: application/json")
		if w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return w.Body.String()
	}
	first := ask()
	runtime.GC()
	if trees.last.Value() != nil {
		t.Error("the answer holds its tree")
	}
	if again := ask(); again != first {
		t.Errorf("another answer for the same version:\n%s\n%s", first, again)
	}
}
