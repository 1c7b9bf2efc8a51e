package history

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fleet"
)

// The bounds of what is kept.
const (
	MaxCalls = 100_000
	MaxText  = 1000 // bytes of an input, and of which nodes were meant
)

// Call is a call of an action that has ended.
type Call struct {
	ID        int64 // given by the store: a later call has a higher one
	Actor     string
	ActorKind fleet.ActorKind
	Module    string
	Action    string
	Input     string // JSON, without what is secret; cut if it is long
	Targets   string // which nodes were meant, for people; cut if it is long
	Nodes     int    // that were meant
	Counts    map[action.Code]int
	Began     time.Time
	Ended     time.Time
	Left      bool // who asked left before all had answered
}

// Page is which calls are wanted, the newest first.
type Page struct {
	Before int64 // IDs below this; 0: from the newest
	Limit  int
	Actor  string // empty: all
	Module string // empty: all
}

// Store keeps calls. Its methods may be called concurrently.
type Store interface {
	// SaveCall keeps a call under a new ID, and forgets the call that is MaxCalls older. It keeps nothing of c.
	SaveCall(ctx context.Context, c Call) (id int64, err error)
	// Calls is a page of calls.
	Calls(ctx context.Context, p Page) ([]Call, error)
	// Call is one. NotFound.
	Call(ctx context.Context, id int64) (Call, error)
	// PruneCalls forgets calls that ended before.
	PruneCalls(ctx context.Context, before time.Time) (int, error)
}

// Keeper writes down calls.
type Keeper struct {
	Store Store
	Log   *slog.Logger
}

// patience is how long a record may take to be written: who asked waits for it.
const patience = 5 * time.Second

// Keep writes a call down, also when ctx is done.
func (k Keeper) Keep(ctx context.Context, c Call) {
	c.Input, c.Targets = short(c.Input), short(c.Targets)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if _, err := k.Store.SaveCall(ctx, c); err != nil {
		k.Log.ErrorContext(ctx, "a call was not recorded", "module", c.Module, "action", c.Action, "actor", c.Actor, "err", err)
	}
}

// short cuts a text to MaxText bytes.
func short(text string) string {
	if len(text) <= MaxText {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:MaxText-len(more)], "") + more
}
