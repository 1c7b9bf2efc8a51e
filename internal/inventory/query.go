package inventory

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/pql"
)

// Question is a checked query with what the asker wants besides rows.
type Question struct {
	Query   pql.Checked
	MaxRows int // more rows than that are an Invalid fault; 0 means DefaultMaxRows
	// Compiling says that a compilation waits for the answer: such questions have a
	// place of their own, so that other askers never hold up compiling.
	Compiling bool
	// Counted is told, before the first row, how many rows there would be without
	// limit and offset; nil: nobody wants to know.
	Counted func(total int64)
	// Gone asks for rows of deactivated and expired nodes too. Without it there are
	// none, unless the query speaks of node_state somewhere. Queries inside of a
	// query always look at all nodes.
	Gone bool
}

// DefaultMaxRows is how many rows one question may have.
const DefaultMaxRows = 1_000_000

// EventQuestion asks for sums over events.
type EventQuestion struct {
	SummarizeBy []string    // certname, resource, containing_class; aggregates take several
	CountBy     string      // resource (the default) or certname
	Events      pql.Checked // which events
	Counts      pql.Expr    // on failures, successes, noops, skips; nil: all
	Order       []pql.Order // of the sums
	Limit       *int64
	Offset      *int64
	Aggregate   bool // one row for each SummarizeBy, over all subjects
	Gone        bool // events of deactivated and expired nodes too
}

// Asker answers queries. Each is called with one row after the other, a JSON object,
// which it must not keep; an error of it ends the question and is returned. Rows
// are one state of the store. Total is the count that Question asked for.
//
// A question that takes too long is Unavailable; one whose rows are too many is
// Invalid. Questions may be asked concurrently.
type Asker interface {
	Ask(ctx context.Context, q Question, each func(row json.RawMessage) error) error
	AskEvents(ctx context.Context, q EventQuestion, each func(row json.RawMessage) error) error
}
