package cas

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// MaxMarks is how many digests one call of Marks may name.
const MaxMarks = 500

// Mark is what is known of a digest.
type Mark uint8

// What Marks know.
const (
	Absent  Mark = iota // it is not stored, as far as is known
	Stored              // it is stored, and young from now on
	Leaving             // somebody is removing it now: ask again soon
)

// Arrival is content that the store has now.
type Arrival struct {
	Digest fleet.Digest
	Bytes  int64
}

// Departure is content that one Leave gave up, and until when.
type Departure struct {
	Digests []fleet.Digest
	Until   time.Time
}

// Marks is what all servers that share one store know of its content: what is stored, and since when nobody put or asked
// for it. They make a Sweep safe while others write, on any server: who wants to rely on content renews its mark, and
// content is removed only after its mark was given up (Leave) in one step with a look at its age.
//
// All times are those of one clock, which Now tells. Every method may be called concurrently, by any number of processes,
// is atomic, and keeps no slice. Errors are the records' own: Unavailable when they cannot be asked.
type Marks interface {
	// Paired is the name of the store that the marks are of; empty: of none yet.
	Paired(ctx context.Context) (string, error)

	// Unpair forgets all marks and the name of the store, except what is leaving now.
	Unpair(ctx context.Context) error

	// Adopt notes content that was found in the store. A mark that is there already stays as it is.
	Adopt(ctx context.Context, found []Arrival) error

	// Pair says that the marks are of this store, and whole.
	Pair(ctx context.Context, store string) error

	// Renew makes those of ds young that are stored, and says in the order of ds what is known of each. With announce it
	// also notes that the caller is about to put those that are Absent: they are young, too.
	Renew(ctx context.Context, ds []fleet.Digest, announce bool) ([]Mark, error)

	// Arrive notes that what the caller announced is stored. It returns those that were removed since: they must be
	// announced and put again.
	Arrive(ctx context.Context, arrived []Arrival) (lost []fleet.Digest, err error)

	// Leave gives up those of ds that nobody renewed since before, until they are Gone or the time given is over, and
	// returns them: the caller may remove them in that time. Those without a mark are given up with strangers, and stay
	// without. Conflict when the marks are of no store: what is there is not known.
	Leave(ctx context.Context, ds []fleet.Digest, before time.Time, within time.Duration, strangers bool) (Departure, error)

	// Gone forgets what a Leave gave up. What somebody else took over or gave up since keeps its mark. So does everything while the
	// marks are of no store: who lists it now may have seen what is gone, and must not adopt it.
	Gone(ctx context.Context, left Departure) error

	// Now is the time by the clock of the marks.
	Now(ctx context.Context) (time.Time, error)
}
