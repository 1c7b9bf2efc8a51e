package fleet

import "time"

// Stamp says which version of a rule something is, and who made it. A rule that was taken away has
// one more version, which says so.
type Stamp struct {
	Version int // from 1
	Author  string
	At      time.Time
	Removed bool
}
