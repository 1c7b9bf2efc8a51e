package server

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// counted counts what is opened of content, and lets one not be had.
type counted struct {
	cas.Store
	opened map[fleet.Digest]int
	away   fleet.Digest
}

func (c *counted) Open(ctx context.Context, d fleet.Digest) (cas.Blob, error) {
	c.opened[d]++
	if d == c.away {
		return nil, fault.New(fault.Unavailable, "the store is away")
	}
	return c.Store.Open(ctx, d)
}

// The plugins of a version come once, however many nodes have it, and again while one did not come; the files of each catalog come each time.
func TestPluginsOfAVersionComeOnce(t *testing.T) {
	t.Parallel()
	dir, fact := t.TempDir(), "# a fact"
	lib := filepath.Join(dir, "modules/m/lib/facter")
	if err := os.MkdirAll(lib, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lib, "f.rb"), []byte(fact), 0o600); err != nil {
		t.Fatal(err)
	}
	blobs := &counted{Store: castest.New(), opened: map[fleet.Digest]int{}}
	library := code.NewLibrary(codetest.New(), blobs)
	bundle, err := code.Build(t.Context(), dir, code.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.Upload(t.Context(), blobs); err != nil {
		t.Fatal(err)
	}
	version, err := library.Deploy(t.Context(), code.Deployment{Environment: "production", Manifest: bundle.Manifest, At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	plugin, file := fleet.DigestOf([]byte(fact)), fleet.DigestOf([]byte("a file"))
	k := near.Kept{
		Node: "a.test", Pointer: deliver.Pointer{Environment: "production", Version: version.ID},
		Document: []byte(`{"checksum_value":"{sha256}` + string(file) + `"}`),
	}
	f := &fetching{library, blobs, map[fleet.Environment]fleet.Digest{}}
	blobs.away, blobs.opened = plugin, map[fleet.Digest]int{}
	f.fetch(t.Context(), k)
	blobs.away = ""
	for range 5 {
		f.fetch(t.Context(), k)
	}
	if blobs.opened[plugin] != 2 || blobs.opened[file] != 6 {
		t.Errorf("the plugin was asked for %d times, the file %d times", blobs.opened[plugin], blobs.opened[file])
	}
}
