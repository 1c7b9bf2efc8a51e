package job

import (
	"context"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Leave ends the runs of nodes from which nothing more is to be expected, and says why: what waits is skipped, what may run is lost.
func (s *Service) Leave(ctx context.Context, why string, nodes ...fleet.Certname) error {
	for part := range slices.Chunk(nodes, s.settings.Batch) {
		runs, err := s.Store.UnfinishedOf(ctx, part)
		if err != nil {
			return err
		}
		if len(runs) == 0 {
			continue
		}
		if _, err := s.apply(ctx, leaving(runs, why, s.Now())); err != nil {
			return err
		}
	}
	return nil
}

func leaving(runs []Run, why string, now time.Time) []Event {
	events := make([]Event, len(runs))
	for i, r := range runs {
		events[i] = Event{Run: r.ID, What: DroppedOut, State: Skipped, At: now, Reason: why}
		if r.State != Waiting {
			events[i].State, events[i].Reason = Lost, join(r.Ending.told(r.Reason), why+", and it may still run there")
		}
	}
	return events
}

// told is the reason of a run that was told to stop; of others it is how things stood, which is over.
func (s State) told(reason string) string {
	if s == "" {
		return ""
	}
	return reason
}

// doubt is an event that may not be the word of the node that has the order: when a second agent with the node's certificate
// has just taken the place of the first one, it knows nothing of what the first one does. It is asked again, until one agent stays.
func (s *Service) doubt(e Event, r Run) Event {
	link, connected := s.Sender.Connected(r.Node)
	now := s.Now()
	if e.What != Unknown || !connected || link.Shared == "" && now.Sub(link.Superseded) >= s.settings.Settle {
		return e
	}
	e.What, e.Due = Doubted, now.Add(s.settings.Resend)
	e.Reason = "its agent does not know it, which has just taken the place of an earlier connection"
	if link.Shared != "" {
		e.Reason = "the agent that was asked does not know it; " + link.Shared
	}
	return e
}
