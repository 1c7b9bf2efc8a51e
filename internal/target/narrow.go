package target

import (
	"cmp"
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/call"
	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/pql"
)

// Modules says which modules nodes have.
type Modules interface {
	// Installed is the modules of each of the nodes that told it, with their versions.
	Installed(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]map[string]string, error)
}

// Asker asks an action of nodes; *call.Caller does.
type Asker interface {
	Ask(ctx context.Context, q call.Question, tell func([]action.Answer))
}

// Narrower judges nodes by filters: what the inventory knows first; what only nodes know is asked of those that may still fit.
type Narrower struct {
	Inventory Inventory
	Modules   Modules
	Asker     Asker
	Gate      Gate
}

// Judged is what a filter says of a node.
type Judged struct {
	Node fleet.Certname
	filter.Judgement
}

// The module and action that answer the data functions of filters.
const (
	dataModule = "rpcutil"
	dataAction = "get_data"
)

// dataTime is how long a node has to answer a data function.
const dataTime = 15 * time.Second

// Judge judges nodes, each once, in their order. Whoever may not ask a node for data gets no answer from it.
func (n Narrower) Judge(ctx context.Context, f filter.Filter, nodes []fleet.Certname) ([]Judged, error) {
	condition, err := filter.Parse(f)
	if err != nil {
		return nil, err
	}
	needs := condition.Needs()
	judged := make([]Judged, 0, len(nodes))
	var open []filter.Node
	for part := range slices.Chunk(nodes, inScope) {
		known, err := n.known(ctx, needs, part)
		if err != nil {
			return nil, err
		}
		for _, node := range known {
			verdict := condition.Judge(node)
			if verdict.Holds == filter.Unknown {
				open = append(open, node)
			}
			judged = append(judged, Judged{node.Name, verdict})
		}
	}
	if err := n.askData(ctx, needs.Data, open); err != nil {
		return nil, err
	}
	asked := map[fleet.Certname]filter.Node{}
	for _, node := range open {
		asked[node.Name] = node
	}
	for i, j := range judged {
		if node, was := asked[j.Node]; was {
			judged[i].Judgement = condition.Judge(node)
		}
	}
	return judged, nil
}

// known is what the inventory knows of nodes, as far as it is needed.
func (n Narrower) known(ctx context.Context, needs filter.Needs, nodes []fleet.Certname) ([]filter.Node, error) {
	known := make([]filter.Node, len(nodes))
	at := map[fleet.Certname]*filter.Node{}
	for i, name := range nodes {
		known[i] = filter.Node{Name: name, Facts: map[string]any{}}
		at[name] = &known[i]
	}
	if len(needs.Facts) > 0 {
		if err := n.facts(ctx, needs.Facts, nodes, at); err != nil {
			return nil, err
		}
	}
	if needs.Classes {
		if err := n.classes(ctx, nodes, at); err != nil {
			return nil, err
		}
	}
	if needs.Modules {
		installed, err := n.Modules.Installed(ctx, nodes)
		if err != nil {
			return nil, err
		}
		for name, modules := range installed {
			if at[name] != nil {
				at[name].Modules = modules
			}
		}
	}
	return known, nil
}

// facts reads the values at paths: whole facts by their names, then what is inside.
func (n Narrower) facts(ctx context.Context, paths []string, nodes []fleet.Certname, at map[fleet.Certname]*filter.Node) error {
	names := pql.In{Fields: []pql.Field{{Name: "name"}}}
	for _, path := range paths {
		name, _, _ := strings.Cut(path, ".")
		name, _, _ = strings.Cut(name, "[")
		names.Values = append(names.Values, pql.Text(name), pql.Text(path)) // a fact of old agents may have dots in its name
	}
	whole := map[fleet.Certname]map[string]any{}
	err := n.rows(ctx, "facts", []string{"certname", "name", "value"}, nodes, names, func(row json.RawMessage) error {
		var fact struct {
			Certname fleet.Certname
			Name     string
			Value    any
		}
		if err := json.Unmarshal(row, &fact); err != nil {
			return err
		}
		if whole[fact.Certname] == nil {
			whole[fact.Certname] = map[string]any{}
		}
		whole[fact.Certname][fact.Name] = fact.Value
		return nil
	})
	for name, facts := range whole {
		for _, path := range paths {
			if value, there := filter.At(facts, path); there && at[name] != nil {
				at[name].Facts[path] = value
			}
		}
	}
	return err
}

// classes reads the classes of the nodes' last catalogs.
func (n Narrower) classes(ctx context.Context, nodes []fleet.Certname, at map[fleet.Certname]*filter.Node) error {
	isClass := pql.In{Fields: []pql.Field{{Name: "type"}}, Values: []pql.Value{pql.Text("Class")}}
	return n.rows(ctx, "resources", []string{"certname", "title"}, nodes, isClass, func(row json.RawMessage) error {
		var class struct {
			Certname fleet.Certname
			Title    string
		}
		err := json.Unmarshal(row, &class)
		if node := at[class.Certname]; node != nil {
			node.Classes = append(node.Classes, class.Title)
		}
		return err
	})
}

// rows asks for columns of an entity, of some nodes.
func (n Narrower) rows(ctx context.Context, entity string, columns []string, nodes []fleet.Certname, where pql.Expr, each func(json.RawMessage) error) error {
	among := pql.In{Fields: []pql.Field{{Name: "certname"}}}
	for _, node := range nodes {
		among.Values = append(among.Values, pql.Text(string(node)))
	}
	query := pql.Query{Entity: entity, Where: pql.And{Terms: []pql.Expr{among, where}}}
	for _, column := range columns {
		query.Columns = append(query.Columns, pql.Column{Field: pql.Field{Name: column}})
	}
	checked, err := pql.Check(&query)
	if err != nil {
		return err
	}
	return n.Inventory.Ask(ctx, inventory.Question{Query: checked, MaxRows: inventory.DefaultMaxRows}, each)
}

// askData asks nodes the questions that only they can answer.
func (n Narrower) askData(ctx context.Context, queries []filter.Query, nodes []filter.Node) error {
	if len(nodes) == 0 {
		return nil
	}
	names, at := make([]fleet.Certname, len(nodes)), map[fleet.Certname]*filter.Node{}
	for i := range nodes {
		nodes[i].Data = map[filter.Query]filter.Answer{}
		names[i], at[nodes[i].Name] = nodes[i].Name, &nodes[i]
	}
	spec := job.Spec{Kind: job.Action, Action: &job.ActionSpec{Module: dataModule, Action: dataAction}}
	refused, err := n.Gate.RefusedTo(ctx, fleet.ActorFrom(ctx), fleet.ActionAsk, spec, names)
	if err != nil {
		return err
	}
	asked := slices.DeleteFunc(slices.Clone(names), func(node fleet.Certname) bool { return refused[node] != "" })
	for _, query := range queries {
		for node, why := range refused {
			at[node].Data[query] = filter.Answer{Problem: why}
		}
		input, err := json.Marshal(query)
		if err != nil {
			return err
		}
		question := call.Question{Module: dataModule, Action: dataAction, Input: input, Caller: call.By(fleet.ActorFrom(ctx)), Nodes: asked, Timeout: dataTime}
		n.Asker.Ask(ctx, question, func(answers []action.Answer) {
			for _, a := range answers {
				at[a.Node].Data[query] = dataOf(a)
			}
		})
	}
	return ctx.Err()
}

func dataOf(a action.Answer) filter.Answer {
	if a.Code != action.Done {
		return filter.Answer{Problem: cmp.Or(a.Message, a.Code.String())}
	}
	var fields map[string]any
	if err := json.Unmarshal(a.Data, &fields); err != nil {
		return filter.Answer{Problem: "its answer cannot be read"}
	}
	return filter.Answer{Fields: fields}
}

// Limit takes some of the nodes: N or P%, never less than one. A seed makes a draw that is the same each time; without one the first are taken.
func Limit[Node ~string](nodes []Node, limit string, seed *int64) ([]Node, error) {
	if limit == "" || len(nodes) == 0 {
		return nodes, nil
	}
	number, percent := strings.CutSuffix(limit, "%")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || percent && n > 100 {
		return nil, fault.New(fault.Invalid, "field limit: it is a number of nodes such as 10, or a share of 1%% to 100%%")
	}
	if percent {
		n = max(1, (len(nodes)*n+50)/100)
	}
	if n >= len(nodes) {
		return nodes, nil
	}
	if seed == nil {
		return nodes[:n], nil
	}
	drawn := slices.Clone(nodes)
	r := rand.New(rand.NewPCG(uint64(*seed), 0)) //nolint:gosec // the same draw is wanted again
	r.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	drawn = drawn[:n]
	slices.Sort(drawn)
	return drawn, nil
}
