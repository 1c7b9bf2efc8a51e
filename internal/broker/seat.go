package broker

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/wire"
)

// Seat is a session as the records have it, for the brokers of all servers. Of two sessions of a client, the one with the higher number
// came later.
type Seat struct {
	Presence
	Server string
	Number int64 // of all sessions of all servers, from 1
}

// Place is what tells a seat.
type Place struct {
	URI    wire.URI
	Number int64
}

// Place is the seat's.
func (s Seat) Place() Place { return Place{s.URI, s.Number} }

// Tally counts the seats of a server, so that two who know them can compare that.
type Tally struct {
	Count int
	Sum   int64 // of their numbers
}

func (t *Tally) add(number int64) { t.Count, t.Sum = t.Count+1, t.Sum+number }

func (t *Tally) take(number int64) { t.Count, t.Sum = t.Count-1, t.Sum-number }

// Roster keeps who is connected to which server. Each method is one transaction and may be called concurrently, also from several
// processes.
type Roster interface {
	// TakeSeats notes sessions of a server, each under the next number, in order; each takes the place of what its client had before, on any
	// server. It returns the numbers. Of a client there is one session at most.
	TakeSeats(ctx context.Context, server string, who []Presence) (numbers []int64, err error)
	// LeaveSeats forgets seats, unless later ones have taken their place.
	LeaveSeats(ctx context.Context, places []Place) error
	// ClearSeats forgets all seats of a server, and counts them.
	ClearSeats(ctx context.Context, server string) (int, error)
	// Tallies counts the seats of each server that has any. newest is the highest number that was given: whatever has it or a lower one, and
	// is asked for afterwards, is there or was forgotten.
	Tallies(ctx context.Context) (all map[string]Tally, newest int64, err error)
	// Seat is that of a client, if it has one.
	Seat(ctx context.Context, uri wire.URI) (seat Seat, ok bool, err error)
	// Seats is all of a server, by URI. What Rivals knows is not kept.
	Seats(ctx context.Context, server string) ([]Seat, error)
}

// Moves is what the broker of a server tells the others: what has changed in the records. It is a hint.
type Moves struct {
	Server string
	Came   []Seat
	Went   []Place
	Shared []Sharing
	Gone   bool // the server stops: none of its seats are left
}

// Sharing is what was learnt of the agents that take each other's place as a client.
type Sharing struct {
	Place

	Rivals Rivals
}

// maxMoves is how many of each there are in one Moves.
const maxMoves = 500

// Others is how a broker works together with those of other servers.
type Others struct {
	Server string // this one
	Roster Roster
	// Alive is the servers that are there, as far as anybody can know, this one among them or not. The clients of others do not count.
	Alive func(ctx context.Context) (map[string]bool, error)
	// Pass hands a message to the broker of another server, which has its target. NotFound: that broker has not. Unavailable: nobody knows.
	Pass func(ctx context.Context, server string, m wire.Message) error
	// Tell tells the other brokers. It must not block. What it loses they find in the records.
	Tell func(Moves)
	// Came and Went are told of clients of other brokers. They must not block.
	Came, Went func(Presence)
	// Look is how often to look who of the servers is there; 1 s. Compare is how often to compare with the records; 10 s, and each Look
	// while Deaf says that nothing can be heard of others. A nil Deaf never does.
	Look, Compare time.Duration
	Deaf          func() bool
}

func (o *Others) withDefaults() *Others {
	if o == nil {
		return nil
	}
	filled := *o
	if filled.Look <= 0 {
		filled.Look = time.Second
	}
	if filled.Compare <= 0 {
		filled.Compare = 10 * time.Second
	}
	if filled.Deaf == nil {
		filled.Deaf = func() bool { return false }
	}
	return &filled
}
