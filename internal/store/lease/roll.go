package lease

import (
	"context"
	"log/slog"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Server is one that uses the records, and may hold leases.
type Server struct {
	ID       string   // as holder of leases
	Address  string   // https://HOST:PORT
	Version  string   // of the program
	Roles    []string // what it does; empty: everything
	Started  time.Time
	Seen     time.Time     // when it was there last
	Silent   time.Duration // for how long it was not seen
	Draining Drain
	Near     *Near // what one near its nodes says of itself; nil: it is not one, or has not said it yet
}

// There tells whether a server counts as there: it was seen within the time of a lease. What it does alone is done by another one when it is not.
func (s Server) There() bool { return s.Silent < Shared().TTL }

// Silence is for how long a server was not seen. One that was seen later than now was seen by a clock that was ahead: that was not now either.
func Silence(seen, now time.Time) time.Duration { return now.Sub(seen).Abs() }

// Drain asks a server to do no more, before it is stopped.
type Drain struct {
	Asked time.Time     // zero: nobody did
	Over  time.Duration // the time in which it closes its connections
}

// Roll keeps which servers there are. Each method is one transaction and may be called concurrently, also from several processes. Times
// are those of the store's own clock.
type Roll interface {
	// EnrolServer notes that a server has started, by its ID, address, version and roles. Nobody has asked it to drain since.
	EnrolServer(ctx context.Context, s Server) error
	// SeeServer notes that a server is there, and returns it. One that is not enrolled stays unknown: NotFound.
	SeeServer(ctx context.Context, id string) (Server, error)
	// SayNear notes how a server near its nodes stands, until it starts again. NotFound.
	SayNear(ctx context.Context, id string, n Near) error
	// DrainServer asks a server to drain. What was asked first stands. NotFound.
	DrainServer(ctx context.Context, id string, over time.Duration) error
	// LeaveServer forgets a server that stops.
	LeaveServer(ctx context.Context, id string) error
	// ForgetServers forgets those that were not seen for so long, and counts them.
	ForgetServers(ctx context.Context, silent time.Duration) (int, error)
	// Servers is all that are known, by ID.
	Servers(ctx context.Context) ([]Server, error)
}

// Attendance says again and again that a server is there.
type Attendance struct {
	Roll   Roll
	Server Server // by ID, address, version and roles
	Every  time.Duration
	Clock  *Clock      // is set by what the records answer; may be nil
	Drain  func(Drain) // is told once that the server is to drain; may be nil
	Log    *slog.Logger
}

// Run enrols the server, and takes it off when ctx is done. What fails is tried again the next time.
func (a Attendance) Run(ctx context.Context) error {
	tick := time.NewTicker(a.Every)
	defer tick.Stop()
	enrolled, told := false, false
	for {
		seen, err := a.note(ctx, &enrolled)
		if err != nil && ctx.Err() == nil {
			a.Log.WarnContext(ctx, "the database was not told that this server is there, will retry", "err", err)
		}
		if !seen.Draining.Asked.IsZero() && !told && a.Drain != nil {
			told = true
			a.Drain(seen.Draining)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackMay)
			defer cancel()
			if err := a.Roll.LeaveServer(leaving, a.Server.ID); err != nil {
				a.Log.DebugContext(ctx, "the database was not told that this server stops", "err", err)
			}
			return nil
		}
	}
}

// note enrols the server once, then sees it. One that was forgotten, because it was cut off for very long, is enrolled again.
func (a Attendance) note(ctx context.Context, enrolled *bool) (seen Server, err error) {
	if !*enrolled {
		if err := a.Roll.EnrolServer(ctx, a.Server); err != nil {
			return seen, err
		}
		*enrolled = true
	}
	asked := time.Now()
	seen, err = a.Roll.SeeServer(ctx, a.Server.ID)
	switch {
	case fault.Is(err, fault.NotFound):
		*enrolled = false
	case err == nil && a.Clock != nil:
		a.Clock.Set(seen.Seen, asked)
	}
	return seen, err
}
