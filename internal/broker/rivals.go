package broker

import (
	"net"
	"time"
)

// Rivals is what is known of agents that take each other's place: of connections whose client was still there when a later one
// came in its name. One agent leaves its connection before it makes another one, however bad its network is; two agents with
// one certificate do so again and again, since each connects again when it was superseded.
type Rivals struct {
	Count int       // how often, with less than rivalTime between
	Last  time.Time // when it happened last; zero: it did not
	Other string    // address and port of the other one
}

// Within rivalTime, rivalCount connections that take each other's place are more than one agent's. Who was asked has answerTime to
// answer; until then no other connection of that client is asked, so that a client that answers nothing keeps one connection at most.
const (
	rivalTime  = 5 * time.Minute
	rivalCount = 3
	answerTime = 5 * time.Second
)

// rivalry notes that a client whose place was taken is still there.
func (b *Broker) rivalry(ousted Presence) {
	b.mu.Lock()
	s := b.sessions[ousted.URI]
	far, elsewhere := b.far.seats[ousted.URI]
	var known Rivals
	var remote string
	var place Place
	switch {
	case s != nil:
		s.rivals, s.asked = s.rivals.again(ousted.Remote, time.Now()), time.Time{}
		known, remote, place = s.rivals, s.who.Remote, Place{ousted.URI, s.number}
	case elsewhere:
		far.Rivals = far.Rivals.again(ousted.Remote, time.Now())
		b.far.seats[ousted.URI] = far
		known, remote, place = far.Rivals, far.Remote, far.Place()
	default: // who took its place has left meanwhile
		b.mu.Unlock()
		return
	}
	b.mu.Unlock()
	if o := b.cfg.Others; o != nil && place.Number > 0 {
		o.Tell(Moves{Server: o.Server, Shared: []Sharing{{place, known}}})
	}
	if known.Count == rivalCount {
		b.cfg.Log.Warn("two agents share one certificate, each takes the other one's place",
			"node", ousted.Certname, "uri", ousted.URI, "remote", remote, "other", ousted.Remote)
	}
}

// again is what is known when one from other was found still there.
func (r Rivals) again(other string, now time.Time) Rivals {
	if now.Sub(r.Last) >= rivalTime {
		r.Count = 0
	}
	return Rivals{Count: r.Count + 1, Last: now, Other: other}
}

// Shared says that more than one agent connects as this client, and from where; empty: it does not seem so.
func (p Presence) Shared(now time.Time) string {
	if p.Rivals.Count < rivalCount || now.Sub(p.Rivals.Last) >= rivalTime {
		return ""
	}
	here, there := host(p.Remote), host(p.Rivals.Other)
	if here == there {
		return "two agents share its certificate, both at " + here
	}
	return "two agents share its certificate, at " + min(here, there) + " and " + max(here, there)
}

func host(remote string) string {
	if h, _, err := net.SplitHostPort(remote); err == nil {
		return h
	}
	return remote
}
