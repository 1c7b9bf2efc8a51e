package compile

import (
	"sync/atomic"
	"time"
)

// DispatcherStats counts since the start, except Running and Room, which
// say how it is now.
type DispatcherStats struct {
	Slots    int
	Running  int
	Room     Room
	Leased   uint64        // rows taken from the queue
	Done     uint64        // ended with a catalog
	Failed   uint64        // ended with an Error
	Retried  uint64        // could not be tried, given back
	Stopped  uint64        // had their turn while others waited, and were put back
	Lost     uint64        // somebody else got the lease, or the server stopped
	Returned uint64        // leases of dead workers made wanted again
	Wall     time.Duration // all attempts together
}

type dispatcherCounters struct {
	running atomic.Int64
	room    atomic.Int64
	wall    atomic.Int64

	leased, done, failed, retried, stopped, lost, returned atomic.Uint64
}

// Stats may be called at any time.
func (d *Dispatcher) Stats() DispatcherStats {
	n := &d.count
	return DispatcherStats{
		Slots: d.cfg.Slots, Running: int(n.running.Load()), Room: Room(n.room.Load()),
		Leased: n.leased.Load(), Done: n.done.Load(), Failed: n.failed.Load(), Retried: n.retried.Load(),
		Stopped: n.stopped.Load(), Lost: n.lost.Load(), Returned: n.returned.Load(), Wall: time.Duration(n.wall.Load()),
	}
}

// ServiceStats counts since the start, except Waiting, which says how many
// requests wait now.
type ServiceStats struct {
	Waiting  int
	Asked    uint64
	Served   uint64 // answered with a catalog
	Failed   uint64 // answered with a compilation's Error
	Later    uint64 // told to come back, because it took too long
	Shed     uint64 // told to come back, because too many waited
	Vanished uint64 // catalogs that were not in the store any more
	Held     uint64 // of those served, the ones that nodes keep because a newer one is held
}

type serviceCounters struct {
	asked, served, failed, later, shed, vanished, held atomic.Uint64
}

// Stats may be called at any time.
func (s *Service) Stats() ServiceStats {
	n := &s.count
	return ServiceStats{
		Waiting: s.waiters.len(), Asked: n.asked.Load(), Served: n.served.Load(), Failed: n.failed.Load(),
		Later: n.later.Load(), Shed: n.shed.Load(), Vanished: n.vanished.Load(), Held: n.held.Load(),
	}
}
