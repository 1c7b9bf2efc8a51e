package inventorytest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Store is all the ports of the inventory together.
//
// Wide: the suite looks at what one port keeps through another.
type Store interface {
	inventory.FactStore
	inventory.PackageStore
	inventory.CatalogStore
	inventory.InputStore
	inventory.NodeStore
	inventory.ReportStore
	inventory.RunStore
}

// Fake is a Store in memory.
type Fake struct {
	mu       sync.Mutex
	nodes    map[fleet.Certname]inventory.Node
	facts    map[fleet.Certname]inventory.FactSet
	catalogs map[fleet.Certname]inventory.Catalog
	reports  map[fleet.Digest]inventory.Report
	keeps    map[fleet.Certname]expiration
	inputs   map[fleet.Certname]inventory.CatalogInputs
}

// expiration is what configure_expiration said of a node.
type expiration struct {
	never bool
	at    time.Time
}

// New returns an empty Fake.
func New() *Fake {
	return &Fake{
		nodes:    map[fleet.Certname]inventory.Node{},
		facts:    map[fleet.Certname]inventory.FactSet{},
		catalogs: map[fleet.Certname]inventory.Catalog{},
		reports:  map[fleet.Digest]inventory.Report{},
		keeps:    map[fleet.Certname]expiration{},
		inputs:   map[fleet.Certname]inventory.CatalogInputs{},
	}
}

// touch returns the node, made at the given time if need be.
func (s *Fake) touch(name fleet.Certname, env fleet.Environment, at time.Time) inventory.Node {
	node, ok := s.nodes[name]
	if !ok {
		node = inventory.Node{Certname: name, CreatedAt: at}
	}
	node.Environment = env
	return node
}

// activate makes a node active that left before the given time.
func activate(node *inventory.Node, produced time.Time) {
	if node.DeactivatedAt.Before(produced) {
		node.DeactivatedAt = time.Time{}
	}
	if node.ExpiredAt.Before(produced) {
		node.ExpiredAt = time.Time{}
	}
}

// SaveFacts implements inventory.FactStore.
func (s *Fake) SaveFacts(_ context.Context, f inventory.FactSet) (inventory.FactSet, []string, error) {
	values, arrangement, err := facts.Canonical(f.Values)
	if err != nil {
		return inventory.FactSet{}, nil, err
	}
	if f.Digest != "" {
		arrangement = f.Arrangement
	}
	f.Values, f.Digest, f.Arrangement = values, fleet.DigestOf(values), arrangement
	if _, err := facts.Arranged(f.Values, f.Arrangement); err != nil {
		return inventory.FactSet{}, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.facts[f.Certname]
	if f.ProducedAt.IsZero() {
		f.ProducedAt = f.ReceivedAt
	} else if f.ProducedAt.Before(before.ProducedAt) {
		before.Packages, before.Arrangement = nil, ""
		return before, nil, nil
	}
	if f.Number != 0 && f.Number <= before.Number {
		before.Packages, before.Arrangement = nil, ""
		return before, nil, nil
	}
	f.Number = max(f.Number, before.Number)
	f.Packages = inventory.DistinctPackages(f.Packages)
	changes, err := facts.Diff(before.Values, f.Values)
	if err != nil {
		return inventory.FactSet{}, nil, err
	}
	f.Seq = before.Seq
	if !known || before.Digest != f.Digest || before.Arrangement != f.Arrangement {
		f.Seq++
	}
	s.facts[f.Certname] = f
	f.Arrangement = ""
	node := s.touch(f.Certname, f.Environment, f.ReceivedAt)
	node.FactsAt = f.ReceivedAt
	activate(&node, f.ProducedAt)
	s.nodes[f.Certname] = node
	return f, facts.Paths(changes), nil
}

// Facts implements inventory.FactStore.
func (s *Fake) Facts(_ context.Context, name fleet.Certname) (inventory.FactSet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.facts[name]
	if !ok {
		return f, fault.New(fault.NotFound, "node %s has no facts", name)
	}
	f.Packages, f.Arrangement = nil, ""
	return f, nil
}

// FactsAsTold implements inventory.FactStore.
func (s *Fake) FactsAsTold(ctx context.Context, name fleet.Certname) (inventory.FactSet, error) {
	f, err := s.Facts(ctx, name)
	if err != nil {
		return f, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Values, err = facts.Arranged(f.Values, s.facts[name].Arrangement)
	return f, err
}

// Packages implements inventory.PackageStore.
func (s *Fake) Packages(_ context.Context, name fleet.Certname) ([]inventory.Package, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts[name].Packages, nil
}

// FactLeaves implements inventory.FactStore.
func (s *Fake) FactLeaves(_ context.Context, nodes []fleet.Certname, paths []string) (map[fleet.Certname][]facts.Leaf, error) {
	if err := inventory.CheckNamed(nodes); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[fleet.Certname][]facts.Leaf{}
	for _, name := range nodes {
		f, ok := s.facts[name]
		if !ok {
			continue
		}
		leaves, err := facts.Flatten(f.Values)
		if err != nil {
			return nil, err
		}
		leaves = slices.DeleteFunc(leaves, func(l facts.Leaf) bool { return !slices.Contains(paths, l.Path) })
		if len(leaves) > 0 {
			out[name] = leaves
		}
	}
	return out, nil
}

// SaveCatalog implements inventory.CatalogStore.
func (s *Fake) SaveCatalog(_ context.Context, c inventory.Catalog) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.catalogs[c.Certname]
	switch {
	case c.Received && c.ProducedAt.Before(before.ProducedAt), !c.Received && c.Compilation < before.Compilation:
		return nil
	case c.Received:
		c.Compilation = before.Compilation
	case c.ProducedAt.IsZero():
		c.ProducedAt = c.CompiledAt
	}
	given := before.Digest
	if before.Received {
		given = ""
	}
	if c.Over != nil && given != *c.Over {
		return fault.Wrap(fault.Conflict, inventory.ErrReplaced, "%s has another catalog by now", c.Certname)
	}
	c.Over = nil
	if ok && c.Digest == before.Digest {
		c.Resources, c.Edges = before.Resources, before.Edges
	}
	c.Resources, c.Edges = inventory.Distinct(c.Resources, c.Edges)
	c.Collected = inventory.DistinctCollected(c.Collected)
	s.catalogs[c.Certname] = c
	node := s.touch(c.Certname, c.Environment, c.CompiledAt)
	node.CatalogAt, node.CatalogDigest = c.CompiledAt, c.Digest
	if c.Received {
		activate(&node, c.ProducedAt)
	}
	s.nodes[c.Certname] = node
	return nil
}

// Catalog implements inventory.CatalogStore.
func (s *Fake) Catalog(_ context.Context, name fleet.Certname) (inventory.Catalog, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.catalogs[name]
	if !ok {
		return c, fault.New(fault.NotFound, "node %s has no catalog", name)
	}
	return c, nil
}

// CatalogDigests implements inventory.CatalogStore.
func (s *Fake) CatalogDigests(context.Context) ([]fleet.Digest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[fleet.Digest]bool{}
	for _, c := range s.catalogs {
		if !c.Received {
			seen[c.Digest] = true
		}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// Nodes implements inventory.NodeStore.
func (s *Fake) Nodes(_ context.Context, page inventory.Page) ([]inventory.Node, error) {
	if err := inventory.CheckPage(page); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []inventory.Node
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		if string(name) > page.After && len(out) < page.Limit {
			out = append(out, s.nodes[name])
		}
	}
	return out, nil
}

// NodesNamed implements inventory.NodeStore.
func (s *Fake) NodesNamed(_ context.Context, names []fleet.Certname) ([]inventory.Node, error) {
	if err := inventory.CheckNamed(names); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []inventory.Node
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if node, ok := s.nodes[name]; ok {
			out = append(out, node)
		}
	}
	return out, nil
}

// Node implements inventory.NodeStore.
func (s *Fake) Node(_ context.Context, name fleet.Certname) (inventory.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node, ok := s.nodes[name]
	if !ok {
		return node, fault.New(fault.NotFound, "nothing is known of node %s", name)
	}
	return node, nil
}

// PurgeNode implements inventory.NodeStore.
func (s *Fake) PurgeNode(_ context.Context, name fleet.Certname) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.nodes[name]; !ok {
		return fault.New(fault.NotFound, "nothing is known of node %s", name)
	}
	s.forget(name)
	return nil
}

// forget removes all that is known of a node.
func (s *Fake) forget(name fleet.Certname) {
	delete(s.nodes, name)
	delete(s.facts, name)
	delete(s.catalogs, name)
	delete(s.keeps, name)
	delete(s.inputs, name)
	maps.DeleteFunc(s.reports, func(_ fleet.Digest, r inventory.Report) bool { return r.Certname == name })
}

// SaveReport implements inventory.ReportStore.
func (s *Fake) SaveReport(_ context.Context, r inventory.Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.reports[r.ID]; known {
		return nil
	}
	if r.ProducedAt.IsZero() {
		r.ProducedAt = r.ReceivedAt
	}
	r.Type = cmp.Or(r.Type, "agent")
	s.reports[r.ID] = r
	env := r.Environment
	if known, ok := s.nodes[r.Certname]; ok && r.Type != "agent" {
		env = known.Environment
	}
	node := s.touch(r.Certname, env, r.ReceivedAt)
	activate(&node, r.ProducedAt)
	if r.Type == "agent" && !r.ProducedAt.Before(s.reports[node.LatestReport].ProducedAt) {
		node.ReportAt, node.LatestReport = r.ReceivedAt, r.ID
		node.LatestStatus, node.LatestNoop, node.LatestCorrective = r.Status, r.Noop, r.CorrectiveChange
	}
	s.nodes[r.Certname] = node
	return nil
}

// Reports implements inventory.ReportStore.
func (s *Fake) Reports(_ context.Context, f inventory.ReportFilter) ([]inventory.Report, error) {
	if err := inventory.CheckPage(f.Page); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	after, known := s.reports[fleet.Digest(f.Page.After)]
	if f.Page.After != "" && !known {
		return nil, fault.New(fault.Invalid, "the page should start after report %.64q, which is not stored", f.Page.After)
	}
	var out []inventory.Report
	for _, r := range slices.SortedFunc(maps.Values(s.reports), newestFirst) {
		if f.Page.After != "" && newestFirst(r, after) <= 0 ||
			f.Certname != "" && r.Certname != f.Certname || f.Status != "" && r.Status != f.Status {
			continue
		}
		if len(out) < f.Page.Limit {
			r.Logs, r.Metrics, r.Resources = nil, nil, nil
			out = append(out, r)
		}
	}
	return out, nil
}

func newestFirst(a, b inventory.Report) int {
	return cmp.Or(b.ReceivedAt.Compare(a.ReceivedAt), cmp.Compare(b.ID, a.ID))
}

// Report implements inventory.ReportStore.
func (s *Fake) Report(_ context.Context, id string) (inventory.Report, error) {
	if err := inventory.CheckReportID(id); err != nil {
		return inventory.Report{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []inventory.Report
	for digest, r := range s.reports {
		if strings.HasPrefix(string(digest), id) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return inventory.Report{}, fault.New(fault.NotFound, "there is no report %s", id)
	case 1:
		return found[0], nil
	default:
		return inventory.Report{}, fault.New(fault.Conflict, "more than one report starts with %s", id)
	}
}

// ShortenReports implements inventory.ReportStore.
func (s *Fake) ShortenReports(_ context.Context, before time.Time) (count int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.reports {
		if r.Short || !r.ReceivedAt.Before(before) || s.nodes[r.Certname].LatestReport == id {
			continue
		}
		r.Short, r.Metrics, r.Resources, r.Logs = true, nil, nil, []inventory.RunLog{inventory.InShort(r)}
		s.reports[id] = r
		count++
	}
	return count, nil
}

// PruneReports implements inventory.ReportStore.
func (s *Fake) PruneReports(_ context.Context, before time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	maps.DeleteFunc(s.reports, func(id fleet.Digest, r inventory.Report) bool {
		old := r.ReceivedAt.Before(before) && s.nodes[r.Certname].LatestReport != id
		if old {
			count++
		}
		return old
	})
	return count, nil
}
