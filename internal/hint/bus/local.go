package bus

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Local carries messages within a process. The zero value is ready. A server that is alone has one to itself: nobody hears it.
type Local struct {
	mu      sync.Mutex
	members map[*Member]bool
}

// Join makes a new member: one server's access.
func (l *Local) Join() *Member {
	ctx, end := context.WithCancel(context.Background())
	m := &Member{hub: l, ctx: ctx, end: end, subscriptions: map[*inbox]bool{}, state: State{Kind: Process, Up: true, Since: time.Now()}}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.members == nil {
		l.members = map[*Member]bool{}
	}
	l.members[m] = true
	return m
}

// Member is a Bus of a Local.
type Member struct {
	hub           *Local
	ctx           context.Context //nolint:containedctx // of what is taken, which begins in no call of anybody
	end           context.CancelFunc
	running       sync.WaitGroup
	subscriptions map[*inbox]bool // the hub's mu is held
	state         State           // the same
	sent          atomic.Int64
	received      atomic.Int64
	lost          atomic.Int64
	refused       atomic.Int64
	gaps          atomic.Int64
}

// parcel is a message on its way.
type parcel struct {
	subject string
	data    []byte
	answer  func([]byte, error) // nil: nobody waits for one
}

// inbox is a subscription with what waits for it.
type inbox struct {
	Subscriber

	mu      sync.Mutex
	waiting []parcel
	bytes   int
	gap     bool          // messages were lost since the last one that was taken
	more    chan struct{} // something waits
	stopped chan struct{}
}

// put is false if there is no room.
func (i *inbox) put(p parcel) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.waiting) >= WaitingMessages || i.bytes+len(p.data) > WaitingBytes {
		i.gap = true
		return false
	}
	i.waiting, i.bytes = append(i.waiting, p), i.bytes+len(p.data)
	select {
	case i.more <- struct{}{}:
	default:
	}
	return true
}

// next takes the oldest message; false: there is none. gap tells that some were lost before that.
func (i *inbox) next() (p parcel, is, gap bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	gap, i.gap = i.gap, false
	if len(i.waiting) == 0 {
		return p, false, gap
	}
	p, i.waiting[0] = i.waiting[0], parcel{}
	i.waiting, i.bytes = i.waiting[1:], i.bytes-len(p.data)
	return p, true, gap
}

// Publish implements Bus.
func (m *Member) Publish(subject string, data []byte) error {
	_, err := m.send(parcel{subject: subject, data: slices.Clone(data)})
	return err
}

// send puts a message where it belongs, and counts the subscriptions.
func (m *Member) send(p parcel) (reached int, err error) {
	if err := CheckSize(p.subject, p.data); err != nil {
		return 0, err
	}
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	if !m.hub.members[m] || !m.state.Up {
		m.refused.Add(1)
		return 0, errAway()
	}
	m.sent.Add(1)
	groups := map[string]bool{}
	for other := range m.hub.members {
		if other == m || !other.state.Up {
			continue
		}
		for i := range other.subscriptions {
			if !Matches(i.Subject, p.subject) || i.Group != "" && groups[i.Group] || p.answer != nil && reached > 0 {
				continue
			}
			reached++
			groups[i.Group] = true
			if i.put(p) {
				other.received.Add(1)
			} else {
				other.lost.Add(1)
			}
		}
	}
	return reached, nil
}

// errAway is what is said while there is no bus.
func errAway() error {
	return fault.New(fault.Unavailable, "the bus between servers cannot be reached")
}

// CheckSize refuses messages that no bus carries.
func CheckSize(subject string, data []byte) error {
	if len(data) > MaxBytes {
		return fault.New(fault.Invalid, "a message between servers may have %d bytes, and one to %s has %d", MaxBytes, subject, len(data))
	}
	return nil
}

// Request implements Bus.
func (m *Member) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	type answer struct {
		data []byte
		err  error
	}
	answered := make(chan answer, 1)
	p := parcel{subject: subject, data: slices.Clone(data), answer: func(data []byte, err error) { answered <- answer{data, err} }}
	reached, err := m.send(p)
	switch {
	case err != nil:
		return nil, err
	case reached == 0:
		return nil, Nobody(subject)
	}
	select {
	case a := <-answered:
		return a.data, a.err
	case <-ctx.Done():
		return nil, Silent(ctx, subject)
	case <-m.ctx.Done():
		return nil, errAway()
	}
}

// Told is an error as another server gets it: what is only for the log stays here.
func Told(err error) *fault.Error {
	told := &fault.Error{Kind: fault.Of(err), Detail: fault.Detail(err), Hint: fault.Hint(err)}
	if told.Detail == "" {
		told.Detail = "the other server could not do it; its log says why"
	}
	return told
}

// ErrNobody is wrapped by the error of a request that no server listens for, which tells it from the answer of one.
var ErrNobody = errors.New("nobody listens")

// Nobody is that error.
func Nobody(subject string) error {
	return fault.Wrap(fault.NotFound, ErrNobody, "no other server listens to %s", subject)
}

// Silent is the error of a request whose ctx is done.
func Silent(ctx context.Context, subject string) error {
	return fault.Wrap(fault.Unavailable, ctx.Err(), "the server that listens to %s gave no answer in time", subject)
}

// Subscribe implements Bus.
func (m *Member) Subscribe(s Subscriber) (stop func(), err error) {
	i := &inbox{Subscriber: s, more: make(chan struct{}, 1), stopped: make(chan struct{})}
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	if !m.hub.members[m] {
		return nil, errAway()
	}
	m.subscriptions[i] = true
	m.running.Go(func() { m.take(i) })
	return sync.OnceFunc(func() {
		m.hub.mu.Lock()
		defer m.hub.mu.Unlock()
		delete(m.subscriptions, i)
		close(i.stopped)
	}), nil
}

// take brings messages to a subscriber until it has stopped, or the member was closed.
func (m *Member) take(i *inbox) {
	for {
		select {
		case <-i.more:
		case <-i.stopped:
			return
		case <-m.ctx.Done():
			return
		}
		for m.ctx.Err() == nil {
			p, is, gap := i.next()
			if gap {
				m.tellGap(i)
			}
			if !is {
				break
			}
			data, err := i.Take(m.ctx, p.subject, p.data)
			if p.answer == nil {
				continue
			}
			if err == nil {
				err = CheckSize(p.subject, data)
			}
			if err != nil {
				p.answer(nil, Told(err))
				continue
			}
			p.answer(slices.Clone(data), nil)
		}
	}
}

func (m *Member) tellGap(i *inbox) {
	m.gaps.Add(1)
	if i.Gap != nil {
		i.Gap()
	}
}

// Cut ends, and with false begins anew, what this member hears and says: as if its network was cut.
func (m *Member) Cut(cut bool) {
	m.hub.mu.Lock()
	var told []*inbox
	if m.state.Up == cut {
		m.state.Up, m.state.Since, m.state.Problem = !cut, time.Now(), ""
		if cut {
			m.state.Problem = "it was cut"
		} else {
			for i := range m.subscriptions {
				told = append(told, i)
			}
		}
	}
	m.hub.mu.Unlock()
	for _, i := range told {
		m.tellGap(i)
	}
}

// State implements Bus.
func (m *Member) State() State {
	m.hub.mu.Lock()
	s := m.state
	m.hub.mu.Unlock()
	s.Sent, s.Received, s.Lost, s.Refused, s.Gaps = m.sent.Load(), m.received.Load(), m.lost.Load(), m.refused.Load(), m.gaps.Load()
	return s
}

// Close implements Bus.
func (m *Member) Close() error {
	m.hub.mu.Lock()
	delete(m.hub.members, m)
	m.state.Up, m.state.Problem = false, "it was closed"
	m.hub.mu.Unlock()
	m.end()
	m.running.Wait()
	return nil
}
