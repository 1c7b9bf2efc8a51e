package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// MaxBytes is the most that a message may have.
const MaxBytes = 512 << 10

// The bounds of what a subscription may hold that its subscriber has not taken. What comes beyond is lost.
const (
	WaitingMessages = 16_384
	WaitingBytes    = 64 << 20
)

// Bus is one server's access to the messages between servers. See the package comment.
type Bus interface {
	// Publish hands data to all other servers that subscribed to a subject. It does not wait for them, and does not keep data. Nil
	// does not say that anybody got it.
	Publish(subject string, data []byte) error
	// Request hands data to another server that subscribed to a subject, and returns its answer. It ends with ctx at the latest.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
	// Subscribe has messages brought to a subscriber until stop is called, those that are published from now on. A message that is being
	// taken then may be taken to its end.
	Subscribe(s Subscriber) (stop func(), err error)
	// State is how it is now.
	State() State
	// Close ends all subscriptions, and waits until no message is taken any more. Publish and Request are Unavailable afterwards.
	Close() error
}

// Subscriber takes messages.
type Subscriber struct {
	Subject string
	Group   string // of subscribers, of whom one gets each message; empty: each gets all
	// Take takes a message, which may be kept. What it returns is the answer if this is a request, and nothing otherwise. Messages of the same
	// subscription wait meanwhile. ctx ends when the bus is closed.
	Take func(ctx context.Context, subject string, data []byte) ([]byte, error)
	// Gap is told after messages may have been lost. It must not block. Nil: nobody asks.
	Gap func()
}

// What carries the messages of a bus.
const (
	NATS    = "nats"
	Process = "process"
)

// State is how a bus is.
type State struct {
	Kind     string    // NATS or Process
	Up       bool      // messages get through
	Since    time.Time // it is up, or down
	Problem  string    // why it is not up
	Place    string    // the server of the bus that this one is connected to
	Sent     int64     // messages
	Received int64
	Lost     int64 // messages that a slow subscriber did not get, as far as is known
	Refused  int64 // messages that went nowhere
	Gaps     int64 // how often messages may have been lost
}

// Word is a server's name as a word of subjects.
func Word(server string) string {
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:6])
}

// Matches tells whether a subject is one that a subscription is for.
func Matches(subscribed, subject string) bool {
	for {
		want, wants, more := strings.Cut(subscribed, ".")
		if want == ">" {
			return subject != ""
		}
		have, rest, further := strings.Cut(subject, ".")
		if have == "" || want != "*" && want != have {
			return false
		}
		if !more || !further {
			return more == further
		}
		subscribed, subject = wants, rest
	}
}
