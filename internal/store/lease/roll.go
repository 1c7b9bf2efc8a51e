package lease

import (
	"context"
	"log/slog"
	"time"
)

// Server is one that uses the records, and may hold leases.
type Server struct {
	ID      string // as holder of leases
	Address string // https://HOST:PORT
	Version string // of the program
	Started time.Time
	Seen    time.Time     // when it was there last
	Silent  time.Duration // for how long it was not seen
}

// Roll keeps which servers there are. Each method is one transaction and may be called concurrently, also from several processes. Times
// are those of the store's own clock.
type Roll interface {
	// EnrolServer notes that a server has started, by its ID, address and version.
	EnrolServer(ctx context.Context, s Server) error
	// SeeServer notes that a server is there. One that is not enrolled stays unknown.
	SeeServer(ctx context.Context, id string) error
	// LeaveServer forgets a server that stops.
	LeaveServer(ctx context.Context, id string) error
	// ForgetServers forgets those that were not seen for so long, and counts them.
	ForgetServers(ctx context.Context, silent time.Duration) (int, error)
	// Servers is all that are known, by ID.
	Servers(ctx context.Context) ([]Server, error)
}

// Attend enrols a server, says again and again that it is there, and takes it off when ctx is done. What fails is tried again the next time.
func Attend(ctx context.Context, roll Roll, s Server, every time.Duration, log *slog.Logger) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	note := roll.EnrolServer
	for {
		if err := note(ctx, s); err == nil {
			note = func(ctx context.Context, s Server) error { return roll.SeeServer(ctx, s.ID) }
		} else if ctx.Err() == nil {
			log.WarnContext(ctx, "the database was not told that this server is there, will retry", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackMay)
			defer cancel()
			if err := roll.LeaveServer(leaving, s.ID); err != nil {
				log.DebugContext(ctx, "the database was not told that this server stops", "err", err)
			}
			return nil
		}
	}
}
