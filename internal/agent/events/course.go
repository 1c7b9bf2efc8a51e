package events

import (
	"time"

	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// course is how far one run is.
type course struct {
	cfg  *Config
	id   string
	tail Tail

	window []item
	bytes  int  // of the window
	sent   int  // so many of the window are on their way
	last   int  // number of the last event that was read
	stored int  // the server has everything up to here; unknown before its first answer
	known  bool // it has answered
	over   bool // there is nothing more to read

	freshAt time.Time // the oldest event was read that was not sent
	sentAt  time.Time // the oldest was sent that is on its way
	wait    time.Duration
	away    bool // the last message could not be sent
}

// item is an event and its size.
type item struct {
	event pxp.RunEvent
	bytes int
}

// The longest pause between two attempts, and how many events are read at once.
const (
	longestWait = time.Minute
	readAtOnce  = 200
)

func newCourse(cfg *Config, id string) *course { return &course{cfg: cfg, id: id, wait: cfg.Patience} }

func (c *course) close() {
	if c.tail != nil {
		_ = c.tail.Close() // it was read only
		c.tail = nil
	}
}

// fill reads what there is room for.
func (c *course) fill(now time.Time) error {
	if c.tail == nil && !c.over {
		tail, err := c.cfg.Log.Open(c.id)
		if err != nil {
			return err
		}
		c.tail = tail
	}
	for !c.over && c.bytes < c.cfg.WindowBytes {
		events, over, err := c.tail.Next(readAtOnce)
		if err != nil {
			return err
		}
		for _, e := range events {
			c.read(e, now)
		}
		if over {
			c.finish(now)
		}
		if len(events) == 0 {
			return nil
		}
	}
	return nil
}

// read puts an event into the window, and what is missing before it.
func (c *course) read(e pxp.RunEvent, now time.Time) {
	if e = e.Fit(); c.known && e.Last() <= c.stored || e.N <= c.last {
		return
	}
	if before := max(c.last, c.stored); (c.known || c.last > 0) && e.N > before+1 {
		c.add(pxp.RunEvent{N: before + 1, Kind: pxp.EventsMissing, Missing: e.N - before - 1, At: e.At}, now)
	}
	c.add(e, now)
	if e.Kind == pxp.RunEnded {
		c.over = true
		c.close()
	}
}

func (c *course) add(e pxp.RunEvent, now time.Time) {
	if c.sent == len(c.window) {
		c.freshAt = now
	}
	size := len(pxp.Data(e)) + 1
	c.window = append(c.window, item{e, size})
	c.bytes += size
	c.last = e.Last()
}

// finish ends a run whose writer is gone: it says so itself, or was killed.
func (c *course) finish(now time.Time) {
	if c.over {
		return
	}
	c.over = true
	c.close()
	if n := max(c.last, c.stored); n > 0 {
		c.add(pxp.RunEvent{N: n + 1, Kind: pxp.RunEnded, At: now.UTC(), Status: pxp.RunInterrupted}, now)
	}
}

// done says whether everything is acknowledged and nothing more comes.
func (c *course) done() bool { return c.over && len(c.window) == 0 }

// again forgets that anything was sent.
func (c *course) again() {
	if c.sent > 0 {
		c.freshAt = time.Time{}
	}
	c.sent, c.away, c.wait = 0, false, c.cfg.Patience
}

// taken takes the server's word of how much it has.
func (c *course) taken(last int) {
	gone := 0
	for gone < len(c.window) && c.window[gone].event.Last() <= last {
		c.bytes -= c.window[gone].bytes
		gone++
	}
	c.window, c.sent = c.window[gone:], max(0, c.sent-gone)
	c.known, c.wait = true, c.cfg.Patience
	if gone > 0 && c.sent > 0 {
		c.sentAt = time.Now()
	}
	if len(c.window) > 0 && c.window[0].event.N > last+1 { // it wants what is before
		c.close()
		c.window, c.bytes, c.sent, c.last, c.over = nil, 0, 0, 0, false
	}
	c.stored = last
}

// send sends what should be sent now, and says when to look again.
func (c *course) send(now time.Time) time.Duration {
	if c.sent > 0 || c.away {
		if left := c.wait - now.Sub(c.sentAt); left > 0 && (c.away || c.sent == len(c.window)) {
			return left
		} else if left <= 0 {
			c.sent, c.away, c.freshAt, c.wait = 0, false, time.Time{}, min(2*c.wait, longestWait)
		}
	}
	for c.sent < len(c.window) {
		count, full := c.batch()
		if left := c.cfg.Gather - now.Sub(c.freshAt); c.sent > 0 && !full && left > 0 {
			return left
		}
		events := make([]pxp.RunEvent, count)
		for i := range events {
			events[i] = c.window[c.sent+i].event
		}
		if c.sent == 0 {
			c.sentAt = now
		}
		err := c.cfg.Send(wire.Message{Type: wire.RunEvents, Target: wire.Broker, Data: pxp.Data(pxp.RunEvents{Run: c.id, Events: events})})
		if err != nil {
			c.away, c.sentAt = true, now
			return c.wait
		}
		c.sent += count
		c.freshAt = now
	}
	if c.sent > 0 {
		return c.wait - now.Sub(c.sentAt)
	}
	return c.cfg.Poll
}

// batch is how many events go into the next message, and whether no more would.
func (c *course) batch() (count int, full bool) {
	bytes := 0
	for _, one := range c.window[c.sent:] {
		if count == pxp.MaxRunEvents || count > 0 && bytes+one.bytes > c.cfg.BatchBytes {
			return count, true
		}
		count++
		bytes += one.bytes
	}
	return count, bytes >= c.cfg.BatchBytes
}
