package broker

import (
	"net"
	"time"
)

// Rivals is what is known of connections of one client that take each other's place. One agent does so after its
// connection broke, once; two agents with one certificate do so again and again, since each connects again when it was superseded.
type Rivals struct {
	Count int       // how often, with less than rivalTime between
	Last  time.Time // when it happened last; zero: it did not
	Other string    // address and port of the other one
}

// Within rivalTime, rivalCount connections that take each other's place are more than one agent's.
const (
	rivalTime  = 5 * time.Minute
	rivalCount = 3
)

// again is what is known when a connection from other was superseded now.
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
