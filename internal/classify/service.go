package classify

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Known is what is known of nodes. What is not known is nil: a node has no facts before its first run.
type Known interface {
	Facts(ctx context.Context, node fleet.Certname) (json.RawMessage, error)
	// FactLeaves is those of the nodes' facts whose paths are named, as facts.PathText writes them.
	FactLeaves(ctx context.Context, nodes []fleet.Certname, paths []string) (map[fleet.Certname][]facts.Leaf, error)
	// Trusted is the node's $trusted; Certified the same without what an operator's program knows.
	Trusted(ctx context.Context, node fleet.Certname) (json.RawMessage, error)
	Certified(ctx context.Context, node fleet.Certname) (json.RawMessage, error)
}

// Program is an external node classifier.
type Program struct {
	Path     string // empty: there is none
	Classify func(ctx context.Context, node fleet.Certname) (json.RawMessage, error)
}

// ServiceParts is what a service works with.
type ServiceParts struct {
	Store   Store
	Known   Known
	Program func() (Program, error) // as it is set now; its answer is the only group then
	Log     *slog.Logger
}

// Service classifies nodes by the groups that are stored. The tree is kept until its revision changes.
type Service struct {
	ServiceParts

	mu       sync.Mutex // guards the rest
	tree     *Tree
	revision int64
}

// NewService returns a service.
func NewService(parts ServiceParts) *Service { return &Service{ServiceParts: parts} }

// treeFor is what decides about a node: the stored groups, or the answer of the
// external node classifier as the only group.
func (s *Service) treeFor(ctx context.Context, name fleet.Certname) (*Tree, error) {
	program, err := s.Program()
	if err != nil {
		return nil, err
	}
	if program.Path == "" {
		return s.Current(ctx)
	}
	answer, err := program.Classify(ctx, name)
	if err != nil {
		return nil, err
	}
	group, err := External(answer)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the external node classifier %s answers for %s: %s", program.Path, name, fault.Detail(err))
	}
	return NewTree([]Group{group}), nil
}

// Current is the tree as it is stored now.
func (s *Service) Current(ctx context.Context) (*Tree, error) {
	revision, err := s.Store.GroupsRevision(ctx)
	if err != nil {
		return nil, err
	}
	if tree := s.kept(revision); tree != nil {
		return tree, nil
	}
	groups, revision, err := s.Store.Groups(ctx)
	if err != nil {
		return nil, err
	}
	tree := NewTree(groups)
	for _, g := range tree.Defects() {
		s.Log.WarnContext(ctx, "group cannot be used, it and those below it match nothing", "group", g.Name, "id", g.ID, "why", g.Defect)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tree, s.revision = tree, revision
	return tree, nil
}

func (s *Service) kept(revision int64) *Tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision != revision {
		return nil
	}
	return s.tree
}

// Classify is what groups give a node with these facts and trusted data. Invalid where they disagree.
func (s *Service) Classify(ctx context.Context, name fleet.Certname, values, trusted json.RawMessage) (Result, error) {
	tree, err := s.treeFor(ctx, name)
	if err != nil {
		return Result{}, err
	}
	if !tree.Needs().Facts {
		values = nil // they are long
	}
	node, err := NewNode(name, values, trusted)
	if err != nil {
		return Result{}, err
	}
	result := tree.Classify(node)
	return result, tree.Disagreement(result, name, false)
}

// Environment is the one that groups give a node; empty when they leave it open.
// A node that was never seen is classified by its name and certificate.
func (s *Service) Environment(ctx context.Context, name fleet.Certname) (fleet.Environment, error) {
	tree, err := s.treeFor(ctx, name)
	if err != nil || !tree.SettlesEnvironments() {
		return "", err
	}
	values, trusted, err := s.Documents(ctx, name, tree.Needs())
	if err != nil {
		return "", err
	}
	node, err := NewNode(name, values, trusted)
	if err != nil {
		return "", err
	}
	result := tree.Classify(node)
	if err := tree.Disagreement(result, name, true); err != nil {
		return "", err
	}
	if result.Environment == AgentSpecified {
		return "", nil
	}
	return fleet.Environment(result.Environment), nil
}

// Explained is what groups give a node, and what the node is known by.
type Explained struct {
	Explanation
	FactsKnown, TrustedKnown bool
}

// Explain says why groups give a node what they give it.
func (s *Service) Explain(ctx context.Context, name fleet.Certname) (Explained, error) {
	tree, err := s.treeFor(ctx, name)
	if err != nil {
		return Explained{}, err
	}
	values, trusted, err := s.Documents(ctx, name, Needs{Facts: true, Trusted: true})
	if err != nil {
		return Explained{}, err
	}
	node, err := NewNode(name, values, trusted)
	if err != nil {
		return Explained{}, err
	}
	return Explained{Explanation: tree.Explain(node), FactsKnown: len(values) > 0, TrustedKnown: len(trusted) > 0}, nil
}

// Documents reads what needs asks for.
func (s *Service) Documents(ctx context.Context, name fleet.Certname, needs Needs) (values, trusted json.RawMessage, err error) {
	if needs.Facts {
		if values, err = s.Known.Facts(ctx, name); err != nil {
			return nil, nil, err
		}
	}
	if needs.Trusted {
		trusted, err = s.Known.Trusted(ctx, name)
	}
	return values, trusted, err
}

// Members asks the stored groups which of the nodes are in one, and of each whether it is pinned there. It reads of
// each node only what the rules look at.
func (s *Service) Members(ctx context.Context, group ID, nodes []fleet.Certname) (map[fleet.Certname]bool, error) {
	tree, err := s.Current(ctx)
	if err != nil {
		return nil, err
	}
	members, gate := map[fleet.Certname]bool{}, tree.Gate(group)
	if !gate.Open() {
		return members, nil
	}
	paths, trusted := factPaths(gate), gate.Paths(Trusted)
	leaves, err := s.leaves(ctx, nodes, paths)
	if err != nil {
		return nil, err
	}
	for _, name := range nodes {
		known, err := s.partTrusted(ctx, name, trusted)
		if err != nil {
			return nil, err
		}
		node, err := NewPartNode(name, factsAt(paths, leaves[name]), known)
		if err != nil {
			return nil, err
		}
		if member, pinned := gate.Admits(node); member {
			members[name] = pinned
		}
	}
	return members, nil
}

// factPaths is what the conditions look at: from the inventory's spelling of a path
// to the rules'.
func factPaths(gate Gate) map[string]string {
	paths := map[string]string{}
	for _, path := range gate.Paths(Fact) {
		paths[factPath(path)] = path.String()
	}
	return paths
}

func (s *Service) leaves(ctx context.Context, nodes []fleet.Certname, paths map[string]string) (map[fleet.Certname][]facts.Leaf, error) {
	if len(paths) == 0 {
		return nil, nil //nolint:nilnil // nobody looks
	}
	return s.Known.FactLeaves(ctx, nodes, slices.Sorted(maps.Keys(paths)))
}

// factPath is where facts keep what a rule looks at.
func factPath(path Path) string {
	steps := make([]any, len(path.Steps))
	for i, step := range path.Steps {
		if steps[i] = step.Key; step.IsIndex {
			steps[i] = int64(step.Index)
		}
	}
	return facts.PathText(steps...)
}

// factsAt are leaves as rules ask for them.
func factsAt(paths map[string]string, leaves []facts.Leaf) map[string]any {
	found := make(map[string]any, len(leaves))
	for _, leaf := range leaves {
		found[paths[leaf.Path]] = leafValue(leaf)
	}
	return found
}

// leafValue is a leaf as rules see it.
func leafValue(leaf facts.Leaf) any {
	switch leaf.Kind {
	case facts.String:
		return leaf.Text
	case facts.Integer, facts.Float:
		return json.Number(leaf.Text)
	case facts.Boolean:
		return leaf.Text == "true"
	case facts.EmptyObject:
		return map[string]any{}
	case facts.EmptyArray:
		return []any{}
	case facts.Null:
	}
	return nil
}

// partTrusted reads the certificate only if a rule looks at trusted data, and asks
// the program for external ones only if a rule looks at these.
func (s *Service) partTrusted(ctx context.Context, name fleet.Certname, paths []Path) (json.RawMessage, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	if slices.ContainsFunc(paths, func(path Path) bool { return path.Steps[0].Key == "external" }) {
		return s.Known.Trusted(ctx, name)
	}
	return s.Known.Certified(ctx, name)
}
