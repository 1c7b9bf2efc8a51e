package compile

import (
	"context"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Slowdown is how often compilations of an environment and kind took too long, one after the
// other. From the third on it is slowed: one of them runs at a time, and the next one only
// after a pause that grows. One that ends in time, or another version of the code, ends it.
type Slowdown struct {
	Environment fleet.Environment
	Apart       bool         // of its previews and checks; see Priority.Apart
	Version     fleet.Digest // of the code that takes too long
	Timeouts    int          // in a row
	Since       time.Time    // when it was slowed; zero: it is not
	RestsUntil  time.Time    // when the next one may run
}

// Turns tells how the wanted rows stand to each other. Whoever implements Queue implements
// it too. It only reads; every method may be called concurrently.
type Turns interface {
	// Lanes returns the lanes from which Lease would take rows for o, in no order: those
	// of paused environments are left out.
	Lanes(ctx context.Context, o Offer) ([]Lane, error)
	// Slowdowns lists the environments that are slowed by name, each with its catalogs first.
	Slowdowns(ctx context.Context) ([]Slowdown, error)
}

// slowAfter is how many compilations in a row take too long before their environment is slowed.
const slowAfter = 3

// The pauses of what is slowed.
const (
	firstSlowPause = 30 * time.Second
	mostSlowPause  = 10 * time.Minute
)

// Slowed says whether it has come that far.
func (s Slowdown) Slowed() bool { return s.Timeouts >= slowAfter }

// After is what becomes of s, which is of c's environment and kind or zero, when c has finished.
// Only a compilation counts: neither a stored catalog that was used again, nor code that is wrong.
func (s Slowdown) After(c Compilation) Slowdown {
	switch {
	case c.State == Done && c.Cost.Wall > 0 && c.Version == s.Version:
		return Slowdown{}
	case c.State != Failed || c.Err == nil || c.Err.Cause != CauseTimeout:
		return s
	}
	if s.Version != c.Version {
		s = Slowdown{Environment: c.Environment, Apart: c.Priority.Apart(), Version: c.Version}
	}
	s.Timeouts++
	if s.Slowed() {
		if s.Since.IsZero() {
			s.Since = c.FinishedAt
		}
		s.RestsUntil = c.FinishedAt.Add(min(mostSlowPause, firstSlowPause<<min(s.Timeouts-slowAfter, 10)))
	}
	return s
}

// EndedBy says whether w is of other code than that which takes too long.
func (s Slowdown) EndedBy(w Want) bool {
	return s.Environment == w.Environment && s.Apart == w.Priority.Apart() && s.Version != w.Version
}

// String is a sentence for people.
func (s Slowdown) String() string {
	what := "catalogs"
	if s.Apart {
		what = "previews"
	}
	return fmt.Sprintf("%s of %s are compiled one at a time and with pauses since %s: %d in a row took too long", what, s.Environment,
		s.Since.UTC().Format(time.RFC3339), s.Timeouts)
}
