package rest

import (
	"context"
	"slices"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/rbac"
)

// expect completes the plan of a Puppet run with what is known of each node's next one.
func (d submission) expect(ctx context.Context, kind job.Kind, plan *api.JobPlan) error {
	if kind != job.Puppet {
		return nil
	}
	for part := range slices.Chunk(plan.Targets, inventory.MaxNamed) {
		names := make([]fleet.Certname, len(part))
		for i, t := range part {
			names[i] = fleet.Certname(t.Node)
		}
		nodes, err := d.orders.nodes.NodesNamed(ctx, names)
		if err != nil {
			return err
		}
		known := make(map[string]inventory.Node, len(nodes))
		for _, n := range nodes {
			known[string(n.Certname)] = n
		}
		for i := range part {
			state, err := d.stateOf(ctx, names[i])
			if err != nil {
				return err
			}
			part[i].Expected = expected(known[part[i].Node], state)
		}
	}
	return d.foresee(ctx, plan)
}

// stateOf is how what a node applied last stands to what it may have; Unknown also for a node that nothing was given to.
func (d submission) stateOf(ctx context.Context, node fleet.Certname) (deliver.State, error) {
	standing, _, err := d.orders.deliveries.Standing(ctx, node)
	if err == nil {
		state, _, err := d.orders.deliveries.State(ctx, standing)
		return state, err
	}
	if fault.Of(err) == fault.NotFound {
		err = nil
	}
	return deliver.Unknown, err
}

// expected is what the next run of a node will find, as far as its catalogs and its latest report tell. A catalog is new if it is another one than the
// node applied: times say nothing of that, for a run's own catalog is compiled while the run goes on.
func expected(n inventory.Node, state deliver.State) string {
	switch {
	case n.ReportAt.IsZero():
		return api.ExpectUnknown
	case n.LatestNoop && n.LatestStatus == "changed":
		return api.ExpectNoop
	case !n.LatestNoop && !n.CatalogAt.IsZero() && state != deliver.Current:
		return api.ExpectCatalog
	case n.LatestStatus == "failed":
		return api.ExpectFailed
	}
	return api.ExpectNothing
}

// maxForeseen is how many nodes' next runs are looked into: two catalogs of each are read.
const maxForeseen = 250

// CatalogStep is what a node applied last, and what it may have now.
type CatalogStep struct {
	Node     fleet.Certname
	From, To fleet.Digest
}

// foresee completes the plan with what nodes with a new catalog have to change. A node whose catalogs the caller may not read, or that are
// not stored any more, is counted only.
func (d submission) foresee(ctx context.Context, plan *api.JobPlan) error {
	var nodes []fleet.Certname
	for _, t := range plan.Targets {
		if t.Expected == api.ExpectCatalog {
			nodes = append(nodes, fleet.Certname(t.Node))
		}
	}
	plan.Uncompared = len(nodes)
	steps, err := d.steps(ctx, nodes)
	if err != nil || len(steps) == 0 {
		return err
	}
	done, err := d.orders.differences.turnToCompare(ctx)
	if err != nil {
		return err
	}
	defer done()
	changes, compared, err := d.orders.changes.Changes(ctx, steps)
	if err != nil {
		return err
	}
	plan.Changes, plan.Uncompared = &changes, plan.Uncompared-compared
	return nil
}

// steps is the next ones of nodes, as far as they are known and the caller may read catalogs.
func (d submission) steps(ctx context.Context, nodes []fleet.Certname) (steps []CatalogStep, err error) {
	if err := rbac.AllowSome(fleet.ActorFrom(ctx), fleet.CatalogRead); err != nil {
		return nil, nil //nolint:nilerr // it is no error: nothing is shown
	}
	nodes, err = seen(ctx, d.orders.gate, fleet.CatalogRead, nodes, func(node fleet.Certname) fleet.Object {
		return fleet.Object{Node: node}
	})
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		step, err := d.stepOf(ctx, node)
		switch {
		case err == nil && step.From != "":
			steps = append(steps, step)
		case err != nil && fault.Of(err) != fault.NotFound:
			return nil, err
		}
		if len(steps) == maxForeseen {
			break
		}
	}
	return steps, nil
}

// stepOf is the next step of a node; From is empty if it is not known what the node applied.
func (d submission) stepOf(ctx context.Context, node fleet.Certname) (step CatalogStep, err error) {
	standing, _, err := d.orders.deliveries.Standing(ctx, node)
	if err != nil {
		return step, err
	}
	may, err := d.orders.deliveries.PointerOf(ctx, standing)
	if err != nil {
		return step, err
	}
	_, applied, err := d.orders.deliveries.State(ctx, standing)
	return CatalogStep{Node: node, From: applied.Catalog, To: may.Catalog}, err
}
