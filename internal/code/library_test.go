package code_test

import (
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// shelf is a library and what is under it.
type shelf struct {
	*code.Library
	blobs cas.Store
	rows  code.Store
}

func newShelf() shelf {
	s := shelf{blobs: castest.New(), rows: codetest.New()}
	s.Library = code.NewLibrary(s.rows, s.blobs)
	return s
}

func (s shelf) deploy(t *testing.T, env fleet.Environment, dir string, opt code.BuildOptions) (code.Version, *code.Tree) {
	t.Helper()
	bundle, err := code.Build(t.Context(), dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.Upload(t.Context(), s.blobs); err != nil {
		t.Fatal(err)
	}
	v, err := s.Deploy(t.Context(), code.Deployment{Environment: env, Manifest: bundle.Manifest, At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := s.Current(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	return v, tree
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Errorf("got %v (%v), want %v", err, fault.Of(err), want)
	}
}
