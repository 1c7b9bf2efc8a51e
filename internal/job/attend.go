package job

import (
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// deed is what the dispatcher does about a run that was sent or runs.
type deed uint8

const (
	nothing   deed = iota
	sendAgain      // the order
	askAbout       // how it stands
	tellStop       // to stop
)

// sight is what is known when the dispatcher looks at a run.
type sight struct {
	now       time.Time
	since     time.Time // the server began to look; before, nodes may have had no chance to say anything
	connected bool
	link      Link // of its node, if that is connected
	quiet     unanswered
}

// attend decides what is due for a run that was sent or runs: what is stored first, and what
// is sent then.
func attend(j Job, r Run, s Settings, see sight) (Event, deed) {
	now := see.now
	e := Event{Run: r.ID, What: WasLeft, At: now, Reason: r.Reason}
	end := deadline(j, r, s, see.since)
	e.Due = now.Add(min(s.Poll, max(0, end.Sub(now))))
	switch {
	case r.Ending != "":
		return giveUp(r, e, see), nothing
	case r.State == Sent && !now.Before(end):
		return e.lost(fmt.Sprintf("the order was sent %s, and its node never said that it has it", fault.Count(r.Attempts, "time")), see), nothing
	case !now.Before(end) && !see.connected:
		return e.lost("its time is over, and its node is not connected", see), nothing
	case !now.Before(end):
		e.What, e.State, e.Due = ToldToStop, TimedOut, now.Add(s.StopGrace)
		e.Reason = fmt.Sprintf("it took longer than %s", fault.Duration(j.Spec.Timeout))
		return e, tellStop
	case !see.connected:
		e.Reason = away(r, see)
		return e, nothing
	case see.link.Unreachable != "":
		e.Reason = see.link.Unreachable
		return e, nothing
	case see.quiet.asked >= s.Questions && now.Sub(see.quiet.since) >= s.Silence:
		mute := now.Sub(see.quiet.since).Round(time.Second)
		return e.lost(fmt.Sprintf("its node is connected, and answered none of %s in %s", fault.Count(see.quiet.asked, "question"), fault.Duration(mute)), see),
			nothing
	}
	e.Reason = unansweredText(see)
	if r.State == Sent && see.link.Shared == "" {
		e.What = WasResent
		e.Due = now.Add(min(s.pause(r.Attempts+1), max(0, end.Sub(now))))
		return e, sendAgain
	}
	e.What = WasAsked // of agents that share a certificate one may have the order, and another one must not get it too
	return e, askAbout
}

// lost ends a run of which nobody knows how it ended.
func (e Event) lost(why string, see sight) Event {
	e.What, e.State, e.Reason = DroppedOut, Lost, join(why, see.link.Shared)
	return e
}

// notConnected begins the reason of a run whose node is away.
const notConnected = "its node is not connected since "

// away is that reason. It stays what it was while the node is away.
func away(r Run, see sight) string {
	if strings.HasPrefix(r.Reason, notConnected) {
		return r.Reason
	}
	return notConnected + see.now.UTC().Format(time.DateTime) + " UTC"
}

// unansweredText is the reason of a run whose node is connected. One question without an answer says nothing yet: the answer may be
// on its way.
func unansweredText(see sight) string {
	text := ""
	if see.quiet.asked > 1 {
		text = fmt.Sprintf("asked %s since %s UTC, its node has not answered", fault.Count(see.quiet.asked, "time"), see.quiet.since.UTC().Format(time.DateTime))
	}
	return join(text, see.link.Shared)
}

// giveUp ends a run that was told to stop and did not.
func giveUp(r Run, e Event, see sight) Event {
	e.What, e.State, e.Reason = DroppedOut, r.Ending, r.Reason+"; its node did not say that it has ended"
	if !see.connected {
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

// unreachableFor is how long a job waits at least for nodes that are connected to servers which cannot be reached.
const unreachableFor = 5 * time.Minute

// detour is until when a job waits for them.
func detour(j Job, since time.Time) time.Time {
	begun := j.CreatedAt
	if begun.Before(since) {
		begun = since
	}
	return begun.Add(max(unreachableFor, j.Spec.WaitOffline))
}

// patience is until when a job waits for nodes that are not connected.
func patience(j Job, s Settings, since time.Time) time.Time {
	end := j.CreatedAt.Add(j.Spec.WaitOffline)
	if grace := since.Add(s.Reconnect); j.CreatedAt.Before(since) && end.Before(grace) {
		return grace
	}
	return end
}
