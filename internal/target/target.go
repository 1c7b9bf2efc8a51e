package target

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pql"
)

// StoredGroups is what the records know of groups.
type StoredGroups interface {
	Groups(ctx context.Context) (groups []classify.Group, revision int64, err error)
}

// Standings is what the records know of the nodes of environments.
type Standings interface {
	// Standings is what is known of the active nodes of an environment.
	Standings(ctx context.Context, env fleet.Environment) ([]compile.Standing, error)
}

// Inventory answers queries; an inventory.Asker does.
type Inventory interface {
	Ask(ctx context.Context, q inventory.Question, row func(json.RawMessage) error) error
}

// Applications knows which nodes belong to an application; an appgraph.Service is one.
type Applications interface {
	Nodes(ctx context.Context, app string) ([]fleet.Certname, error)
}

// Certificates knows whose certificate was revoked.
type Certificates interface {
	Revoked(ctx context.Context) ([]pki.Certificate, error)
	// Certificate is the newest one of a name; NotFound.
	Certificate(ctx context.Context, name fleet.Certname) (pki.Certificate, error)
}

// Resolver says who is meant. It is job.Resolver.
type Resolver struct {
	Stored       StoredGroups
	Standings    Standings
	Groups       Groups
	Inventory    Inventory
	Applications Applications
	Certificates Certificates
	Connected    func() []fleet.Certname // the nodes whose agents are connected
	Narrower     Narrower
}

// Resolve implements job.Resolver.
func (r Resolver) Resolve(ctx context.Context, wanted job.Targets) ([]fleet.Certname, error) {
	found := map[fleet.Certname]bool{}
	for _, node := range wanted.Nodes {
		found[node] = true
	}
	if wanted.Group != "" {
		if err := r.ofGroup(ctx, wanted.Group, found); err != nil {
			return nil, err
		}
	}
	if wanted.App != "" {
		nodes, err := r.Applications.Nodes(ctx, wanted.App)
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
		if err := r.ofQuery(ctx, query, found); err != nil {
			return nil, err
		}
	}
	if wanted.All {
		if err := r.all(ctx, found); err != nil {
			return nil, err
		}
	}
	for _, node := range wanted.Exclude {
		delete(found, node)
	}
	return r.narrow(ctx, wanted, slices.Sorted(maps.Keys(found)))
}

// narrow leaves those of the nodes for which the filter holds, and of them no more than the limit.
func (r Resolver) narrow(ctx context.Context, wanted job.Targets, nodes []fleet.Certname) ([]fleet.Certname, error) {
	if wanted.Filter != nil {
		judged, err := r.Narrower.Judge(ctx, *wanted.Filter, nodes)
		if err != nil {
			return nil, err
		}
		nodes = nil
		for _, j := range judged {
			if j.Holds == filter.Yes {
				nodes = append(nodes, j.Node)
			}
		}
	}
	return Limit(nodes, wanted.Limit, wanted.Seed)
}

// Judged is the filter's word on each node that is meant before it narrows; without a filter, each holds. Of those that hold, the limit leaves some: it is one
// more part of the others, and does not hold.
func (r Resolver) Judged(ctx context.Context, wanted job.Targets) ([]Judged, error) {
	f, limit := filter.Filter{}, wanted.Limit
	if wanted.Filter != nil {
		f = *wanted.Filter
	}
	wanted.Filter, wanted.Limit = nil, ""
	nodes, err := r.Resolve(ctx, wanted)
	if err != nil {
		return nil, err
	}
	judged, err := r.Narrower.Judge(ctx, f, nodes)
	if err != nil {
		return nil, err
	}
	return judged, limitJudged(judged, limit, wanted.Seed)
}

// limitJudged says no of the nodes that hold and that a limit does not take.
func limitJudged(judged []Judged, limit string, seed *int64) error {
	var fit []fleet.Certname
	for _, j := range judged {
		if j.Holds == filter.Yes {
			fit = append(fit, j.Node)
		}
	}
	taken, err := Limit(fit, limit, seed)
	if err != nil || len(taken) == len(fit) {
		return err
	}
	why := fmt.Sprintf("other nodes are taken, %d of %d", len(taken), len(fit))
	for i := range judged {
		j := &judged[i]
		if _, is := slices.BinarySearch(taken, j.Node); j.Holds == filter.Yes && !is {
			j.Holds = filter.No
			j.Parts = append(j.Parts, filter.Part{Flag: "limit", Text: "limit " + limit, Holds: filter.No, Why: why})
		}
	}
	return nil
}

// Members is the nodes of a group, by its name or id.
func (r Resolver) Members(ctx context.Context, group string) ([]fleet.Certname, error) {
	return r.Resolve(ctx, job.Targets{Group: group})
}

// Named is who is meant by targets as they are ordered.
func (r Resolver) Named(ctx context.Context, t api.JobTargets) ([]fleet.Certname, error) {
	return r.Resolve(ctx, job.Targets{
		Nodes: certnames(t.Nodes), Group: t.Group, Query: t.Query, App: t.App, All: t.All, Exclude: certnames(t.Exclude),
		Filter: (*filter.Filter)(t.Filter), Limit: t.Limit, Seed: t.Seed,
	})
}

// NamedOrOf is Named; where nothing is named, all active nodes of an environment are meant.
func (r Resolver) NamedOrOf(ctx context.Context, env fleet.Environment, t api.JobTargets) ([]fleet.Certname, error) {
	if t.Any() {
		return r.Named(ctx, t)
	}
	nodes, err := r.Of(ctx, env)
	return slices.DeleteFunc(nodes, func(node fleet.Certname) bool { return slices.Contains(t.Exclude, string(node)) }), err
}

// Of is the active nodes of an environment, sorted.
func (r Resolver) Of(ctx context.Context, env fleet.Environment) ([]fleet.Certname, error) {
	standing, err := r.Standings.Standings(ctx, env)
	if err != nil {
		return nil, err
	}
	nodes := make([]fleet.Certname, len(standing))
	for i, s := range standing {
		nodes[i] = s.Node
	}
	slices.Sort(nodes)
	return nodes, nil
}

func certnames(names []string) []fleet.Certname {
	list := make([]fleet.Certname, len(names))
	for i, name := range names {
		list[i] = fleet.Certname(name)
	}
	return list
}

func (r Resolver) ofGroup(ctx context.Context, name string, found map[fleet.Certname]bool) error {
	groups, _, err := r.Stored.Groups(ctx)
	if err != nil {
		return err
	}
	group, err := classify.Find(groups, name)
	if err != nil {
		return err
	}
	nodes, err := r.Groups.GroupNodes(ctx, group.ID)
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
	return &pql.Query{Entity: "nodes", Columns: certname, Where: where}, err
}

// certname is what is asked of nodes.
var certname = []pql.Column{{Field: pql.Field{Name: "certname"}}}

// isEntity says whether a text begins as a query does: with what is asked for.
func isEntity(text string) bool {
	word := strings.TrimRight(text[:strings.IndexAny(text, "[{")], " \t\n")
	return pql.LookUp(word) != nil
}

// ofQuery finds the nodes that rows name by their certname.
func (r Resolver) ofQuery(ctx context.Context, query *pql.Query, found map[fleet.Certname]bool) error {
	checked, err := pql.Check(query)
	if err != nil {
		return err
	}
	return r.Inventory.Ask(ctx, inventory.Question{Query: checked, MaxRows: inventory.DefaultMaxRows}, func(row json.RawMessage) error {
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
func (r Resolver) all(ctx context.Context, found map[fleet.Certname]bool) error {
	for _, node := range r.Connected() {
		found[node] = true
	}
	if err := r.ofQuery(ctx, &pql.Query{Entity: "nodes", Columns: certname}, found); err != nil {
		return err
	}
	gone, err := r.revoked(ctx, found)
	for _, node := range gone {
		delete(found, node)
	}
	return err
}

// revoked is the nodes that had a certificate and have no good one.
func (r Resolver) revoked(ctx context.Context, among map[fleet.Certname]bool) ([]fleet.Certname, error) {
	revoked, err := r.Certificates.Revoked(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[fleet.Certname]bool{}
	var names []fleet.Certname
	for _, c := range revoked {
		if !among[c.Certname] || seen[c.Certname] {
			continue
		}
		seen[c.Certname] = true
		now, err := r.Certificates.Certificate(ctx, c.Certname)
		switch {
		case err != nil && fault.Of(err) != fault.NotFound:
			return nil, err
		case err != nil || !now.RevokedAt.IsZero():
			names = append(names, c.Certname)
		}
	}
	return names, nil
}
