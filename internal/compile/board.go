package compile

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Board shows the queue to people. Whoever implements Queue implements it too. It only
// reads; every method may be called concurrently.
type Board interface {
	// Counts counts what is not finished by priority and environment, in that order.
	Counts(ctx context.Context) ([]Count, error)
	// List returns rows that fit f, the highest ID first.
	List(ctx context.Context, f Filter) ([]Compilation, error)
	// Record reads one row with its Logs, and its Inputs where they are known; NotFound
	// when it is gone.
	Record(ctx context.Context, id int64) (Compilation, error)
	// Logs reads what the compiler wrote for those of the rows that were compiled: also nothing. Of rows that only point to a catalog,
	// and of those that are gone, it is not known.
	Logs(ctx context.Context, ids []int64) (map[int64][]Log, error)
	// Troubles counts what waits because an attempt could not be made, by what was wrong: the troubles with the most rows first, at most so many.
	Troubles(ctx context.Context, most int) ([]Trouble, error)
	// Ended counts what finished at or after since, by environment.
	Ended(ctx context.Context, since time.Time) ([]Ended, error)
}

// Count is how much is to be done of one priority and environment.
type Count struct {
	Priority    Priority
	Environment fleet.Environment
	Wanted      int
	Running     int       // leased
	Resting     int       // leased, and waiting to be tried again
	Oldest      time.Time // when the oldest wanted one was wanted; zero: none is
}

// Trouble is why an attempt could not be made, and how many rows wait because of it: they rest, or wait for a worker again.
type Trouble struct {
	Text string
	Rows int
	Next time.Time // when the first of them is tried again; zero: as soon as a worker is free
}

// Ended is what finished in an environment.
type Ended struct {
	Environment fleet.Environment
	Compiled    int // gave a catalog
	Reused      int // were answered with a stored catalog
	Failed      int
}

// Filter picks rows. Fields that are zero do not matter.
type Filter struct {
	Node        fleet.Certname
	Environment fleet.Environment
	State       State
	Runs        bool    // of those leased, only what runs
	Rests       bool    // of those leased, only what waits to be tried again
	IDs         []int64 // only these; not nil and empty: none
	Before      int64   // only lower IDs
	Limit       int     // at most so many; at least 1
}
