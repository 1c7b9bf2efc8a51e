package blobs3_test

import (
	"log/slog"
	"testing"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/store/blobdir"
	"github.com/tutti-project/tutti/internal/store/blobs3"
	"github.com/tutti-project/tutti/internal/store/blobs3/blobs3test"
)

func TestStore(t *testing.T) {
	t.Parallel()
	server := blobs3test.Start(t)
	castest.RunStore(t, func(t *testing.T) cas.Store {
		t.Helper()
		return open(t, server.Config(t.Name()), cas.NewMarks(), openCache(t, 1<<30))
	})
}

// TestStoreWithoutRoom is the contract when nothing can be cached.
func TestStoreWithoutRoom(t *testing.T) {
	t.Parallel()
	server := blobs3test.Start(t)
	castest.RunStore(t, func(t *testing.T) cas.Store {
		t.Helper()
		// Files of worktrees need the disk.
		return struct{ cas.Store }{open(t, server.Config(t.Name()), cas.NewMarks(), openCache(t, 0))}
	})
}

func openCache(tb testing.TB, most int64) *blobdir.Cache {
	tb.Helper()
	cache, err := blobdir.OpenCache(tb.TempDir(), most)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = cache.Close() })
	return cache
}

func open(tb testing.TB, c blobs3.Config, marks cas.Marks, cache blobs3.Cache) *blobs3.Store {
	tb.Helper()
	s, err := blobs3.Open(tb.Context(), c, blobs3.Parts{Marks: marks, Cache: cache, Spool: tb.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
