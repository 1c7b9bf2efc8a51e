package job

import (
	"fmt"
	"time"
)

// deed is what the dispatcher does about a run that was sent or runs.
type deed uint8

const (
	nothing   deed = iota
	sendAgain      // the order
	askAbout       // how it stands
	tellStop       // to stop
)

// attend decides what is due for a run that was sent or runs: what is stored first, and what
// is sent then. since is when the server began to look: nodes may have had no chance to say anything before.
func attend(j Job, r Run, s Settings, since, now time.Time, connected bool) (Event, deed) {
	e := Event{Run: r.ID, What: WasLeft, At: now}
	end := deadline(j, r, s, since)
	e.Due = now.Add(min(s.Poll, max(0, end.Sub(now))))
	switch {
	case r.Ending != "":
		return giveUp(r, e, connected), nothing
	case r.State == Sent && !now.Before(end):
		e.What, e.State, e.Reason = DroppedOut, Lost, fmt.Sprintf("the order was sent %d times, and its node never said that it has it", r.Attempts)
		return e, nothing
	case !now.Before(end) && !connected:
		e.What, e.State, e.Reason = DroppedOut, Lost, "its time is over, and its node is not connected"
		return e, nothing
	case !now.Before(end):
		e.What, e.State, e.Due = ToldToStop, TimedOut, now.Add(s.StopGrace)
		e.Reason = fmt.Sprintf("it took longer than %s", j.Spec.Timeout)
		return e, tellStop
	case !connected:
		return e, nothing
	case r.State == Sent:
		e.What = WasResent
		e.Due = now.Add(min(s.pause(r.Attempts+1), max(0, end.Sub(now))))
		return e, sendAgain
	}
	e.What = WasAsked
	return e, askAbout
}

// giveUp ends a run that was told to stop and did not.
func giveUp(r Run, e Event, connected bool) Event {
	e.What, e.State, e.Reason = DroppedOut, r.Ending, r.Reason+"; its node did not say that it has ended"
	if !connected {
		e.State, e.Reason = Lost, r.Reason+"; its node is not connected, it may still run"
	}
	return e
}

// deadline is when the time of a run is over. A run that a server took over from an earlier one
// has at least until nodes had the time to connect.
func deadline(j Job, r Run, s Settings, since time.Time) time.Time {
	begun, limit := r.StartedAt, j.Spec.Timeout
	if r.State == Sent { // its own time has not begun; its node may have to connect before it can say that it has the order
		begun, limit = r.SentAt, max(limit, s.Reconnect)
	}
	end := begun.Add(limit)
	if grace := since.Add(s.Reconnect); begun.Before(since) && end.Before(grace) {
		return grace
	}
	return end
}

// pause is how long to wait after an order was sent for the n-th time.
func (s Settings) pause(n int) time.Duration {
	return min(s.Resend<<min(max(0, n-1), 10), max(s.Poll, s.Resend))
}

// patience is until when a job waits for nodes that are not connected.
func patience(j Job, s Settings, since time.Time) time.Time {
	end := j.CreatedAt.Add(j.Spec.WaitOffline)
	if grace := since.Add(s.Reconnect); j.CreatedAt.Before(since) && end.Before(grace) {
		return grace
	}
	return end
}
