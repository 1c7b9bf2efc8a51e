package broker

import (
	"sync"
	"sync/atomic"

	"github.com/tutti-project/tutti/internal/wire"
)

// messageCost is what a queued message takes besides its data.
const messageCost = 512

func costOf(m wire.Message) int64 { return int64(len(m.Data)) + messageCost }

// budget is the bytes that all queues together may hold.
type budget struct {
	limit int64
	used  atomic.Int64
}

func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// outbox is what a session has not read yet. An empty one holds no memory.
type outbox struct {
	limit int64   // bytes; one message fits into an empty outbox whatever its size
	all   *budget // shared with the others

	mu     sync.Mutex
	queue  []wire.Message
	bytes  int64
	awake  bool // somebody was told to fetch
	closed bool // takes nothing more
}

// refusal is why an outbox did not take a message.
type refusal uint8

const (
	taken   refusal = iota
	full            // its reader is too slow
	crowded         // all the others together are
	closed          // it goes away
)

// push queues a message. wake tells that nobody is fetching: the caller has to
// wake who writes.
func (o *outbox) push(m wire.Message) (wake bool, why refusal) {
	o.mu.Lock()
	defer o.mu.Unlock()
	cost := costOf(m)
	switch {
	case o.closed:
		return false, closed
	case o.bytes > 0 && o.bytes+cost > o.limit:
		return false, full
	case !o.all.take(cost):
		return false, crowded
	}
	o.queue = append(o.queue, m)
	o.bytes += cost
	wake, o.awake = !o.awake, true
	return wake, taken
}

// next takes the oldest message. When there is none the next push wakes again.
func (o *outbox) next() (m wire.Message, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		o.awake = false
		return m, false
	}
	m, o.queue[0] = o.queue[0], wire.Message{}
	if o.queue = o.queue[1:]; len(o.queue) == 0 {
		o.queue = nil
	}
	o.bytes -= costOf(m)
	o.all.give(costOf(m))
	return m, true
}

// close takes nothing more; what is there can still be fetched.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

// drop forgets what is there, too.
func (o *outbox) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.give(o.bytes)
	o.closed, o.queue, o.bytes = true, nil, 0
}
