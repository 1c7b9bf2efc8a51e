package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pql"
)

var factCommand = asking{noun{
	use: "fact", short: "See what facts there are, and which values they have",
	verbs: []declared{factList, factShow, factValues},
}}

type factListInput struct{ paths bool }

var factList = verb[factListInput]{
	use: "list", short: "List the names of all facts, or the paths of all values",
	prints:  aList,
	example: "  tutti fact list\n  tutti fact list --paths | grep '^os'",
	flags: func(f flagSet, in *factListInput) {
		f.BoolVar(&in.paths, "paths", false, "list the path of every value, as queries and rules name it, with its type")
	},
	run: func(ctx context.Context, c *call, in *factListInput) error {
		if !in.paths {
			return askRows(ctx, c.app, &pql.Query{Entity: "fact_names", OrderBy: []pql.Order{{Field: column("name")}}}, []string{"name"}, "No facts yet.")
		}
		return listPaths(ctx, c.app)
	},
}

// listPaths shows paths as people write them; -o json has the lists of steps.
func listPaths(ctx context.Context, a *app) error {
	q := &pql.Query{Entity: "fact_paths", Columns: []pql.Column{column("path"), column("type")}, OrderBy: []pql.Order{{Field: column("path")}}}
	t := rowTable([]string{"path", "type"}, "No facts yet.", false)
	plain := t.Row
	t.Row = func(row json.RawMessage) []any {
		cells := plain(row)
		cells[0] = dotted(fmt.Sprint(cells[0]))
		return cells
	}
	t.Name = func(row json.RawMessage) string { return fmt.Sprint(t.Row(row)[0]) }
	return printRows(ctx, a, api.QueryRequest{Query: q.AST()}, func([]string) print.Table[json.RawMessage] { return t })
}

// dotted is a JSON list of steps as a path.
func dotted(list string) string {
	var steps []any
	decoder := json.NewDecoder(strings.NewReader(list))
	decoder.UseNumber()
	if decoder.Decode(&steps) != nil {
		return list
	}
	for i, step := range steps {
		if number, ok := step.(json.Number); ok {
			steps[i], _ = number.Int64()
		}
	}
	return facts.PathText(steps...)
}

type factValuesInput struct{ where string }

var factValues = verb[factValuesInput]{
	use: "values PATH", short: "Say which values a fact has, and how many nodes have each",
	prints:  aList,
	example: "  tutti fact values kernel\n  tutti fact values os.release.major --where 'facts.os.family = \"Debian\"'\n  tutti fact values 'processors.models[0]' -o csv",
	flags:   func(f flagSet, in *factValuesInput) { addWhereFlag(f, &in.where) },
	run: func(ctx context.Context, c *call, in *factValuesInput) error {
		steps := facts.PathSteps(c.args[0])
		if len(steps) == 0 || facts.PathText(steps...) == "" {
			return usageError{fault.New(fault.Invalid, "a path like os.family is expected, not %.80q", c.args[0])}
		}
		q := &pql.Query{
			Entity: "fact_contents", Columns: []pql.Column{column("value"), {Function: "count"}}, GroupBy: []pql.Column{column("value")},
			Where:   pql.Compare{Op: "=", Field: pql.Field{Name: "path"}, Value: pathValue(steps)},
			OrderBy: []pql.Order{{Field: column("count"), Descending: true}, {Field: column("value")}},
		}
		if err := onNodes(q, in.where); err != nil {
			return err
		}
		return askRows(ctx, c.app, q, []string{"value", "nodes"}, "No node has a fact "+c.args[0]+"; `tutti fact list --paths` shows what there is.")
	},
}

func column(name string) pql.Column { return pql.Column{Field: pql.Field{Name: name}} }

func pathValue(steps []any) pql.Value {
	list := pql.Value{Kind: pql.List}
	for _, step := range steps {
		if key, ok := step.(string); ok {
			list.List = append(list.List, pql.Text(key))
			continue
		}
		list.List = append(list.List, pql.Value{Kind: pql.Integer, Text: fmt.Sprint(step)})
	}
	return list
}

// addWhereFlag adds --where, which narrows the nodes that are asked about.
func addWhereFlag(f flagSet, where *string) {
	f.StringVar(where, "where", "", "only nodes that this PQL condition holds for, as for tutti node list")
	f.completes("where", completeCondition)
}

// onNodes narrows q to the nodes that a condition holds for.
func onNodes(q *pql.Query, condition string) error {
	where, err := readCondition(condition)
	if err != nil || where == nil {
		return err
	}
	terms := []pql.Expr{pql.Subquery{Query: &pql.Query{Entity: "nodes", Where: where}}}
	if q.Where != nil {
		terms = slices.Insert(terms, 0, q.Where)
	}
	q.Where = pql.And{Terms: terms}
	return nil
}

// askRows asks a query that is made here and prints its rows as a list under headings.
func askRows(ctx context.Context, a *app, q *pql.Query, headings []string, empty string) error {
	return printRows(ctx, a, api.QueryRequest{Query: q.AST()}, func(columns []string) print.Table[json.RawMessage] {
		t := rowTable(columns, empty, false)
		t.Columns = headings
		return t
	})
}

var factShow = verb[api.NameRequest]{
	use: "show NODE [PATH]", short: factsOf, args: nodeAndPath,
	example: "  tutti fact show web-1.example.test\n  tutti fact show web-1.example.test os.family\n" +
		"  tutti fact show web-1.example.test 'processors.models[0]'",
	into: byName,
	run:  showFacts,
}

// nodeFacts is fact show as it was called before.
var nodeFacts = verb[api.NameRequest]{
	use: "facts NODE [PATH]", short: factsOf, args: nodeAndPath,
	example: "  tutti node facts web-1.example.test\n  tutti node facts web-1.example.test os.family",
	into:    byName,
	run:     showFacts,
}

const factsOf = "Show a node's newest facts, or those below a dotted path"

func nodeAndPath(cmd *cobra.Command, args []string) error {
	if len(args) == 2 {
		return nil
	}
	return exactly(1)(cmd, args)
}

// showFacts shows a node's facts, or those below the path behind its name.
func showFacts(ctx context.Context, c *call, in *api.NameRequest) error {
	facts, err := ask(ctx, c.app, api.NodeFacts, *in)
	if err != nil {
		return err
	}
	var values any
	reader := json.NewDecoder(bytes.NewReader(facts.Values))
	reader.UseNumber() // 274877906944 is not 2.74877906944e+11
	if err := reader.Decode(&values); err != nil {
		return err
	}
	prefix := ""
	if len(c.args) == 2 {
		prefix = c.args[1]
		if values, err = below(values, prefix); err != nil {
			return err
		}
	}
	return print.One(c.printer(), values, func(to print.Printer, values any) error {
		return to.Rows([]string{"fact", "value"}, flatten(prefix, values, nil))
	})
}

// below walks down a path.
func below(values any, path string) (any, error) {
	for _, step := range facts.PathSteps(path) {
		var next any
		found := false
		switch at := values.(type) {
		case map[string]any:
			if key, ok := step.(string); ok {
				next, found = at[key]
			}
		case []any:
			if i, ok := step.(int64); ok && i >= 0 && i < int64(len(at)) {
				next, found = at[i], true
			}
		}
		if !found {
			return nil, fault.New(fault.NotFound, "the node has no fact %s", path)
		}
		values = next
	}
	return values, nil
}

// flatten lists every leaf of values under its dotted path, sorted.
func flatten(path string, values any, rows [][]string) [][]string {
	switch value := values.(type) {
	case map[string]any:
		keys := make([]string, 0, len(value))
		for key := range value {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			rows = flatten(strings.TrimPrefix(path+"."+key, "."), value[key], rows)
		}
	case []any:
		for i, item := range value {
			rows = flatten(fmt.Sprintf("%s.%d", path, i), item, rows)
		}
	default:
		rows = append(rows, []string{path, fmt.Sprint(value)})
	}
	return rows
}
