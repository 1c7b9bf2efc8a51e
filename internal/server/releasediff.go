package server

import (
	"context"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/release"
)

// releaseDifferences is rest.ReleaseDifferences.
type releaseDifferences struct{ previews *preview.Service }

// maxDifferences is how many changes are shown.
const maxDifferences = 1000

// Difference implements rest.ReleaseDifferences.
func (d releaseDifferences) Difference(ctx context.Context, targets []release.Target) (api.FleetDifference, api.Vanishing, error) {
	var none api.FleetDifference
	compared, err := d.previews.Comparing()
	if err != nil {
		return none, api.Vanishing{}, err
	}
	names := map[uint32]fleet.Certname{}
	for _, t := range targets {
		if t.State != release.Waiting {
			continue
		}
		number := uint32(t.Number) //nolint:gosec // bounded by the fleet
		names[number] = t.Node
		if t.Base == "" || t.Base == t.Catalog.Digest {
			compared.AddSame(number, t.Node)
			continue
		}
		if _, err := compared.Add(ctx, number, t.Node, preview.Pair{Base: t.Base, Fresh: t.Catalog.Digest}); err != nil {
			return none, api.Vanishing{}, err
		}
	}
	fleetWide, err := compared.Fleet(maxDifferences, func(number uint32) string { return string(names[number]) })
	if err != nil {
		return none, api.Vanishing{}, err
	}
	var gone api.Vanishing
	on := map[uint32]bool{}
	for _, g := range fleetWide.Groups {
		if g.Change != "removed" || !onDisk(g.Type) || g.Exported {
			continue
		}
		gone.Distinct++
		gone.Resources += g.Nodes
		for _, number := range compared.Members(g.Key) {
			on[number] = true
		}
	}
	gone.Nodes = len(on)
	return fleetWide, gone, nil
}

// onDisk says whether a resource of a type is something on a node, and not only a part of code.
func onDisk(kind string) bool {
	return kind != "Class" && kind != "Stage" && kind != "Notify" && kind != "Exec" && !strings.Contains(kind, "::")
}
