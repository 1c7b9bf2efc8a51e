package httpapi

import (
	"context"
	"slices"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
)

// expect completes the plan of a Puppet run with what is known of each node's next one.
func (d door) expect(ctx context.Context, kind job.Kind, plan *api.JobPlan) error {
	if kind != job.Puppet {
		return nil
	}
	for part := range slices.Chunk(plan.Targets, inventory.MaxNamed) {
		names := make([]fleet.Certname, len(part))
		for i, t := range part {
			names[i] = fleet.Certname(t.Node)
		}
		nodes, err := d.Nodes.NodesNamed(ctx, names)
		if err != nil {
			return err
		}
		known := make(map[string]inventory.Node, len(nodes))
		for _, n := range nodes {
			known[string(n.Certname)] = n
		}
		for i := range part {
			part[i].Expected = expected(known[part[i].Node])
		}
	}
	return nil
}

// expected is what the next run of a node will find, as far as its newest catalog and report tell.
func expected(n inventory.Node) string {
	switch {
	case n.ReportAt.IsZero():
		return api.ExpectUnknown
	case n.CatalogAt.After(n.ReportAt):
		return api.ExpectCatalog
	case n.LatestStatus == "failed":
		return api.ExpectFailed
	case n.LatestNoop && n.LatestStatus == "changed":
		return api.ExpectNoop
	}
	return api.ExpectNothing
}
