package server

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fleet"
)

// servedFiles is code whose roles hand out a file each.
var servedFiles = map[string]string{
	"manifests/site.pp":             "include $facts['role']\n",
	"modules/web/manifests/init.pp": "class web { file { '/srv/page': source => 'puppet:///modules/web/page.txt' } }\n",
	"modules/web/files/page.txt":    "first page\n",
	"modules/db/manifests/init.pp":  "class db { file { '/srv/table': source => 'puppet:///modules/db/table.txt' } }\n",
	"modules/db/files/table.txt":    "first table\n",
}

// toldHint is what a connected node is told.
type toldHint struct {
	node    fleet.Certname
	pointer deliver.Pointer
}

// listeners is deliver.Teller: every node listens.
type listeners chan toldHint

// Listens implements deliver.Teller.
func (l listeners) Listens(fleet.Certname) bool { return true }

// Tell implements deliver.Teller.
func (l listeners) Tell(ctx context.Context, node fleet.Certname, p deliver.Pointer, _ deliver.Apply) error {
	select {
	case l <- toldHint{node, p}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// told waits for a hint of another version than one.
func (w *deliverWorld) told(heard listeners, version fleet.Digest) toldHint {
	w.Helper()
	for {
		select {
		case h := <-heard:
			if h.pointer.Version == version {
				return h
			}
		case <-time.After(10 * time.Minute):
			w.Fatal("nobody was told of another catalog")
		}
	}
}

// ahead lets the server do by itself what it does when code was deployed.
func (w *deliverWorld) ahead() listeners {
	heard := make(listeners, 100)
	w.p.hinter.Teller = heard
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- w.p.wanter.Run(ctx) }()
	go func() { ended <- w.p.hinter.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			w.Error(err)
		}
	})
	return heard
}

// A file that is only served changes, and nobody asks: the node whose catalog has its
// checksum is told of another catalog with the new one. The other node's stays as it is.
func TestAServedFileThatChangesReachesWhoHasIt(t *testing.T) {
	t.Parallel()
	w := newDeliverWorld(t)
	heard := w.ahead()
	const other fleet.Certname = "db-1.example"
	w.facts(other, "db")
	one := w.deployTree(servedFiles)
	w.gives("at first", heldNode, "page.txt")
	w.gives("at first", other, "table.txt")
	before, err := w.p.deliver.Pointer(t.Context(), heldNode)
	w.must(err)
	untouched, err := w.p.deliver.Pointer(t.Context(), other)
	w.must(err)
	if before.Version != one || untouched.Version != one {
		t.Fatalf("the first catalogs are %+v and %+v, want version %s", before, untouched, one)
	}

	changed := maps.Clone(servedFiles)
	changed["modules/web/files/page.txt"] = "second page\n"
	two := w.deployTree(changed)
	h := w.told(heard, two)
	if h.node != heldNode || h.pointer.Catalog == before.Catalog {
		t.Errorf("told %s of %+v, want %s and another catalog than %s", h.node, h.pointer, heldNode, before.Catalog)
	}
	document, err := documents{w.p.blobs}.Document(t.Context(), h.pointer.Catalog)
	w.must(err)
	if sum := string(fleet.DigestOf([]byte("second page\n"))); !strings.Contains(string(document), sum) {
		t.Errorf("the catalog lacks the checksum %s of the new file:\n%s", sum, document)
	}
	if got, err := w.p.deliver.Pointer(t.Context(), other); err != nil || got != untouched {
		t.Errorf("%s may have %+v (%v), want what it had: %+v", other, got, err, untouched)
	}
	rows, err := w.p.store.Queue.List(t.Context(), compile.Filter{Limit: 100})
	w.must(err)
	for _, row := range rows {
		if row.Version == two && row.Node != heldNode {
			t.Errorf("%s was wanted of the new version: %+v", row.Node, row)
		}
	}
}
