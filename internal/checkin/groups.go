package checkin

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Known is classify.Known: what the inventory and certificates say of nodes.
type Known struct {
	Inventory interface {
		Facts(ctx context.Context, node fleet.Certname) (inventory.FactSet, error)
		FactLeaves(ctx context.Context, nodes []fleet.Certname, paths []string) (map[fleet.Certname][]facts.Leaf, error)
	}
	Trust Trust
}

// Facts implements classify.Known.
func (k Known) Facts(ctx context.Context, node fleet.Certname) (json.RawMessage, error) {
	stored, err := k.Inventory.Facts(ctx, node)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return stored.Values, err
}

// FactLeaves implements classify.Known.
func (k Known) FactLeaves(ctx context.Context, nodes []fleet.Certname, paths []string) (map[fleet.Certname][]facts.Leaf, error) {
	return k.Inventory.FactLeaves(ctx, nodes, paths)
}

// Trusted implements classify.Known.
func (k Known) Trusted(ctx context.Context, node fleet.Certname) (json.RawMessage, error) {
	return k.Trust.Known(ctx, node)
}

// Certified implements classify.Known.
func (k Known) Certified(ctx context.Context, node fleet.Certname) (json.RawMessage, error) {
	return k.Trust.Certified(ctx, node)
}

// Classes is compile.Classifier over groups.
type Classes struct{ Groups *classify.Service }

// Classify implements compile.Classifier.
func (c Classes) Classify(
	ctx context.Context, name fleet.Certname, _ fleet.Environment, values, trusted json.RawMessage,
) (given compile.Classification, err error) {
	result, err := c.Groups.Classify(ctx, name, values, trusted)
	if err != nil {
		return given, err
	}
	for into, values := range map[*json.RawMessage]any{&given.Classes: result.Classes, &given.Parameters: result.Parameters, &given.Data: result.Lookup()} {
		if *into, err = object(values); err != nil {
			return given, err
		}
	}
	given.Given = givenBy(result.Origins)
	return given, nil
}

// givenBy names for each thing that a node gets the groups that give it.
func givenBy(origins []classify.Origin) (given []compile.Given) {
	kinds := map[classify.Kind]compile.GivenKind{
		classify.Class: compile.GivenClass, classify.Parameter: compile.GivenParameter, classify.Variable: compile.GivenVariable, classify.Data: compile.GivenData,
	}
	for _, o := range origins {
		kind, told := kinds[o.Item.Kind]
		if !told || o.State != classify.Used {
			continue
		}
		from := "group " + o.GroupName
		if o.GroupName == classify.ExternalName {
			from = "the " + classify.ExternalName
		}
		given = append(given, compile.Given{Kind: kind, Class: o.Item.Class, Name: o.Item.Name, From: from})
	}
	return given
}

// object is values as JSON; null when there are none.
func object(values any) (json.RawMessage, error) {
	text, err := json.Marshal(values)
	if string(text) == "{}" {
		return nil, err
	}
	return text, err
}

// Grouping is compile.Grouping. Of an external node classifier nobody knows what its answers come from: there it is the
// node's next request that notices.
type Grouping struct {
	Groups       *classify.Service
	Environments Environments
}

// Revision implements compile.Grouping.
func (g Grouping) Revision(ctx context.Context) (int64, error) {
	if program, err := g.Groups.Program(); err != nil || program.Path != "" {
		return 0, nil //nolint:nilerr // a program that cannot be run is one, too
	}
	return g.Groups.Store.GroupsRevision(ctx)
}

// Facts implements compile.Grouping.
func (g Grouping) Facts(ctx context.Context) ([]string, error) {
	if program, err := g.Groups.Program(); err != nil || program.Path != "" {
		return nil, nil //nolint:nilerr // a program that cannot be run is one, too
	}
	tree, err := g.Groups.Current(ctx)
	if err != nil {
		return nil, err
	}
	return tree.FactNames(), nil
}

// Environment implements compile.Grouping.
func (g Grouping) Environment(ctx context.Context, node fleet.Certname, otherwise fleet.Environment) (fleet.Environment, error) {
	return g.Environments.Live(ctx, node, otherwise)
}
