package hint

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Relay carries hints between the servers that use the same records: each has one. Hints are of a kind, and of an id, which may be
// empty: any may be meant. The same hint twice is one, as long as it was not sent.
//
// A hint that does not arrive costs its receiver a poll. Nil is the Relay of a server that is alone.
type Relay struct {
	publish func([]byte) error

	mu    sync.Mutex
	here  map[string]func(id string)
	sends map[string]map[string]bool // not sent yet: ids by kind
	more  chan struct{}
}

// The bounds of what is sent at a time: hints of a kind about more ids say that any may be meant.
const (
	maxIDs     = 500
	sendAtMost = 10 * time.Millisecond // one message
)

// NewRelay returns a Relay that sends with publish, which must not block. What others sent is told to Heard.
func NewRelay(publish func([]byte) error) *Relay {
	return &Relay{publish: publish, here: map[string]func(string){}, sends: map[string]map[string]bool{}, more: make(chan struct{}, 1)}
}

// Join has here told of hints of a kind that come from other servers, and returns what tells them one. Both do not block. A kind is
// joined once.
func (r *Relay) Join(kind string, here func(id string)) (others func(id string)) {
	if r == nil {
		return func(string) {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.here[kind] = here
	return func(id string) { r.add(kind, id) }
}

func (r *Relay) add(kind, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := r.sends[kind]
	switch {
	case ids == nil:
		r.sends[kind] = map[string]bool{id: true}
	case ids[""]:
	case id == "" || len(ids) >= maxIDs:
		r.sends[kind] = map[string]bool{"": true}
	default:
		ids[id] = true
	}
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// Run sends what is to be sent until ctx is done.
func (r *Relay) Run(ctx context.Context) error {
	tick := time.NewTicker(sendAtMost)
	defer tick.Stop()
	for {
		select {
		case <-r.more:
			r.send()
		case <-ctx.Done():
			return nil
		}
		tick.Reset(sendAtMost)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// send sends what there is. What does not get through is lost, as hints may be.
func (r *Relay) send() {
	r.mu.Lock()
	message := make(map[string][]string, len(r.sends))
	for kind, ids := range r.sends {
		for id := range ids {
			message[kind] = append(message[kind], id)
		}
	}
	clear(r.sends)
	r.mu.Unlock()
	if data, err := json.Marshal(message); err == nil {
		_ = r.publish(data)
	}
}

// Heard takes what another server sent. Kinds that this version does not know are passed over.
func (r *Relay) Heard(data []byte) {
	var message map[string][]string
	if json.Unmarshal(data, &message) != nil {
		return
	}
	for kind, ids := range message {
		r.mu.Lock()
		here := r.here[kind]
		r.mu.Unlock()
		if here == nil {
			continue
		}
		for _, id := range ids {
			here(id)
		}
	}
}

// Missed is called when hints may have been lost: everything may be meant.
func (r *Relay) Missed() {
	r.mu.Lock()
	all := make([]func(string), 0, len(r.here))
	for _, here := range r.here {
		all = append(all, here)
	}
	r.mu.Unlock()
	for _, here := range all {
		here("")
	}
}
