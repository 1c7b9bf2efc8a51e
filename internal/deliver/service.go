package deliver

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint"
)

// Groups knows who is in which classification group.
type Groups interface {
	// Memberships says which of the groups the nodes are in. A group that is not there
	// has no nodes.
	Memberships(ctx context.Context, nodes []fleet.Certname, groups []string) (map[fleet.Certname][]Membership, error)
	// Members lists the known nodes of a group.
	Members(ctx context.Context, group string) ([]fleet.Certname, error)
}

// Promoter makes what was released what the inventory shows.
type Promoter interface {
	// Promote makes a generation its node's newest catalog. It may be called again for
	// the same generation.
	Promote(ctx context.Context, g Generation) error
}

// Parts is what a service works with. Settings are asked for each time.
type Parts struct {
	Store    Store
	Groups   Groups
	Promoter Promoter
	Setting  func() Mode                            // of nodes for which nothing is set
	Limits   func() Limits                          // of the brake; nil: nothing is held
	Changed  func(node fleet.Certname, apply Apply) // a pointer is another now; must not block. Nil: nobody listens
	// FactsRead names the list of facts that a pointer's catalog read; nil: it is not told.
	FactsRead func(ctx context.Context, node fleet.Certname, p Pointer) (fleet.Digest, error)
	Relay     *hint.Relay // to other servers that use the same rows; nil: they see changes within a second
	Now       func() time.Time
	Log       *slog.Logger
}

// Service answers what nodes may have, and changes it.
type Service struct {
	Parts

	warned atomic.Uint64
	others func(id string) // tells other servers that modes have changed

	mu        sync.Mutex // guards the rest
	known     modesKnown
	forgotten int // how often
}

// modesKnown is what is set, as of a moment ago.
type modesKnown struct {
	at     time.Time
	groups []GroupMode
	nodes  int
	holds  int // catalogs that are held
}

// modesFor is how long what is set is taken to stay. Another process may change it.
const modesFor = time.Second

// NewService returns a service.
func NewService(parts Parts) *Service {
	if parts.Now == nil {
		parts.Now = time.Now
	}
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	if parts.Changed == nil {
		parts.Changed = func(fleet.Certname, Apply) {}
	}
	s := &Service{Parts: parts}
	s.others = parts.Relay.Join("modes", func(string) { s.forgetHere() })
	return s
}

// modes is what is set.
func (s *Service) modes(ctx context.Context) (modesKnown, error) {
	s.mu.Lock()
	known, forgotten := s.known, s.forgotten
	s.mu.Unlock()
	now := s.Now()
	if !known.at.IsZero() && now.Sub(known.at) < modesFor {
		return known, nil
	}
	groups, nodes, err := s.Store.Modes(ctx)
	if err != nil {
		return known, err
	}
	held, err := s.Store.Losses(ctx, LossFilter{Ruling: Hold})
	if err != nil {
		return known, err
	}
	known = modesKnown{at: now, groups: groups, nodes: nodes, holds: len(held)}
	s.mu.Lock()
	if s.forgotten == forgotten { // else it may be from before the change
		s.known = known
	}
	s.mu.Unlock()
	return known, nil
}

// forget has everybody read the modes anew.
func (s *Service) forget() {
	s.forgetHere()
	s.others("")
}

func (s *Service) forgetHere() {
	s.mu.Lock()
	s.known = modesKnown{}
	s.forgotten++
	s.mu.Unlock()
}

// allLive says that no node can be in released mode, which costs nothing to know.
func (s *Service) allLive(known modesKnown) bool {
	if s.Setting() == Released || known.nodes > 0 {
		return false
	}
	for _, g := range known.groups {
		if g.Mode == Released {
			return false
		}
	}
	return true
}

// Standing is what a node has, and why it is in its mode. A mode that came about
// meanwhile is brought into force by it.
func (s *Service) Standing(ctx context.Context, node fleet.Certname) (Standing, Reason, error) {
	for range 3 { // somebody else may take the same step
		standing, err := s.Store.Standing(ctx, node)
		if err != nil {
			return standing, Reason{}, err
		}
		mode, reason, err := s.decide(ctx, node, standing.Own)
		if err != nil {
			return standing, reason, err
		}
		step := Enter(standing, mode, s.Now(), "tutti")
		if step == nil {
			return standing, reason, nil
		}
		switch err := s.Store.Take(ctx, *step); {
		case err == nil:
			s.Log.InfoContext(ctx, "delivery mode changed", "node", node, "mode", mode, "from", reason.From, "group", reason.Group)
		case fault.Of(err) != fault.Conflict:
			return standing, reason, err
		}
	}
	return Standing{}, Reason{}, fault.Later(time.Second, "the delivery mode of %s changes all the time", node)
}

// decide finds a node's mode from what is set.
func (s *Service) decide(ctx context.Context, node fleet.Certname, own Mode) (Mode, Reason, error) {
	known, err := s.modes(ctx)
	if err != nil {
		return "", Reason{}, err
	}
	var member []Membership
	if own == "" && len(known.groups) > 0 {
		of, err := s.Groups.Memberships(ctx, []fleet.Certname{node}, groupsOf(known.groups))
		if err != nil {
			return "", Reason{}, err
		}
		member = of[node]
	}
	mode, reason := Decide(own, known.groups, member, s.Setting())
	return mode, reason, nil
}

func groupsOf(modes []GroupMode) []string {
	groups := make([]string, len(modes))
	for i, m := range modes {
		groups[i] = m.Group
	}
	return groups
}

// InReleased says which of the nodes are in released mode: their catalogs are staged.
func (s *Service) InReleased(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]bool, error) {
	released := map[fleet.Certname]bool{}
	known, err := s.modes(ctx)
	if err != nil || s.allLive(known) {
		return released, err
	}
	own := map[fleet.Certname]Mode{}
	if known.nodes > 0 {
		set, err := s.Store.ModesSet(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range set {
			own[m.Node] = m.Mode
		}
	}
	var member map[fleet.Certname][]Membership
	if len(known.groups) > 0 {
		if member, err = s.Groups.Memberships(ctx, nodes, groupsOf(known.groups)); err != nil {
			return nil, err
		}
	}
	for _, node := range nodes {
		if mode, _ := Decide(own[node], known.groups, member[node], s.Setting()); mode == Released {
			released[node] = true
		}
	}
	return released, nil
}

// Held is the standing of a node that is in released mode; ok is false for one in live
// mode. While nothing says released, it costs nothing.
func (s *Service) Held(ctx context.Context, node fleet.Certname) (standing Standing, ok bool, err error) {
	known, err := s.modes(ctx)
	if err != nil || s.allLive(known) {
		return standing, false, err
	}
	standing, _, err = s.Standing(ctx, node)
	return standing, err == nil && standing.Force == Released, err
}

// Pointer is what a node may have. NotFound when that is nothing.
func (s *Service) Pointer(ctx context.Context, node fleet.Certname) (Pointer, error) {
	standing, _, err := s.Standing(ctx, node)
	if err != nil {
		return Pointer{}, err
	}
	return s.PointerOf(ctx, standing)
}

// PointerOf is Pointer for a standing.
func (s *Service) PointerOf(ctx context.Context, standing Standing) (Pointer, error) {
	p, ok := standing.pointer()
	if !ok {
		return p, nothingYet(standing)
	}
	var err error
	if s.FactsRead != nil {
		p.FactsRead, err = s.FactsRead(ctx, standing.Node, p)
	}
	return p, err
}

// nothingYet says why a node has no catalog and what to do.
func nothingYet(s Standing) error {
	if s.Force == Released {
		return fault.New(fault.NotFound, "%s is in released mode and no catalog was released to it yet; release one: tutti catalog release %s --version VERSION",
			s.Node, s.Node)
	}
	return fault.New(fault.NotFound, "no catalog of %s was compiled yet", s.Node)
}

// MayHave says whether a node may fetch a catalog: that of its pointer, or of a kept
// generation.
func (s *Service) MayHave(ctx context.Context, node fleet.Certname, catalog fleet.Digest) (bool, error) {
	standing, _, err := s.Standing(ctx, node)
	if err != nil {
		return false, err
	}
	if p, ok := standing.pointer(); ok && p.Catalog == catalog {
		return true, nil
	}
	return s.Store.Keeps(ctx, node, catalog)
}

// SetMode sets the mode of a node or group and brings it into force. It returns how many
// nodes came into another mode.
func (s *Service) SetMode(ctx context.Context, m ModeSet) (switched int, err error) {
	if (m.Node == "") == (m.Group == "") {
		return 0, fault.New(fault.Invalid, "a mode is set for a node or for a group: name one of both")
	}
	m.At = s.Now()
	if err := s.Store.SetMode(ctx, m); err != nil {
		return 0, err
	}
	s.forget()
	nodes := []fleet.Certname{m.Node}
	if m.Group != "" {
		if nodes, err = s.Groups.Members(ctx, m.Group); err != nil {
			return 0, err
		}
	}
	for _, node := range nodes {
		before, err := s.Store.Standing(ctx, node)
		if err != nil {
			return switched, err
		}
		after, _, err := s.Standing(ctx, node)
		if err != nil {
			return switched, err
		}
		if before.Force != after.Force {
			apply, err := s.switchedTo(ctx, after)
			if err != nil {
				return switched, err
			}
			switched++
			s.Changed(node, apply)
		}
	}
	return switched, nil
}

// switchedTo says when a node applies what it has in another mode: mostly that is what it had, and has applied.
func (s *Service) switchedTo(ctx context.Context, standing Standing) (Apply, error) {
	if state, _, err := s.State(ctx, standing); err != nil || state == Current {
		return Scheduled, err
	}
	return "", nil
}

// State compares what a node applied last with what it may have.
func (s *Service) State(ctx context.Context, standing Standing) (State, Applied, error) {
	applied, err := s.Store.Applied(ctx, standing.Node)
	if err != nil {
		return Unknown, applied, err
	}
	p, _ := standing.pointer()
	since := p.CompiledAt
	if standing.Force == Released && standing.Head != nil {
		since = standing.Head.At
	}
	return Judge(p, since, applied), applied, nil
}
