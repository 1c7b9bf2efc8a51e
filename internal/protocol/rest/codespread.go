package rest

import (
	"context"
	"maps"
	"slices"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// holders knows of which version of the code the catalogs are that nodes may have.
type holders struct {
	code       Code
	deliveries Deliveries
}

// of is the current version of an environment, and the version of each node that may have a catalog of the environment. A catalog that
// was compiled of an earlier version and stands for the current one is of that, unless a release gave it.
func (h *holders) of(ctx context.Context, env fleet.Environment) (code.Version, map[fleet.Certname]fleet.Digest, error) {
	current, status, err := h.code.Status(ctx, env)
	if err != nil {
		return current, nil, err
	}
	all, err := h.deliveries.HeldIn(ctx, env)
	stands := make(map[fleet.Certname]bool, len(status.Of))
	for _, node := range status.Of {
		stands[node] = true
	}
	held := make(map[fleet.Certname]fleet.Digest, len(all))
	for _, one := range all {
		held[one.Node] = one.Version
		if !one.Released && stands[one.Node] {
			held[one.Node] = current.ID
		}
	}
	return current, held, err
}

// holding is which version nodes have to have to be wanted.
type holding struct {
	held    map[fleet.Certname]fleet.Digest
	version fleet.Digest // empty: none
}

// noVersion stands for the version of nodes that may have no catalog.
const noVersion = "none"

// holding finds what a request means; nil: any version.
func (h *holders) holding(ctx context.Context, env fleet.Environment, version string) (*holding, error) {
	if version == "" {
		return nil, nil //nolint:nilnil // nothing is asked for
	}
	if env == "" {
		return nil, fault.New(fault.Invalid, "field version: a version is one of an environment: name that, too")
	}
	_, held, err := h.of(ctx, env)
	if err != nil || version == noVersion {
		return &holding{held: held}, err
	}
	known, err := h.code.Versions(ctx, env, maxVersions)
	if err != nil {
		return nil, err
	}
	for _, id := range held { // also what was released from a preview, and never deployed
		known = append(known, code.Version{ID: id})
	}
	id, err := code.Named(env, known, version)
	return &holding{held: held, version: id}, err
}

// wants says whether a node has the version. Nodes that are gone have none and are not meant.
func (w *holding) wants(node inventory.Node) bool {
	if w == nil {
		return true
	}
	active := node.DeactivatedAt.IsZero() && node.ExpiredAt.IsZero()
	return active && w.held[node.Certname] == w.version
}

// maxSpread is how many versions are told apart.
const maxSpread = 8

// spreadVersions counts the nodes of each group by the version that they have.
func (h *versions) spreadVersions(ctx context.Context, request api.EnvironmentRequest) (api.CodeSpread, error) {
	env, err := fleet.ParseEnvironment(request.Environment)
	if err != nil {
		return api.CodeSpread{}, err
	}
	current, held, err := h.selector.holders.of(ctx, env)
	if err != nil {
		return api.CodeSpread{}, err
	}
	deployed, err := h.code.Versions(ctx, env, maxVersions)
	if err != nil {
		return api.CodeSpread{}, err
	}
	answer := api.CodeSpread{Environment: string(env), Versions: spreadOver(deployed, current.ID, held), Groups: []api.SpreadGroup{}}
	groups, _, err := h.selector.groups.Groups(ctx)
	if err != nil {
		return answer, err
	}
	ordered, depth := classify.Ordered(groups), map[classify.ID]int{}
	rows := make([]api.SpreadGroup, len(ordered))
	for i, g := range ordered {
		if !g.IsRoot() {
			depth[g.ID] = depth[g.Parent] + 1
		}
		rows[i] = api.SpreadGroup{Group: g.Name, Depth: depth[g.ID], Counts: make([]int, len(answer.Versions))}
	}
	err = h.selector.activeIn(ctx, env, func(names []fleet.Certname) error {
		for i, g := range ordered {
			members, err := h.selector.membersOf(ctx, g, names)
			if err != nil {
				return err
			}
			for _, name := range members {
				count(&rows[i], answer.Versions, held[name])
			}
		}
		return nil
	})
	for _, row := range rows {
		if row.Nodes > 0 {
			answer.Groups = append(answer.Groups, row)
		}
	}
	return answer, err
}

// count counts a node with a version.
func count(row *api.SpreadGroup, versions []api.SpreadVersion, version fleet.Digest) {
	row.Nodes++
	if version == "" {
		row.None++
		return
	}
	for i, v := range versions {
		if v.ID == string(version) {
			row.Counts[i]++
			return
		}
	}
	row.Other++
}

// spreadOver is the versions that are told apart: those that some node has, and the current one.
func spreadOver(deployed []code.Version, current fleet.Digest, held map[fleet.Certname]fleet.Digest) []api.SpreadVersion {
	has := map[fleet.Digest]bool{current: true}
	for _, version := range held {
		has[version] = true
	}
	listed := []api.SpreadVersion{}
	for _, v := range deployed { // newest first; one may have been deployed more than once
		if has[v.ID] {
			delete(has, v.ID)
			listed = append(listed, api.SpreadVersion{ID: string(v.ID), Commit: v.Commit, DeployedAt: timeOf(v.DeployedAt), Current: v.ID == current})
		}
	}
	var previewed []api.SpreadVersion
	for _, id := range slices.Sorted(maps.Keys(has)) {
		previewed = append(previewed, api.SpreadVersion{ID: string(id)})
	}
	previewed = previewed[:min(len(previewed), maxSpread/2)]
	return slices.Concat(previewed, listed[:min(len(listed), maxSpread-len(previewed))])
}

// activeIn tells of all active nodes of an environment, some at a time.
func (h *selector) activeIn(ctx context.Context, env fleet.Environment, tell func([]fleet.Certname) error) error {
	for after := ""; ; {
		nodes, err := h.nodes.Nodes(ctx, inventory.Page{After: after, Limit: inventory.MaxNamed})
		if err != nil || len(nodes) == 0 {
			return err
		}
		after = string(nodes[len(nodes)-1].Certname)
		var names []fleet.Certname
		for _, n := range nodes {
			if n.Environment == env && n.DeactivatedAt.IsZero() && n.ExpiredAt.IsZero() {
				names = append(names, n.Certname)
			}
		}
		if err := tell(names); err != nil {
			return err
		}
	}
}

// membersOf is those of the nodes that are in a group. Everybody is in the root.
func (h *selector) membersOf(ctx context.Context, g classify.Group, names []fleet.Certname) (members []fleet.Certname, err error) {
	if g.IsRoot() || len(names) == 0 {
		return names, nil
	}
	in, err := h.classifier.Members(ctx, g.ID, names)
	for _, name := range names {
		if _, is := in[name]; is {
			members = append(members, name)
		}
	}
	return members, err
}
