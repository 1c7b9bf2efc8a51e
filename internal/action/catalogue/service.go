package catalogue

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rate"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Limits bound what a Service takes in.
type Limits struct {
	Open  int   // questions at once
	Sets  int   // that are known
	Bytes int64 // of all metadata; one module's may be more
	Told  int   // how often a node may tell something else in an hour

	Patience time.Duration // with a question
	Rest     time.Duration // of a node that answered wrongly, or said no
}

// DefaultLimits are for any fleet.
func DefaultLimits() Limits {
	return Limits{Open: 32, Sets: 5000, Bytes: 256 << 20, Told: 60, Patience: 30 * time.Second, Rest: 10 * time.Minute}
}

// Parts are what a Service stands on.
type Parts struct {
	Store Store
	// Ask sends a blocking request to the agent of a node; NotFound: it is not connected.
	Ask func(ctx context.Context, node fleet.Certname, r pxp.Request) error
	// Connected says whether a node's agent is there.
	Connected func(node fleet.Certname) bool
	NewID     func() string
	Now       func() time.Time
	Log       *slog.Logger
	// Saved tells other Services of the same Store that something was saved; it does not block. Nil: there are none.
	Saved func()
}

// Service knows the catalogue.
type Service struct {
	parts  Parts
	limits Limits
	often  *rate.Rule
	wake   chan struct{}
	turn   sync.Mutex // of whoever writes what is stored, or takes it over

	mu      sync.Mutex
	agents  map[fleet.Certname]Agent
	sets    map[fleet.Digest]*set // that nodes have
	modules map[fleet.Digest]Described
	bytes   int64 // of modules
	known   int   // sets

	asking asking
	unsaved
}

// set is one that nodes have.
type set struct {
	known bool // its list is
	list  action.Set
	nodes map[fleet.Certname]bool
}

// unsaved is what is to be written.
type unsaved struct {
	changed       map[fleet.Certname]bool
	freshSets     map[fleet.Digest]bool
	freshModules  map[fleet.Digest][]byte
	forgetSets    map[fleet.Digest]bool
	forgetModules map[fleet.Digest]bool
	left          bool // a set may have no node any more
}

// Open reads what is stored.
func Open(ctx context.Context, p Parts, l Limits) (*Service, error) {
	stored, err := p.Store.Catalogue(ctx)
	if err != nil {
		return nil, err
	}
	s := &Service{
		parts: p, limits: l, wake: make(chan struct{}, 1),
		often:  rate.Per(time.Hour, l.Told, fmt.Sprintf("%%s tells of other modules more than %d times an hour", l.Told)),
		agents: map[fleet.Certname]Agent{}, sets: map[fleet.Digest]*set{}, modules: map[fleet.Digest]Described{},
		asking: newAsking(),
		unsaved: unsaved{
			changed: map[fleet.Certname]bool{}, freshSets: map[fleet.Digest]bool{}, freshModules: map[fleet.Digest][]byte{},
			forgetSets: map[fleet.Digest]bool{}, forgetModules: map[fleet.Digest]bool{}, left: true,
		},
	}
	for digest, list := range stored.Sets {
		s.sets[digest] = &set{known: true, list: list, nodes: map[fleet.Certname]bool{}}
		s.known++
	}
	for _, m := range stored.Modules {
		s.modules[m.Digest] = m
		s.bytes += m.Bytes
	}
	for _, a := range stored.Agents {
		s.agents[a.Node] = a
		s.setOf(a.Set).nodes[a.Node] = true
	}
	return s, nil
}

// setOf is a set, which may be new. The caller holds the lock.
func (s *Service) setOf(digest fleet.Digest) *set {
	one := s.sets[digest]
	if one == nil {
		one = &set{nodes: map[fleet.Certname]bool{}}
		s.sets[digest] = one
	}
	return one
}

// Told takes what the agent of a node says of itself.
func (s *Service) Told(node fleet.Certname, t pxp.AgentTold) error {
	now := s.parts.Now()
	a := Agent{Node: node, Set: fleet.Digest(t.Modules), Version: t.Version, OS: t.OS, Arch: t.Arch}
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.agents[node]
	a.Told = before.Told
	if !known || a != before {
		if err := s.often.Allow(string(node), now); err != nil {
			return err
		}
		if known && before.Set != a.Set {
			s.leave(node, before.Set)
		}
		a.Told = now
		s.agents[node], s.changed[node] = a, true
		s.setOf(a.Set).nodes[node] = true
	}
	s.again(node)
	if s.incomplete(s.sets[a.Set]) {
		s.nudge()
	}
	return nil
}

// leave notes that a node has a set no more. The caller holds the lock.
func (s *Service) leave(node fleet.Certname, digest fleet.Digest) {
	one := s.sets[digest]
	if one == nil {
		return
	}
	delete(one.nodes, node)
	s.left = s.left || len(one.nodes) == 0
}

// incomplete says whether there is something to ask about a set. The caller holds the lock.
func (s *Service) incomplete(one *set) bool {
	if !one.known {
		return true
	}
	for range s.missing(one) {
		return true
	}
	return false
}

// missing is the modules of a set that are not described. The caller holds the lock.
func (s *Service) missing(one *set) iter.Seq[action.Listed] {
	return func(yield func(action.Listed) bool) {
		for _, l := range one.list {
			if _, described := s.modules[l.Digest]; l.Digest != "" && !described && !yield(l) {
				return
			}
		}
	}
}

// Forget forgets nodes that were purged: the store has forgotten them already. One that is connected is written again.
func (s *Service) Forget(nodes ...fleet.Certname) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, node := range nodes {
		a, known := s.agents[node]
		switch {
		case !known:
		case s.parts.Connected(node):
			s.changed[node] = true
		default:
			s.leave(node, a.Set)
			delete(s.agents, node)
			delete(s.changed, node)
		}
	}
}

func (s *Service) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// interval is how often a Service writes, and looks whether there is something to ask.
const interval = time.Second

// Run asks and writes until ctx is done, and writes once more then.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := s.Flush(context.WithoutCancel(ctx)); err != nil {
				s.parts.Log.WarnContext(ctx, "what nodes told of their modules is not written; they tell it again", "err", err)
			}
			return nil
		case <-s.wake:
			s.Step(ctx)
		case <-tick.C:
			s.Step(ctx)
			if err := s.Flush(ctx); err != nil && ctx.Err() == nil {
				s.parts.Log.WarnContext(ctx, "what nodes told of their modules is not written, will retry", "err", err)
			}
		}
	}
}

// Flush writes what changed.
func (s *Service) Flush(ctx context.Context) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	c := s.change()
	if c.empty() {
		return nil
	}
	if err := s.parts.Store.SaveCatalogue(ctx, c); err != nil {
		return err
	}
	s.saved(c)
	if s.parts.Saved != nil {
		s.parts.Saved()
	}
	return nil
}

// change is what is to be written.
func (s *Service) change() Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left {
		s.prune()
		s.left = false
	}
	c := Change{Sets: map[fleet.Digest]action.Set{}}
	for digest := range s.forgetSets {
		c.ForgetSets = append(c.ForgetSets, digest)
	}
	for digest := range s.forgetModules {
		c.ForgetModules = append(c.ForgetModules, digest)
	}
	for digest := range s.freshSets {
		c.Sets[digest] = s.sets[digest].list
	}
	for digest, text := range s.freshModules {
		c.Modules = append(c.Modules, Metadata{s.modules[digest], text})
	}
	for node := range s.changed {
		c.Agents = append(c.Agents, s.agents[node])
	}
	return c
}

// saved takes note of what was written, unless it changed meanwhile.
func (s *Service) saved(c Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, digest := range c.ForgetSets {
		delete(s.forgetSets, digest)
	}
	for _, digest := range c.ForgetModules {
		delete(s.forgetModules, digest)
	}
	for digest := range c.Sets {
		delete(s.freshSets, digest)
	}
	for _, m := range c.Modules {
		delete(s.freshModules, m.Digest)
	}
	for _, a := range c.Agents {
		if s.agents[a.Node] == a {
			delete(s.changed, a.Node)
		}
	}
}

// prune drops sets that no node has, and modules that are in none. The caller holds the lock.
func (s *Service) prune() {
	used := map[fleet.Digest]bool{}
	for digest, one := range s.sets {
		if len(one.nodes) > 0 {
			for _, l := range one.list {
				used[l.Digest] = true
			}
			continue
		}
		delete(s.sets, digest)
		if one.known {
			s.known--
			s.forgetSets[digest] = true
			delete(s.freshSets, digest)
		}
	}
	for digest, m := range s.modules {
		if !used[digest] {
			delete(s.modules, digest)
			s.bytes -= m.Bytes
			s.forgetModules[digest] = true
			delete(s.freshModules, digest)
		}
	}
}

// fullOfSets and fullOfModules say whether there is no more room; what is full asks for nothing, and drops what was asked for before. The caller holds the
// lock.
func (s *Service) fullOfSets() bool    { return s.known >= s.limits.Sets }
func (s *Service) fullOfModules() bool { return s.bytes >= s.limits.Bytes }

// learn takes the list of a set that was asked for, if there is room. The caller holds the lock.
func (s *Service) learn(digest fleet.Digest, list action.Set) {
	if one := s.sets[digest]; one != nil && !one.known && !s.fullOfSets() {
		one.known, one.list = true, list
		s.known++
		s.freshSets[digest] = true
	}
}

// describe takes the metadata of a module that was asked for, if there is room. The caller holds the lock.
func (s *Service) describe(m Metadata) {
	if _, known := s.modules[m.Digest]; !known && !s.fullOfModules() {
		s.modules[m.Digest] = m.Described
		s.bytes += m.Bytes
		s.freshModules[m.Digest] = m.Text
		s.left = true // perhaps no set has it any more
	}
}
