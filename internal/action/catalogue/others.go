package catalogue

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Follower has a Service learn what others of the same Store have saved.
type Follower struct {
	service *Service
	heard   chan struct{}
	stamp   string // of what was read last
}

// NewFollower is the Follower of a Service.
func NewFollower(s *Service) *Follower {
	return &Follower{service: s, heard: make(chan struct{}, 1)}
}

// Heard hints that another Service has saved something. It does not block.
func (f *Follower) Heard() {
	select {
	case f.heard <- struct{}{}:
	default:
	}
}

// look is how often a Follower looks when nobody hints at anything.
const look = 5 * time.Second

// Run reads what others have saved until ctx is done: once a second at most.
func (f *Follower) Run(ctx context.Context) error {
	poll, pause := time.NewTicker(look), time.NewTicker(interval)
	defer poll.Stop()
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.heard:
		case <-poll.C:
		}
		if err := f.Refresh(ctx); err != nil && ctx.Err() == nil {
			f.service.parts.Log.WarnContext(ctx, "what other servers know of nodes' modules is not read, will retry", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
	}
}

// Refresh takes what other Services have saved. Of nodes that are connected here, this one knows best.
func (f *Follower) Refresh(ctx context.Context) error {
	s := f.service
	s.turn.Lock()
	defer s.turn.Unlock()
	stamp, err := s.parts.Store.Stamp(ctx)
	if err != nil || stamp == f.stamp {
		return err
	}
	stored, err := s.parts.Store.Catalogue(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.takeAgents(stored.Agents)
	f.takeSets(stored)
	f.stamp = stamp
	s.nudge()
	return nil
}

// takeAgents makes the agents those that are stored, but for those that the Service knows better. The caller holds the lock.
func (f *Follower) takeAgents(stored []Agent) {
	s := f.service
	there := make(map[fleet.Certname]bool, len(stored))
	for _, a := range stored {
		there[a.Node] = true
		before, known := s.agents[a.Node]
		if known && (before == a || f.knowsBetter(a.Node)) {
			continue
		}
		if known && before.Set != a.Set {
			s.leave(a.Node, before.Set)
		}
		s.agents[a.Node] = a
		s.setOf(a.Set).nodes[a.Node] = true
	}
	for node, a := range s.agents {
		if !there[node] && !f.knowsBetter(node) { // another one has purged it
			s.leave(node, a.Set)
			delete(s.agents, node)
		}
	}
}

func (f *Follower) knowsBetter(node fleet.Certname) bool {
	return f.service.changed[node] || f.service.parts.Connected(node)
}

// takeSets learns the lists and modules that others have asked for. What is in use and not stored any more, because another one believed that nobody
// has it, is saved again, or asked for again. The caller holds the lock.
func (f *Follower) takeSets(stored Known) {
	s := f.service
	described := make(map[fleet.Digest]Described, len(stored.Modules))
	for _, m := range stored.Modules {
		described[m.Digest] = m
	}
	for digest, one := range s.sets {
		list, there := stored.Sets[digest]
		switch {
		case there && !one.known && !s.fullOfSets():
			one.known, one.list = true, list
			s.known++
		case !there && one.known && len(one.nodes) > 0:
			s.freshSets[digest] = true
		}
		for _, l := range one.list {
			m, there := described[l.Digest]
			_, known := s.modules[l.Digest]
			switch {
			case there && !known && !s.fullOfModules():
				s.modules[l.Digest] = m
				s.bytes += m.Bytes
			case !there && known && s.freshModules[l.Digest] == nil:
				s.bytes -= s.modules[l.Digest].Bytes
				delete(s.modules, l.Digest)
			}
		}
	}
}
