package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/pql"
)

// targets is job.Resolver: it asks the groups, the inventory, and who is connected.
type targets struct{ *parts }

// Resolve implements job.Resolver.
func (t targets) Resolve(ctx context.Context, wanted job.Targets) ([]fleet.Certname, error) {
	found := map[fleet.Certname]bool{}
	for _, node := range wanted.Nodes {
		found[node] = true
	}
	if wanted.Group != "" {
		if err := t.ofGroup(ctx, wanted.Group, found); err != nil {
			return nil, err
		}
	}
	if wanted.App != "" {
		nodes, err := appgraph.Service{Store: t.store.Catalogs}.Nodes(ctx, wanted.App)
		if err != nil {
			return nil, err
		}
		for _, node := range nodes {
			found[node] = true
		}
	}
	if wanted.Query != "" {
		query, err := targetQuery(wanted.Query)
		if err != nil {
			return nil, err
		}
		if err := t.ofQuery(ctx, query, found); err != nil {
			return nil, err
		}
	}
	if wanted.All {
		if err := t.all(ctx, found); err != nil {
			return nil, err
		}
	}
	for _, node := range wanted.Exclude {
		delete(found, node)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func (t targets) ofGroup(ctx context.Context, name string, found map[fleet.Certname]bool) error {
	groups, _, err := t.store.Groups.Groups(ctx)
	if err != nil {
		return err
	}
	group, err := classify.Find(groups, name)
	if err != nil {
		return err
	}
	nodes, err := fleetDoor(t).GroupNodes(ctx, group.ID)
	for _, node := range nodes {
		found[node] = true
	}
	return err
}

// targetQuery reads a query, or a condition on nodes: only a query has braces or begins with a bracket.
func targetQuery(text string) (*pql.Query, error) {
	trimmed := strings.TrimSpace(text)
	if _, _, braces := strings.Cut(trimmed, "{"); braces && isEntity(trimmed) || strings.HasPrefix(trimmed, "[") {
		return pql.Read(text)
	}
	where, err := pql.NodeCondition(text)
	return &pql.Query{Entity: "nodes", Columns: []pql.Column{column("certname")}, Where: where}, err
}

// isEntity says whether a text begins as a query does: with what is asked for.
func isEntity(text string) bool {
	word := strings.TrimRight(text[:strings.IndexAny(text, "[{")], " \t\n")
	return pql.LookUp(word) != nil
}

// ofQuery finds the nodes that rows name by their certname.
func (t targets) ofQuery(ctx context.Context, query *pql.Query, found map[fleet.Certname]bool) error {
	checked, err := pql.Check(query)
	if err != nil {
		return err
	}
	return t.store.Queries.Ask(ctx, inventory.Question{Query: checked, MaxRows: inventory.DefaultMaxRows}, func(row json.RawMessage) error {
		var node struct {
			Certname *string `json:"certname"`
		}
		if json.Unmarshal(row, &node) != nil || node.Certname == nil {
			return fault.New(fault.Invalid, "field targets: the rows of the query have no certname; ask for it, as in nodes[certname] { ... }")
		}
		name, err := fleet.ParseCertname(*node.Certname)
		if err != nil {
			return err
		}
		if found[name] = true; len(found) > job.MaxTargets {
			return fault.New(fault.Invalid, "field targets: they are more than %d nodes", job.MaxTargets)
		}
		return nil
	})
}

// all is every node that the inventory knows and that is active, and whose agent is connected. Those whose certificate was revoked are no
// nodes of this fleet any more.
func (t targets) all(ctx context.Context, found map[fleet.Certname]bool) error {
	for _, who := range t.broker.Presences() {
		if who.URI == agentOf(who.Certname) && who.Party == broker.Node {
			found[who.Certname] = true
		}
	}
	if err := t.ofQuery(ctx, &pql.Query{Entity: "nodes", Columns: []pql.Column{column("certname")}}, found); err != nil {
		return err
	}
	gone, err := t.revokedNames(ctx, found)
	for _, node := range gone {
		delete(found, node)
	}
	return err
}
