package compile

import (
	"cmp"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// The rules of the queue. They are values in, values out, and every implementation of Queue calls them: what is kept
// in SQL and what tests keep in memory cannot come to differ by them.

// Act is what a queue does with a want.
type Act uint8

// What becomes of the row that answers a want.
const (
	AddRow   Act = iota // the row is new, and gets the highest ID
	GiveRow             // the row has finished: it stays as it is
	ShareRow            // the row takes over what the want has; its ID stays
	RenewRow            // the same, and the row gets the highest ID
)

// Decided is what becomes of a want. Row is as it is to be stored; its ID is that of the row that was found, 0 of a new one.
type Decided struct {
	Act Act
	Row Compilation
}

// Decide says what answers w; see Queue.Want. Same are the rows of w's node, environment, version and reach, the newest
// first: those that are wanted or leased, and those that finished for w's transaction. Plain is the highest ID of the
// node's plain rows that have not failed; it need not be known for a staged w.
func Decide(w Want, same []Compilation, plain int64) Decided {
	found, ok := answering(w, same)
	switch {
	case ok && found.Finished():
		return Decided{GiveRow, found}
	case ok && (w.Staged || plain <= found.ID):
		return Decided{ShareRow, found.shared(w)}
	case ok && found.State == Wanted: // overtaken: it is wanted last once more
		return Decided{RenewRow, found.shared(w)}
	default: // nothing, or a lease whose catalog would not become the newest
		return Decided{AddRow, Compilation{
			Node: w.Node, Environment: w.Environment, Version: w.Version, FactsSeq: w.FactsSeq, Transaction: w.Transaction,
			Trusted: slices.Clone(w.Trusted), Priority: w.Priority, State: Wanted, WantedAt: w.At, Checks: w.Checks, Staged: w.Staged, Reach: w.Reach,
		}}
	}
}

// answering finds the row that answers w among those of its key, the newest first.
func answering(w Want, same []Compilation) (Compilation, bool) {
	for _, fits := range []func(c Compilation) bool{
		func(c Compilation) bool {
			return c.Finished() && (w.Staged || !c.Staged) && w.Transaction != "" && c.Transaction == w.Transaction && c.FactsSeq >= w.FactsSeq
		},
		func(c Compilation) bool { return c.State == Wanted },
		func(c Compilation) bool { return c.State == Leased && c.FactsSeq >= w.FactsSeq && !w.Fresh },
	} {
		if i := slices.IndexFunc(same, fits); i >= 0 {
			return same[i], true
		}
	}
	return Compilation{}, false
}

// Finished says whether c is done or failed.
func (c Compilation) Finished() bool { return c.State == Done || c.State == Failed }

// shared is c when w shares it.
func (c Compilation) shared(w Want) Compilation {
	c.Transaction = cmp.Or(w.Transaction, c.Transaction)
	if len(w.Trusted) != 0 {
		c.Trusted = slices.Clone(w.Trusted)
	}
	if c.State == Wanted {
		c.FactsSeq = max(c.FactsSeq, w.FactsSeq)
		c.Checks = cmp.Or(c.Checks, w.Checks)
	}
	c.Priority = min(c.Priority, w.Priority)
	c.Staged = c.Staged && w.Staged
	return c
}

// Overtakes says whether c keeps what other rows of its node give from becoming the newest catalog, if it has a higher ID.
func (c Compilation) Overtakes() bool { return !c.Staged && c.State != Failed }

// HeldBy says whether c is leased as lease says, and does not rest.
func (c Compilation) HeldBy(lease Compilation) bool {
	return c.State == Leased && c.ID == lease.ID && c.LeasedBy == lease.LeasedBy && c.Attempts == lease.Attempts && c.RestsUntil.IsZero()
}

// NotLeased is the Conflict of who does not hold the lease of c any more.
func NotLeased(c Compilation) error {
	return fault.New(fault.Conflict, "compilation %d is not leased by %s any more", c.ID, c.LeasedBy)
}

// Close closes a leased row with what c says; see Queue.Finish.
func (c Compilation) Close(row Compilation) (Compilation, error) {
	if !row.HeldBy(c) {
		return row, NotLeased(c)
	}
	if c.State == Done && c.Held {
		row.Staged = true
	}
	if c.State == Done && c.Staged && !row.Staged {
		return row, fault.Wrap(fault.Conflict, ErrUnstaged, "compilation %d is not staged any more", c.ID)
	}
	row.State, row.FactsSeq, row.FinishedAt = c.State, c.FactsSeq, c.FinishedAt
	row.Catalog, row.UUID, row.Err, row.Cost, row.Order = c.Catalog, c.UUID, c.Err, c.Cost, c.Order
	return row, nil
}

// Returned is a row whose lease ended without a result; see Queue.ReturnLeases. Where one is Wanted of the same node,
// environment, version and reach, both become one: it has the ID of one of them, and the other is gone.
func (c Compilation) Returned(now time.Time, maxAttempts int, wanted *Compilation) Compilation {
	if !c.RestsUntil.IsZero() { // whoever gave it back lives: however often it rests, half of its leases may still be lost
		c.RestsUntil, c.Attempts = time.Time{}, min(c.Attempts, maxAttempts/2)
	}
	if c.Attempts >= maxAttempts {
		c.State, c.FinishedAt, c.Err = Failed, now, Exhausted(c.Attempts)
		return c
	}
	if wanted == nil {
		c.State, c.LeasedBy, c.LeasedUntil = Wanted, "", time.Time{}
		return c
	}
	both := *wanted
	if both.Staged == c.Staged && c.ID > both.ID || both.Staged && !c.Staged {
		both.ID = c.ID
	}
	both.Priority, both.Attempts, both.FactsSeq = min(both.Priority, c.Priority), max(both.Attempts, c.Attempts), max(both.FactsSeq, c.FactsSeq)
	both.Staged = both.Staged && c.Staged
	both.Transaction, both.Trouble = cmp.Or(both.Transaction, c.Transaction), cmp.Or(both.Trouble, c.Trouble)
	if len(both.Trusted) == 0 {
		both.Trusted = c.Trusted
	}
	if c.WantedAt.Before(both.WantedAt) {
		both.WantedAt = c.WantedAt
	}
	return both
}
