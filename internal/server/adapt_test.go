package server

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/server/settings"
)

func TestEnvironmentsSayWhereTheirCodeBegins(t *testing.T) {
	t.Parallel()
	c := settings.Default()
	c.Data = filepath.Join(t.TempDir(), "data")
	p, err := open(t.Context(), c, newLogger(c, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	want := map[fleet.Environment]string{"plain": "manifests", "moved": "site.pp", "variable": ""}
	for env, conf := range map[fleet.Environment]string{"plain": "", "moved": "manifest = site.pp\n", "variable": "manifest = $confdir/x\n"} {
		deployConf(t, p, env, conf)
	}
	list, err := environments{p.library, p.store.Versions}.ListEnvironments(t.Context())
	if err != nil || len(list) != len(want) {
		t.Fatalf("%v, %v", list, err)
	}
	for _, environment := range list {
		if environment.Manifest != want[environment.Name] {
			t.Errorf("%s begins at %q, want %q", environment.Name, environment.Manifest, want[environment.Name])
		}
	}
}

func deployConf(t *testing.T, p *parts, env fleet.Environment, conf string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "environment.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	bundle, err := code.Build(t.Context(), dir, code.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.Upload(t.Context(), p.blobs); err != nil {
		t.Fatal(err)
	}
	if _, err := p.library.Deploy(t.Context(), code.Deployment{Environment: env, Manifest: bundle.Manifest, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
}
