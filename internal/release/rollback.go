package release

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/parallel"
)

// backward finds the targets of a roll back: of a release, the nodes that it gave a generation; or those that are named.
func (l *Planner) backward(ctx context.Context, o Order, plan *Plan) error {
	nodes, err := l.takenBack(ctx, o, plan)
	if err != nil {
		return err
	}
	if o.Allowed != nil {
		if err := o.Allowed(ctx, plan.Release.Environment, nodes); err != nil {
			return err
		}
	}
	targets := make([]Target, len(nodes))
	already := make([]bool, len(nodes))
	err = parallel.Each(len(nodes), atOnce, func(i int) (err error) {
		targets[i], already[i], err = l.earlier(ctx, o, nodes[i])
		return err
	})
	if err != nil {
		return err
	}
	for i, t := range targets {
		if already[i] {
			plan.Already++
			continue
		}
		t.Number = len(plan.Targets) + 1
		plan.Targets = append(plan.Targets, t)
	}
	return o.environments(ctx, plan)
}

// environments asks for the environments that nodes go back to, which may be others than they are in, and names the release's if it
// is one.
func (o Order) environments(ctx context.Context, plan *Plan) error {
	given := environmentsOf(plan.Targets)
	for _, env := range given {
		if env == plan.Release.Environment || o.Allowed == nil {
			continue
		}
		if err := o.Allowed(ctx, env, nil); err != nil {
			return err
		}
	}
	if o.Of == 0 && len(given) == 1 {
		plan.Release.Environment = given[0]
	}
	return nil
}

// takenBack is the nodes that a roll back is about, by name.
func (l *Planner) takenBack(ctx context.Context, o Order, plan *Plan) ([]fleet.Certname, error) {
	switch {
	case (o.Of == 0) == (len(o.Nodes) == 0):
		return nil, fault.New(fault.Invalid, "field release, nodes: give a release to take back, or nodes")
	case o.Of != 0 && o.To != 0:
		return nil, fault.New(fault.Invalid, "field to: a release is taken back to what was before it; a generation is given with nodes")
	case o.Of == 0:
		return slices.Compact(slices.Sorted(slices.Values(o.Nodes))), nil
	}
	of, err := l.records.Release(ctx, o.Of)
	if err != nil {
		return nil, err
	}
	switch {
	case of.State == Stopping:
		return nil, fault.New(fault.Conflict, "release %d is stopping: wait until it has ended: tutti release watch %d", of.ID, of.ID)
	case !of.State.Final() && of.State != Paused:
		return nil, fault.New(fault.Conflict, "release %d is %s: pause or abort it first: tutti release abort %d", of.ID, inWords(of.State), of.ID)
	}
	plan.Release.Environment = of.Environment
	return l.delivery.GivenBy(ctx, o.Of)
}

// earlier is what a node is given by a roll back; already says that it has it.
func (l *Planner) earlier(ctx context.Context, o Order, node fleet.Certname) (t Target, already bool, err error) {
	t = Target{Node: node, State: Waiting, Round: 1}
	kept, err := l.delivery.Generations(ctx, node)
	if err != nil {
		return t, false, err
	}
	has, err := l.delivery.Has(ctx, node)
	if err != nil {
		return t, false, err
	}
	t.Base = has.Catalog
	switch g, why := choose(o, kept, has); {
	case has.Refuses != "":
		return t.end(Refused, has.Refuses), false, nil
	case why != "":
		return t.end(Refused, why), false, nil
	case g.Digest == has.Catalog && g.Version == has.Version:
		return t, true, nil
	default:
		t.Catalog = g.Catalog
		return t, false, nil
	}
}

// before is the place of the generation that a node had before it got any of a release's, in those that are kept, newest first; -1: it
// is not kept.
func before(kept []deliver.Generation, release int64) int {
	return slices.IndexFunc(kept, func(g deliver.Generation) bool { return g.Release != release })
}

// notOf says why a node is not taken back from a release: it got something else since, perhaps by a roll back of that release.
func notOf(has Holding, release int64) string {
	by := "no release"
	if has.Release != 0 {
		by = fmt.Sprintf("release %d", has.Release)
	}
	return fmt.Sprintf("it has generation %d since, which it got from %s and not from release %d; `tutti catalog generations NODE` shows them, --to N goes back to one", has.Generation, by, release)
}

// choose finds the generation that a node goes back to.
func choose(o Order, kept []deliver.Generation, has Holding) (g deliver.Generation, why string) {
	if len(kept) == 0 {
		return g, "nothing was released to it"
	}
	wanted := o.To
	if o.Of == 0 {
		wanted = cmp.Or(wanted, kept[0].Number-1)
	} else {
		if has.Release != o.Of {
			return g, notOf(has, o.Of)
		}
		if i := before(kept, o.Of); i >= 0 {
			return kept[i], ""
		}
		wanted = kept[len(kept)-1].Number - 1
	}
	if wanted < 1 {
		return g, "it has no generation before"
	}
	i := slices.IndexFunc(kept, func(k deliver.Generation) bool { return k.Number == wanted })
	if i < 0 {
		return g, fmt.Sprintf("its generation %d is not kept any more, or never was; kept are %d to %d", wanted, kept[len(kept)-1].Number, kept[0].Number)
	}
	return kept[i], ""
}
