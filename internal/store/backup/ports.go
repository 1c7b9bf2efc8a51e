package backup

import (
	"context"
	"io"
	"iter"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Schema says how tables look.
type Schema struct {
	Engine string `json:"engine"` // sqlite or postgres
	Number int64  `json:"number"` // of the last migration
	Writer string `json:"writer"` // the version of tutti that brought it so far; empty: not known
}

// Table is one table as it is stored.
type Table struct {
	Name    string
	Columns []string
}

// Records is every row as of one moment. It belongs to one goroutine, which closes it.
type Records interface {
	// Begin makes now that moment. It is quick, and may be called again: then that is the moment.
	Begin(ctx context.Context) error
	// Describe lists every table; one that refers to another comes behind it.
	Describe(ctx context.Context) (Schema, []Table, error)
	// Rows calls each with every row: nil, int64, float64, string or []byte for each column. The
	// callee keeps nothing of it.
	Rows(ctx context.Context, table Table, each func(row []any) error) error
	// Sequences is the last number that was given for each table that numbers its rows.
	Sequences(ctx context.Context) (map[string]int64, error)
	io.Closer
}

// Loader fills empty tables. It belongs to one goroutine. Invalid for a table or column that is
// not there.
type Loader interface {
	// Load adds rows to a table, and keeps them until it returns. Tables come in the order of
	// Records.Describe.
	Load(ctx context.Context, table Table, rows iter.Seq2[[]any, error]) error
	// Finish makes what was loaded usable; nothing of it is before.
	Finish(ctx context.Context, sequences map[string]int64) error
	// Close gives up what was not finished.
	io.Closer
}

// Blobs is stored content. No blob goes away before Close.
type Blobs interface {
	// Each calls fn with every blob that is there now.
	Each(ctx context.Context, fn func(d fleet.Digest, size int64) error) error
	// Open opens one, without looking whether it has its digest; NotFound.
	Open(d fleet.Digest) (io.ReadCloser, error)
	io.Closer
}
