package broker

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Attendance is the last connection of a node's agent.
type Attendance struct {
	Node  fleet.Certname
	Agent string    // how it called itself
	Since time.Time // it connected
	Until time.Time // it left; zero: it is there
}

// AttendanceStore keeps the last connection of each node's agent. Both methods are one transaction.
type AttendanceStore interface {
	// Attendances is the last connection of every node that ever had one.
	Attendances(ctx context.Context) ([]Attendance, error)
	// SaveAttendances replaces what is known of these nodes.
	SaveAttendances(ctx context.Context, last []Attendance) error
}

// flushInterval is how often the Register writes.
const flushInterval = time.Second

// Register knows the last connection of each node's agent, from memory, and so tells a node whose agent is away from one that
// never had an agent. What it is told it writes together, every second: many nodes that connect at once are one transaction.
// A crash loses the last second of it; then an agent that is there is seen again as soon as it connects.
type Register struct {
	store AttendanceStore
	log   *slog.Logger

	mu      sync.Mutex
	last    map[fleet.Certname]Attendance
	changed map[fleet.Certname]bool
}

// OpenRegister reads what is stored. What an earlier server left open, since it was killed, ends now; that of nodes which are connected to other servers
// does not.
func OpenRegister(ctx context.Context, store AttendanceStore, elsewhere map[fleet.Certname]bool, log *slog.Logger) (*Register, error) {
	all, err := store.Attendances(ctx)
	if err != nil {
		return nil, err
	}
	r := &Register{store: store, log: log, last: make(map[fleet.Certname]Attendance, len(all)), changed: map[fleet.Certname]bool{}}
	now := time.Now()
	for _, a := range all {
		if a.Until.IsZero() && !elsewhere[a.Node] {
			a.Until = now
			r.changed[a.Node] = true
		}
		r.last[a.Node] = a
	}
	return r, nil
}

// Last is the last connection of a node's agent; false: there never was one.
func (r *Register) Last(node fleet.Certname) (Attendance, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, known := r.last[node]
	return a, known
}

// Came notes that an agent is connected. It may be told after a later one.
func (r *Register) Came(who Presence) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, known := r.last[who.Certname]; known && a.Since.After(who.Since) {
		return
	}
	r.note(Attendance{Node: who.Certname, Agent: who.Agent, Since: who.Since})
}

// Went notes that it left, unless a later one came since.
func (r *Register) Went(who Presence, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, known := r.last[who.Certname]; known && a.Since.After(who.Since) {
		return
	}
	r.note(Attendance{Node: who.Certname, Agent: who.Agent, Since: who.Since, Until: now})
}

// Heard notes what another server writes: that an agent came, or left at some time.
func (r *Register) Heard(who Presence, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, known := r.last[who.Certname]; !known || !a.Since.After(who.Since) {
		r.last[who.Certname] = Attendance{Node: who.Certname, Agent: who.Agent, Since: who.Since, Until: until}
	}
}

func (r *Register) note(a Attendance) {
	r.last[a.Node] = a
	r.changed[a.Node] = true
}

// Forget forgets nodes that were purged: the store has forgotten them already.
func (r *Register) Forget(nodes ...fleet.Certname) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, node := range nodes {
		if a := r.last[node]; !a.Until.IsZero() { // one that is there stays
			delete(r.last, node)
			delete(r.changed, node)
		} else if !a.Since.IsZero() {
			r.changed[node] = true
		}
	}
}

// Flush writes what changed.
func (r *Register) Flush(ctx context.Context) error {
	r.mu.Lock()
	changed := r.changed
	r.changed = map[fleet.Certname]bool{}
	last := make([]Attendance, 0, len(changed))
	for node := range changed {
		last = append(last, r.last[node])
	}
	r.mu.Unlock()
	if len(last) == 0 {
		return nil
	}
	slices.SortFunc(last, func(a, b Attendance) int { return strings.Compare(string(a.Node), string(b.Node)) })
	err := r.store.SaveAttendances(ctx, last)
	if err != nil {
		r.mu.Lock()
		for node := range changed {
			if _, known := r.last[node]; known {
				r.changed[node] = true
			}
		}
		r.mu.Unlock()
	}
	return err
}

// Run flushes every second until ctx is done, and once more then.
func (r *Register) Run(ctx context.Context) error {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := r.Flush(context.WithoutCancel(ctx)); err != nil {
				r.log.WarnContext(ctx, "who was connected last is not written", "err", err)
			}
			return nil
		case <-tick.C:
			if err := r.Flush(ctx); err != nil && ctx.Err() == nil {
				r.log.WarnContext(ctx, "who was connected last is not written, will retry", "err", err)
			}
		}
	}
}
