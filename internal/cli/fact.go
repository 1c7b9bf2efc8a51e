package cli

import (
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

func (a *app) factCommand() *cobra.Command {
	return a.withAccess(noun("fact", "See what facts there are, and which values they have", a.factList(), a.factShow(), a.factValues()))
}

func (a *app) factList() *cobra.Command {
	var paths bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the names of all facts, or the paths of all values", Args: exactly(0),
		Example: "  tutti fact list\n  tutti fact list --paths | grep '^os'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !paths {
				return askRows(a, cmd, &pql.Query{Entity: "fact_names", OrderBy: []pql.Order{{Field: column("name")}}}, []string{"name"}, "No facts yet.")
			}
			return listPaths(a, cmd)
		},
	}
	cmd.Flags().BoolVar(&paths, "paths", false, "list the path of every value, as queries and rules name it, with its type")
	return cmd
}

// listPaths shows paths as people write them; -o json has the lists of steps.
func listPaths(a *app, cmd *cobra.Command) error {
	q := &pql.Query{Entity: "fact_paths", Columns: []pql.Column{column("path"), column("type")}, OrderBy: []pql.Order{{Field: column("path")}}}
	t := rowTable([]string{"path", "type"}, "No facts yet.", false)
	plain := t.Row
	t.Row = func(row json.RawMessage) []string {
		cells := plain(row)
		cells[0] = dotted(cells[0])
		return cells
	}
	t.Name = func(row json.RawMessage) string { return t.Row(row)[0] }
	return printRows(a, cmd.Context(), api.QueryRequest{Query: q.AST()}, func([]string) print.Table[json.RawMessage] { return t })
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

func (a *app) factValues() *cobra.Command {
	var where string
	cmd := &cobra.Command{
		Use: "values PATH", Short: "Say which values a fact has, and how many nodes have each", Args: exactly(1),
		Example: "  tutti fact values kernel\n  tutti fact values os.release.major --where 'facts.os.family = \"Debian\"'\n  tutti fact values 'processors.models[0]' -o csv",
		RunE: func(cmd *cobra.Command, args []string) error {
			steps := facts.PathSteps(args[0])
			if len(steps) == 0 || facts.PathText(steps...) == "" {
				return usageError{fault.New(fault.Invalid, "a path like os.family is expected, not %.80q", args[0])}
			}
			q := &pql.Query{
				Entity: "fact_contents", Columns: []pql.Column{column("value"), {Function: "count"}}, GroupBy: []pql.Column{column("value")},
				Where:   pql.Compare{Op: "=", Field: pql.Field{Name: "path"}, Value: pathValue(steps)},
				OrderBy: []pql.Order{{Field: column("count"), Descending: true}, {Field: column("value")}},
			}
			if err := onNodes(q, where); err != nil {
				return err
			}
			return askRows(a, cmd, q, []string{"value", "nodes"}, "No node has the value "+args[0]+"; `tutti fact list --paths` shows what there is.")
		},
	}
	addWhereFlag(a, cmd, &where)
	return cmd
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
func addWhereFlag(a *app, cmd *cobra.Command, where *string) {
	cmd.Flags().StringVar(where, "where", "", "only nodes that this PQL condition holds for, as for tutti node list")
	completes(cmd, "where", completeCondition)
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
func askRows(a *app, cmd *cobra.Command, q *pql.Query, headings []string, empty string) error {
	return printRows(a, cmd.Context(), api.QueryRequest{Query: q.AST()}, func(columns []string) print.Table[json.RawMessage] {
		t := rowTable(columns, empty, false)
		t.Columns = headings
		return t
	})
}

func (a *app) factShow() *cobra.Command {
	cmd := a.nodeFacts()
	cmd.Use, cmd.Example = "show NODE [PATH]", "  tutti fact show web-1.example.test\n  tutti fact show web-1.example.test os.family\n  tutti fact show web-1.example.test 'processors.models[0]'"
	return cmd
}

func (a *app) nodeFacts() *cobra.Command {
	return &cobra.Command{
		Use: "facts NODE [PATH]", Short: "Show a node's newest facts, or those below a dotted path",
		Example: "  tutti node facts web-1.example.test\n  tutti node facts web-1.example.test os.family",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactly(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			facts, err := ask(cmd.Context(), a, api.NodeFacts, api.NameRequest{Name: args[0]})
			if err != nil {
				return err
			}
			var values any
			if err := json.Unmarshal(facts.Values, &values); err != nil {
				return err
			}
			prefix := ""
			if len(args) == 2 {
				prefix = args[1]
				if values, err = below(values, prefix); err != nil {
					return err
				}
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(values)
			}
			return a.printer().Rows([]string{"fact", "value"}, flatten(prefix, values, nil))
		},
	}
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
