// Package leasetest holds what every lease.Store is held to, and a store in memory that passes it.
//
// The fake is for tests of what runs under leases: it keeps everything in a map, and its clock is the process's.
package leasetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/lease"
)

// Store is a lease.Store in memory.
type Store struct {
	mu     sync.Mutex
	rows   map[string]row
	broken error
}

type row struct {
	holder       string
	token        int64
	since, until time.Time
}

var _ World = (*Store)(nil)

// New returns a store whose leases are free.
func New() *Store { return &Store{rows: map[string]row{}} }

// Break makes every call end with err, until it is called with nil.
func (s *Store) Break(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
}

// AcquireLease implements lease.Store.
func (s *Store) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (g lease.Grant, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(ctx.Err(), s.broken); err != nil {
		return g, false, err
	}
	now, r := time.Now(), s.rows[name]
	if r.until.After(now) && !r.until.After(now.Add(2*ttl)) && r.holder != holder {
		return g, false, nil
	}
	s.rows[name] = row{holder, r.token + 1, now, now.Add(ttl)}
	return lease.Grant{Name: name, Holder: holder, Token: r.token + 1}, true, nil
}

// RenewLeases implements lease.Store.
func (s *Store) RenewLeases(ctx context.Context, grants []lease.Grant, ttl time.Duration) (lost []lease.Grant, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(ctx.Err(), s.broken); err != nil {
		return nil, err
	}
	for _, g := range grants {
		r := s.rows[g.Name]
		if !r.is(g) || !r.until.After(time.Now()) {
			lost = append(lost, g)
			continue
		}
		r.until = time.Now().Add(ttl)
		s.rows[g.Name] = r
	}
	return lost, nil
}

func (r row) is(g lease.Grant) bool { return r.holder == g.Holder && r.token == g.Token }

// ReleaseLease implements lease.Store.
func (s *Store) ReleaseLease(ctx context.Context, g lease.Grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(ctx.Err(), s.broken); err != nil {
		return err
	}
	if r := s.rows[g.Name]; r.is(g) {
		r.until = time.Time{}
		s.rows[g.Name] = r
	}
	return nil
}

// Leases implements lease.Store.
func (s *Store) Leases(context.Context) ([]lease.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []lease.Lease
	for _, name := range slices.Sorted(maps.Keys(s.rows)) {
		r := s.rows[name]
		all = append(all, lease.Lease{
			Grant: lease.Grant{Name: name, Holder: r.holder, Token: r.token}, Since: r.since, Left: max(0, time.Until(r.until)),
		})
	}
	return all, nil
}

// Write implements World: act is a write of whoever has the fence of ctx.
func (s *Store) Write(ctx context.Context, act func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(ctx.Err(), s.broken); err != nil {
		return err
	}
	if f, fenced := lease.From(ctx); fenced && !s.rows[f.Name].is(f.Grant) {
		return f.Refuse()
	}
	act()
	return nil
}

// Roll is a lease.Roll in memory.
type Roll struct {
	mu  sync.Mutex
	all map[string]lease.Server
}

var _ lease.Roll = (*Roll)(nil)

// NewRoll returns one of no servers.
func NewRoll() *Roll { return &Roll{all: map[string]lease.Server{}} }

// EnrolServer implements lease.Roll.
func (r *Roll) EnrolServer(_ context.Context, s lease.Server) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Started, s.Seen, s.Draining, s.Near = time.Now(), time.Now(), lease.Drain{}, nil
	r.all[s.ID] = s
	return nil
}

// SeeServer implements lease.Roll.
func (r *Roll) SeeServer(_ context.Context, id string) (lease.Server, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, known := r.all[id]
	if !known {
		return s, fault.New(fault.NotFound, "there is no server %s", id)
	}
	s.Seen = time.Now()
	r.all[id] = s
	return s, nil
}

// SayNear implements lease.Roll.
func (r *Roll) SayNear(_ context.Context, id string, n lease.Near) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, known := r.all[id]
	if !known {
		return fault.New(fault.NotFound, "there is no server %s", id)
	}
	s.Near = &n
	r.all[id] = s
	return nil
}

// DrainServer implements lease.Roll.
func (r *Roll) DrainServer(_ context.Context, id string, over time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, known := r.all[id]
	if !known {
		return fault.New(fault.NotFound, "there is no server %s", id)
	}
	if s.Draining.Asked.IsZero() {
		s.Draining = lease.Drain{Asked: time.Now(), Over: over}
	}
	r.all[id] = s
	return nil
}

// LeaveServer implements lease.Roll.
func (r *Roll) LeaveServer(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, id)
	return nil
}

// ForgetServers implements lease.Roll.
func (r *Roll) ForgetServers(_ context.Context, silent time.Duration) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.all)
	maps.DeleteFunc(r.all, func(_ string, s lease.Server) bool { return time.Since(s.Seen) >= silent })
	return n - len(r.all), nil
}

// Servers implements lease.Roll.
func (r *Roll) Servers(context.Context) ([]lease.Server, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []lease.Server
	for _, id := range slices.Sorted(maps.Keys(r.all)) {
		s := r.all[id]
		s.Silent = lease.Silence(s.Seen, time.Now())
		all = append(all, s)
	}
	return all, nil
}
