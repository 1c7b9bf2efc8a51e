package deliver

import (
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Applied is the catalog that a node last said it applied, other than in noop mode.
type Applied struct {
	UUID       string       // catalog_uuid; empty: it said nothing yet
	CodeID     string       // code_id
	Catalog    fleet.Digest // that has this uuid; empty: none that is known here
	Generation int64        // that has this uuid; 0: no kept one
	At         time.Time    // when the run began
}

// State is how what a node applied stands to what it may have.
type State string

// The states.
const (
	Current State = "current" // it applied what it may have
	Behind  State = "behind"  // it applied what it had before
	Foreign State = "foreign" // it applied what it was not given here
	Unknown State = "unknown" // it did not say
)

// Judge compares what a node applied with its pointer. since is when the pointer became
// what it is: a catalog that nothing is known of any more may have been applied before
// that, but not after.
func Judge(p Pointer, since time.Time, a Applied) State {
	switch {
	case a.UUID == "":
		return Unknown
	case a.UUID == p.UUID || a.Catalog != "" && a.Catalog == p.Catalog:
		return Current
	case a.Generation != 0 || a.Catalog != "" && p.Mode == Live || a.At.Before(since):
		return Behind
	}
	return Foreign
}
