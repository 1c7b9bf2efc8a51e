package move

import (
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// State is what a database says of a move.
type State string

// The states. A server uses a Free one only.
const (
	Free     State = ""
	Arriving State = "arriving" // its rows came from another database, and do not count yet
	Left     State = "left"     // its rows went to another database, and count there
)

// Mark is what a database says of a move.
type Mark struct {
	ID    string // of the move
	State State
	Other string // the other database, in words without a password
	At    time.Time
}

// Standing is a database before a move.
type Standing struct {
	Mark

	Name string // in words without a password
	Used bool   // it has rows
}

// Refuse is what is said to whoever wants to use a database that has a mark.
func (m Mark) Refuse() error {
	switch m.State {
	case Free:
		return nil
	case Arriving:
		return &fault.Error{
			Kind: fault.Conflict, Detail: "the move from " + m.Other + " into this database did not end",
			Hint: "run the same `tutti move` again, or start the server with the settings that it had before",
		}
	case Left:
	}
	return &fault.Error{
		Kind: fault.Conflict, Detail: "the records of this database moved to " + m.Other + " on " + m.At.UTC().Format(time.RFC3339),
		Hint: "use the settings that were given to `tutti move`; docs/many-servers.md says how to move back, and how to use these records as they are",
	}
}

// Step is what is to be done.
type Step int

// The steps.
const (
	Copy    Step = iota // everything
	Confirm             // only the last step is missing
	Done                // nothing
)

// Next says what a move from one database to another one has to do, of what both say.
func Next(from, to Standing) (Step, error) {
	switch {
	case from.State == Arriving:
		return 0, from.Refuse()
	case from.State == Left && from.Other != to.Name:
		return 0, from.Refuse()
	case from.State == Left && to.State == Free && to.Used:
		return Done, nil
	case from.State == Left && to.State == Arriving && to.ID == from.ID:
		return Confirm, nil
	case from.State == Left:
		return 0,
			fault.New(fault.Conflict,
				"the records of %s moved to %s, where they are no more: restore a backup (docs/backup.md), or use the old ones as they are (tutti backup accept)",
				from.Name, to.Name)
	case to.State == Arriving && to.Other == from.Name:
		return Copy, nil
	case to.State == Arriving:
		return 0, fault.New(fault.Conflict, "%s holds a move from %s that did not end: make another database", to.Name, to.Other)
	case to.State == Left:
		return 0, fault.New(fault.Conflict, "%s holds records that moved to %s: make another database, or remove that one", to.Name, to.Other)
	case to.Used:
		return 0, fault.New(fault.Conflict, "%s has records: nothing is overwritten; make another database, or move that one away", to.Name)
	}
	return Copy, nil
}
