package websocket

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fault"
)

// Config is what a Server needs. Zero limits mean the defaults.
type Config struct {
	Broker *broker.Broker
	// MaxMessageBytes is the largest message; 64 MiB, which is what agents put into one at most, and 64 KiB for what is around it.
	MaxMessageBytes int64
	// PartialBytes is what messages that have come in part may take, all together; 256 MiB.
	PartialBytes int64
	// IdleTimeout ends connections that are silent; 6 minutes, three times the original agent's ping interval.
	IdleTimeout time.Duration
	// WriteTimeout ends connections that take nothing; 30 seconds.
	WriteTimeout time.Duration
	// CloseTimeout is how long a peer may take to accept a farewell; 5 seconds.
	CloseTimeout time.Duration
	// Goroutines gives each connection a goroutine where it could be parked.
	Goroutines bool
	Log        *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.MaxMessageBytes <= 0 {
		c.MaxMessageBytes = 64<<20 + 64<<10
	}
	if c.PartialBytes <= 0 {
		c.PartialBytes = 256 << 20
	}
	for limit, value := range map[*time.Duration]time.Duration{
		&c.IdleTimeout: 6 * time.Minute, &c.WriteTimeout: 30 * time.Second, &c.CloseTimeout: 5 * time.Second,
	} {
		if *limit <= 0 {
			*limit = value
		}
	}
	return c
}

// patience is how long a worker may be held up before it is replaced.
const patience = 50 * time.Millisecond

// readers take in messages, each of which is held up until it is stored: as many as wait together share a transaction.
const readers = 64

// Server is every websocket connection. It serves while Run runs.
type Server struct {
	cfg     Config
	readers *pool
	writers *pool
	parking *parking // nil: connections cannot be parked
	partial atomic.Int64
	large   *semaphore.Weighted

	shedding atomic.Bool // see Shed

	mu    sync.Mutex
	conns map[*conn]struct{}
	over  bool          // no more connections
	empty chan struct{} // closed when over and the last one has ended
}

// New returns a Server that Run has to serve.
func New(cfg Config) (*Server, error) {
	if cfg.Broker == nil || cfg.Log == nil {
		return nil, fault.New(fault.Invalid, "a websocket server needs a broker and a log")
	}
	s := &Server{cfg: cfg.withDefaults(), large: newLargeRoom(), conns: map[*conn]struct{}{}, empty: make(chan struct{})}
	s.readers, s.writers = newPool(readers, patience), newPool(2*runtime.GOMAXPROCS(0), patience)
	if cfg.Goroutines {
		return s, nil
	}
	var err error
	s.parking, err = newParking()
	return s, err
}

// Run serves until ctx is done. Then every client is told, and given CloseTimeout
// to read it.
func (s *Server) Run(ctx context.Context) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	loops, working := errgroup.WithContext(working)
	loops.Go(func() error { return s.readers.Run(working) })
	loops.Go(func() error { return s.writers.Run(working) })
	loops.Go(func() error { return s.sweep(working) })
	if s.parking != nil {
		loops.Go(func() error { return s.parking.Run(working, func(c *conn) { s.readers.add(c.readTurn) }) })
	}
	select {
	case <-ctx.Done():
	case <-working.Done():
	}
	s.drain()
	stop()
	return loops.Wait()
}

// drain says farewell to all, and drops those that do not go.
func (s *Server) drain() {
	s.cfg.Broker.Stop()
	s.mu.Lock()
	s.over = true // nobody enters any more: all are told
	s.endIfEmpty()
	s.mu.Unlock()
	for _, c := range s.all() {
		c.Close(broker.Stopping) // also those that never were associated
	}
	limit := time.NewTimer(s.cfg.CloseTimeout + time.Second) // each connection has its own limit
	defer limit.Stop()
	select {
	case <-s.empty:
	case <-limit.C:
		for _, c := range s.all() {
			c.drop()
		}
	}
}

// enter makes a connection known; false says that it came too late.
func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.endIfEmpty()
}

// endIfEmpty is called with mu held.
func (s *Server) endIfEmpty() {
	if !s.over || len(s.conns) > 0 {
		return
	}
	select {
	case <-s.empty:
	default:
		close(s.empty)
	}
}

func (s *Server) all() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

// sweep ends connections that are silent for too long.
func (s *Server) sweep(ctx context.Context) error {
	tick := time.NewTicker(min(s.cfg.IdleTimeout/8+1, 15*time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			limit := time.Now().Add(-s.cfg.IdleTimeout)
			for _, c := range s.all() {
				if c.silentSince(limit) {
					c.farewell(broker.Farewell{Code: 1001, Reason: "Idle timeout."})
				}
			}
		}
	}
}
