package sql

import (
	"log/slog"
	"testing"

	"github.com/tutti-project/tutti/internal/store/blobs3"
	"github.com/tutti-project/tutti/internal/store/blobs3/blobs3test"
)

// Two servers share content by marks in one PostgreSQL, each with connections of its own.
func TestTwoServersShareContent(t *testing.T) {
	t.Parallel()
	server, url := blobs3test.Start(t), postgres.migrated(t)
	var stores []*blobs3.Store
	for range 2 {
		parts := blobs3.Parts{Marks: openTest(t, Config{URL: url}).BlobMarks, Cache: blobs3.Uncached{}, Spool: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
		store, err := blobs3.Open(t.Context(), server.Config("two"), parts)
		check(t, err)
		stores = append(stores, store)
	}
	server.Race(t, "two", stores...)
}
