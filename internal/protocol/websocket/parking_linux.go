package websocket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// parking watches the file descriptors of connections that wait for their client. A
// spot is told of once, and has to be asked for again: so nobody reads a connection
// twice at a time.
type parking struct {
	epoll, wake int // wake ends Run

	mu     sync.Mutex
	last   uint64
	parked map[uint64]*conn // by a number that is never used again, unlike descriptors
	closed bool
}

// spot is a connection's place.
type spot struct {
	number  uint64
	raw     syscall.RawConn
	below   watchable
	watched bool // epoll knows it; under the parking's lock
}

// watchable is what a connection needs below its TLS to be parked.
type watchable interface {
	syscall.Conn
	// ReadWhatIsThere makes Read return os.ErrDeadlineExceeded where it would wait.
	ReadWhatIsThere() error
	// ForgetBuffers lets go of what reading has allocated. It is called by who reads.
	ForgetBuffers()
}

const bellNumber = 0

func newParking() (*parking, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch connections: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch connections: %w", err), unix.Close(epoll))
	}
	p := &parking{epoll: epoll, wake: wake, parked: map[uint64]*conn{}}
	event := eventOf(bellNumber, unix.EPOLLIN)
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake, &event); err != nil {
		return nil, errors.Join(fmt.Errorf("watch connections: %w", err), unix.Close(epoll), unix.Close(wake))
	}
	return p, nil
}

// eventOf packs a number into what epoll gives back.
func eventOf(number uint64, events uint32) unix.EpollEvent {
	return unix.EpollEvent{Events: events, Fd: int32(number), Pad: int32(number >> 32)} //nolint:gosec // the two halves
}

func numberOf(e unix.EpollEvent) uint64 {
	return uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32 //nolint:gosec // the two halves
}

// Run calls ready for each connection that can be read, until ctx is done.
func (p *parking) Run(ctx context.Context, ready func(*conn)) error {
	stop := context.AfterFunc(ctx, p.ring)
	defer stop()
	events := make([]unix.EpollEvent, 256)
	for ctx.Err() == nil {
		n, err := unix.EpollWait(p.epoll, events, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("watch connections: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			if c := p.find(numberOf(e)); c != nil {
				ready(c)
			}
		}
	}
	return p.close()
}

func (p *parking) ring() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		_, _ = unix.Write(p.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (p *parking) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return errors.Join(unix.Close(p.epoll), unix.Close(p.wake))
}

func (p *parking) find(number uint64) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parked[number]
}

// add gives a connection a spot that is not watched yet; nil if it cannot be.
func (p *parking) add(c *conn) *spot {
	below, ok := below(c.raw).(watchable)
	if !ok {
		return nil
	}
	raw, err := below.SyscallConn()
	if err != nil {
		return nil
	}
	p.mu.Lock()
	p.last++
	s := &spot{number: p.last, raw: raw, below: below}
	p.parked[s.number] = c
	p.mu.Unlock()
	if below.ReadWhatIsThere() != nil {
		p.remove(s)
		return nil
	}
	return s
}

// watch asks to be told, once, when the connection can be read. Epoll hears of a descriptor
// no sooner: it tells of a connection that was reset whatever it was asked for, and
// then two would read.
func (p *parking) watch(s *spot) error {
	var failed error
	err := s.raw.Control(func(fd uintptr) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closed {
			failed = unix.EBADF
			return
		}
		operation := unix.EPOLL_CTL_ADD
		if s.watched {
			operation = unix.EPOLL_CTL_MOD
		}
		s.watched = true
		event := eventOf(s.number, unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLONESHOT)
		failed = unix.EpollCtl(p.epoll, operation, int(fd), &event)
	})
	return errors.Join(err, failed)
}

// remove forgets a connection. Closing its descriptor ended the watch.
func (p *parking) remove(s *spot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.parked, s.number)
}

// park tells whether the connection waits without a goroutine from now on.
func (c *conn) park() bool {
	if c.server.parking == nil {
		return false
	}
	s := c.server.parking.add(c)
	if s == nil {
		return false
	}
	c.mu.Lock()
	c.spot = s
	ended := c.ended
	c.mu.Unlock()
	if ended { // it could not have given the spot back
		c.server.parking.remove(s)
	}
	return true
}

// wait asks to be read when something comes.
func (c *conn) wait() {
	c.spot.below.ForgetBuffers()
	if err := c.server.parking.watch(c.spot); err != nil {
		c.lost(err)
	}
}

// unpark gives the spot back.
func (c *conn) unpark() {
	c.mu.Lock()
	s := c.spot
	c.mu.Unlock()
	if s != nil {
		c.server.parking.remove(s)
	}
}
