// Package delivertest holds the conformance suite of deliver.Store, the in-memory fake
// that passes it, and fakes of the smaller ports. Kinds of error: those of the ports.
package delivertest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Fake is a deliver.Store in memory.
type Fake struct {
	mu      sync.Mutex
	modes   map[key]deliver.ModeSet
	nodes   map[fleet.Certname]*delivery
	newest  map[fleet.Certname]deliver.Catalog
	applied map[fleet.Certname]deliver.Applied
	losses  losses
}

// key names what a mode is set for.
type key struct {
	group string
	node  fleet.Certname
}

type delivery struct {
	force       deliver.Mode
	head        int64
	pin         deliver.Pin
	generations []deliver.Generation // newest first
}

// New returns an empty store.
func New() *Fake {
	return &Fake{
		modes: map[key]deliver.ModeSet{}, nodes: map[fleet.Certname]*delivery{},
		newest: map[fleet.Certname]deliver.Catalog{}, applied: map[fleet.Certname]deliver.Applied{},
		losses: losses{has: map[fleet.Certname]int{}},
	}
}

// Gave makes a catalog with so many resources the newest of a node.
func (f *Fake) Gave(node fleet.Certname, c deliver.Catalog, resources int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.newest[node], f.losses.has[node] = c, resources
	f.losses.given(node, c.Digest)
}

// Ran makes a node say that it applied the catalog with this uuid.
func (f *Fake) Ran(node fleet.Certname, uuid string, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied[node] = deliver.Applied{UUID: uuid, At: at}
}

// Modes implements deliver.ModeStore.
func (f *Fake) Modes(context.Context) (groups []deliver.GroupMode, nodes int, err error) {
	for _, m := range f.set() {
		if m.Group == "" {
			nodes++
			continue
		}
		groups = append(groups, deliver.GroupMode{Group: m.Group, Mode: m.Mode})
	}
	return groups, nodes, nil
}

// ModesSet implements deliver.ModeStore.
func (f *Fake) ModesSet(context.Context) ([]deliver.ModeSet, error) { return f.set(), nil }

func (f *Fake) set() []deliver.ModeSet {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(maps.Values(f.modes), func(a, b deliver.ModeSet) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Group, b.Group))
	})
}

// SetMode implements deliver.ModeStore.
func (f *Fake) SetMode(_ context.Context, m deliver.ModeSet) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.Mode == "" {
		delete(f.modes, key{m.Group, m.Node})
		return nil
	}
	f.modes[key{m.Group, m.Node}] = m
	return nil
}

// Standing implements deliver.Ledger.
func (f *Fake) Standing(_ context.Context, node fleet.Certname) (deliver.Standing, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := deliver.Standing{Node: node, Own: f.modes[key{node: node}].Mode, Force: deliver.Live}
	if c, there := f.newest[node]; there {
		s.Newest = &c
	}
	if d := f.nodes[node]; d != nil {
		s.Force, s.Pin = d.force, d.pin
		if len(d.generations) > 0 {
			head := d.generations[0]
			s.Head = &head
		}
	}
	return s, nil
}

// Take implements deliver.Ledger.
func (f *Fake) Take(_ context.Context, step deliver.Step) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.nodes[step.Node]
	if d == nil {
		d = &delivery{force: deliver.Live}
	}
	if d.force != step.From || d.head != step.Base {
		return fault.New(fault.Conflict, "the delivery to %s is another by now", step.Node)
	}
	if step.To == deliver.Released && d.force != deliver.Released {
		f.losses.given(step.Node, "")
	}
	d.force = step.To
	if d.force == deliver.Live {
		d.pin = deliver.Pin{}
	}
	if step.Next != nil {
		d.head = step.Base + 1
		g := *step.Next
		g.Node, g.Number = step.Node, d.head
		d.generations = slices.Insert(d.generations, 0, g)
	}
	f.nodes[step.Node] = d
	return nil
}

// SetPin implements deliver.Ledger.
func (f *Fake) SetPin(_ context.Context, node fleet.Certname, p deliver.Pin) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.nodes[node]
	switch {
	case !p.At.IsZero() && (d == nil || d.force != deliver.Released || d.head == 0):
		return fault.New(fault.Conflict, "%s has no released catalog that it could be pinned to", node)
	case d != nil:
		d.pin = p
	}
	return nil
}

// Unpromoted implements deliver.Ledger.
func (f *Fake) Unpromoted(_ context.Context, after fleet.Certname, n int) (rest []deliver.Generation, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, node := range slices.Sorted(maps.Keys(f.nodes)) {
		d := f.nodes[node]
		if node > after && d.force == deliver.Released && len(d.generations) > 0 && !d.generations[0].Promoted && len(rest) < n {
			rest = append(rest, d.generations[0])
		}
	}
	return rest, nil
}

// Promoted implements deliver.Ledger.
func (f *Fake) Promoted(_ context.Context, node fleet.Certname, number int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := f.nodes[node]; d != nil {
		for i := range d.generations {
			if d.generations[i].Number == number {
				d.generations[i].Promoted = true
			}
		}
	}
	return nil
}

// Generations implements deliver.Archive.
func (f *Fake) Generations(_ context.Context, node fleet.Certname) ([]deliver.Generation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := f.nodes[node]; d != nil {
		return slices.Clone(d.generations), nil
	}
	return nil, nil
}

// Keeps implements deliver.Archive.
func (f *Fake) Keeps(_ context.Context, node fleet.Certname, catalog fleet.Digest) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.nodes[node]
	return d != nil && slices.ContainsFunc(d.generations, func(g deliver.Generation) bool { return g.Digest == catalog }), nil
}

// PruneGenerations implements deliver.Archive.
func (f *Fake) PruneGenerations(_ context.Context, keep int) (pruned int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.nodes {
		kept := min(max(keep, 1), len(d.generations))
		pruned += len(d.generations) - kept
		d.generations = d.generations[:kept]
	}
	return pruned, nil
}

// GenerationCatalogs implements deliver.Archive.
func (f *Fake) GenerationCatalogs(context.Context) (digests []fleet.Digest, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.nodes {
		for _, g := range d.generations {
			digests = append(digests, g.Digest)
		}
	}
	slices.Sort(digests)
	return slices.Compact(digests), nil
}

// HeldIn implements deliver.Archive. Every node is active.
func (f *Fake) HeldIn(_ context.Context, env fleet.Environment) (held []deliver.Held, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for node, d := range f.nodes {
		if d.force == deliver.Released && len(d.generations) > 0 && d.generations[0].Environment == env {
			held = append(held, deliver.Held{Node: node, Version: d.generations[0].Version, Released: true})
		}
	}
	for node, c := range f.newest {
		if d, there := f.nodes[node]; c.Environment == env && (!there || d.force != deliver.Released) {
			held = append(held, deliver.Held{Node: node, Version: c.Version})
		}
	}
	slices.SortFunc(held, func(a, b deliver.Held) int { return cmp.Compare(a.Node, b.Node) })
	return held, nil
}

// HeadsIn implements deliver.Archive.
func (f *Fake) HeadsIn(_ context.Context, env fleet.Environment) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.nodes {
		if d.force == deliver.Released && len(d.generations) > 0 && d.generations[0].Environment == env {
			n++
		}
	}
	return n, nil
}

// Applied implements deliver.Archive.
func (f *Fake) Applied(_ context.Context, node fleet.Certname) (deliver.Applied, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.applied[node]
	if a.UUID == "" {
		return a, nil
	}
	if c := f.newest[node]; c.UUID == a.UUID {
		a.Catalog = c.Digest
	}
	if d := f.nodes[node]; d != nil {
		for _, g := range d.generations {
			if g.UUID == a.UUID {
				a.Catalog, a.Generation = g.Digest, g.Number
				break
			}
		}
	}
	return a, nil
}
