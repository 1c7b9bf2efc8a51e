package inventory

import (
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Presence is the connection of a node's agent, or its last one.
type Presence struct {
	Server   string // that it is connected to
	Since    time.Time
	Until    time.Time // it ended; zero: it did not
	Agent    string    // how the agent calls itself, with its version; may be empty
	Protocol string    // "PCP 1" or "PCP 2"
	Shared   string    // why it seems that several agents have the node's certificate; empty: they do not
}

// Presences tells which agents are connected now. It is asked for each node that is
// shown, by many at the same time, and answers from memory. Of a node that is not connected it tells the last connection; that
// is from no time if there never was one.
type Presences interface {
	Presence(node fleet.Certname) (Presence, bool)
}
