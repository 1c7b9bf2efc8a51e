package compile

import (
	"context"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Pause says that nothing more is leased. What runs goes on, and what is wanted stays
// wanted.
type Pause struct {
	Environment fleet.Environment // empty: all of them
	By          string            // who paused
	Reason      string            // may be empty
	At          time.Time
}

// Pauses keeps what operators stopped, for all servers and over restarts. Whoever
// implements Queue implements it too; Lease heeds it. Every method may be called
// concurrently and is one transaction.
type Pauses interface {
	// Pause stores p in place of an earlier pause of the same environment.
	Pause(ctx context.Context, p Pause) error
	// Resume ends the pause of env (empty: that of all; those of single environments
	// stay); NotFound if there is none.
	Resume(ctx context.Context, env fleet.Environment) error
	// Pauses lists them by environment, that of all first.
	Pauses(ctx context.Context) ([]Pause, error)
}

// NotPaused is what Resume returns where nothing is paused.
func NotPaused(env fleet.Environment) error {
	if env == "" {
		return fault.New(fault.NotFound, "compiling as a whole is not paused")
	}
	return fault.New(fault.NotFound, "compiling for %s is not paused by itself", env)
}

// PauseOf finds the pause that stops env; that of all goes before its own.
func PauseOf(pauses []Pause, env fleet.Environment) (Pause, bool) {
	for _, p := range pauses {
		if p.Environment == "" || p.Environment == env {
			return p, true
		}
	}
	return Pause{}, false
}

// String is a sentence for people: "compiling is paused by alice since …: new disks".
func (p Pause) String() string {
	what := "compiling"
	if p.Environment != "" {
		what = fmt.Sprintf("compiling for %s", p.Environment)
	}
	text := fmt.Sprintf("%s is paused by %s since %s", what, p.By, p.At.UTC().Format(time.RFC3339))
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}
