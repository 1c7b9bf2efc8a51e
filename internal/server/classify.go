package server

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/rest"
)

// classifier classifies nodes by the groups that are stored. The tree is kept
// until its revision changes.
type classifier struct {
	*parts

	mu       sync.Mutex // guards the rest
	tree     *classify.Tree
	revision int64
}

// treeFor is what decides about a node: the stored groups, or the answer of the
// external node classifier as the only group.
func (c *classifier) treeFor(ctx context.Context, name fleet.Certname) (*classify.Tree, error) {
	path := c.config.Load().ExternalNodeClassifier
	if path == "" {
		return c.current(ctx)
	}
	program, err := c.programs.NodeClassifier(path)
	if err != nil {
		return nil, err
	}
	answer, err := program.Classification(ctx, name)
	if err != nil {
		return nil, err
	}
	group, err := classify.External(answer)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the external node classifier %s answers for %s: %s", path, name, fault.Detail(err))
	}
	return classify.NewTree([]classify.Group{group}), nil
}

// current is the tree as it is stored now.
func (c *classifier) current(ctx context.Context) (*classify.Tree, error) {
	revision, err := c.store.Groups.GroupsRevision(ctx)
	if err != nil {
		return nil, err
	}
	if tree := c.kept(revision); tree != nil {
		return tree, nil
	}
	groups, revision, err := c.store.Groups.Groups(ctx)
	if err != nil {
		return nil, err
	}
	tree := classify.NewTree(groups)
	for _, g := range tree.Defects() {
		c.log.WarnContext(ctx, "group cannot be used, it and those below it match nothing", "group", g.Name, "id", g.ID, "why", g.Defect)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tree, c.revision = tree, revision
	return tree, nil
}

func (c *classifier) kept(revision int64) *classify.Tree {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revision != revision {
		return nil
	}
	return c.tree
}

// checkNodeClassifier refuses a program that cannot be run, at the start rather
// than at the first node.
func (p *parts) checkNodeClassifier(c Config) error {
	if c.ExternalNodeClassifier == "" {
		return nil
	}
	if _, err := p.programs.NodeClassifier(c.ExternalNodeClassifier); err != nil {
		return bad("external_node_classifier", "%s", fault.Detail(err))
	}
	return nil
}

// Classify is compile.Classifier.
func (c *classifier) Classify(
	ctx context.Context, name fleet.Certname, _ fleet.Environment, facts, trusted json.RawMessage,
) (given compile.Classification, err error) {
	tree, err := c.treeFor(ctx, name)
	if err != nil {
		return given, err
	}
	if !tree.Needs().Facts {
		facts = nil // they are long
	}
	node, err := classify.NewNode(name, facts, trusted)
	if err != nil {
		return given, err
	}
	result := tree.Classify(node)
	if err := tree.Disagreement(result, name, false); err != nil {
		return given, err
	}
	for into, values := range map[*json.RawMessage]any{&given.Classes: result.Classes, &given.Parameters: result.Parameters, &given.Data: result.Lookup()} {
		if *into, err = object(values); err != nil {
			return given, err
		}
	}
	return given, nil
}

// object is values as JSON; null when there are none.
func object(values any) (json.RawMessage, error) {
	text, err := json.Marshal(values)
	if string(text) == "{}" {
		return nil, err
	}
	return text, err
}

// environment is the one that groups give a node; empty when they leave it open.
// A node that was never seen is classified by its name and certificate.
func (c *classifier) environment(ctx context.Context, name fleet.Certname) (fleet.Environment, error) {
	tree, err := c.treeFor(ctx, name)
	if err != nil || !tree.SettlesEnvironments() {
		return "", err
	}
	known, err := c.known(ctx, name, tree.Needs())
	if err != nil {
		return "", err
	}
	result := tree.Classify(known.node)
	if err := tree.Disagreement(result, name, true); err != nil {
		return "", err
	}
	if result.Environment == classify.AgentSpecified {
		return "", nil
	}
	return fleet.Environment(result.Environment), nil
}

// Explain is rest.Classifier.
func (c *classifier) Explain(ctx context.Context, name fleet.Certname) (rest.Explained, error) {
	tree, err := c.treeFor(ctx, name)
	if err != nil {
		return rest.Explained{}, err
	}
	known, err := c.known(ctx, name, classify.Needs{Facts: true, Trusted: true})
	if err != nil {
		return rest.Explained{}, err
	}
	return rest.Explained{Explanation: tree.Explain(known.node), FactsKnown: known.facts, TrustedKnown: known.trusted}, nil
}

// knownNode is a node and what is known of it.
type knownNode struct {
	node           classify.Node
	facts, trusted bool
}

// known reads what needs asks for. What is not known is left out: a node has no
// facts before its first run.
func (c *classifier) known(ctx context.Context, name fleet.Certname, needs classify.Needs) (knownNode, error) {
	facts, trusted, err := c.documents(ctx, name, needs)
	if err != nil {
		return knownNode{}, err
	}
	node, err := classify.NewNode(name, facts, trusted)
	return knownNode{node: node, facts: len(facts) > 0, trusted: len(trusted) > 0}, err
}

func (c *classifier) documents(ctx context.Context, name fleet.Certname, needs classify.Needs) (facts, trusted json.RawMessage, err error) {
	if needs.Facts {
		stored, err := c.store.Facts.Facts(ctx, name)
		if err != nil && fault.Of(err) != fault.NotFound {
			return nil, nil, err
		}
		facts = stored.Values
	}
	if needs.Trusted {
		trusted, err = agentDoor{c.parts}.Trusted(ctx, name, nil)
		if fault.Of(err) == fault.NotFound { // it has no certificate
			err = nil
		}
	}
	return facts, trusted, err
}
