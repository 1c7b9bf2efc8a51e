package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pql"
)

func (a *app) queryCommand() *cobra.Command {
	var explain bool
	var total bool
	cmd := a.withAccess(&cobra.Command{
		Use: "query PQL", Short: "Ask the inventory a question", Args: exactly(1),
		Long: `Ask the inventory a question, in PQL or in PuppetDB's AST language (JSON).

A query names an entity, the columns to show (all if there are none), and which
rows. The entities are nodes, facts, fact_contents, fact_paths, factsets,
inventory, catalogs, resources, edges, reports, events, environments, packages
and package_inventory.`,
		Example: `  tutti query 'nodes[certname]{latest_report_status = "failed"}'
  tutti query 'inventory[certname]{facts.os.family = "Debian" and resources{type = "Class" and title = "Role::Web"}}'
  tutti query 'facts[value, count()]{name = "kernel" group by value}' -o csv
  tutti query --explain 'nodes{certname != "a"}'`,
		ValidArgsFunction: completeQuery,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := readQuery(args[0])
			if err != nil {
				return err
			}
			if explain {
				return a.explainQuery(q)
			}
			answer, err := ask[api.QueryAnswer](cmd.Context(), a, api.QueryRun, api.QueryRequest{Query: args[0], Total: total})
			if err != nil {
				return err
			}
			if answer.Total != nil {
				a.hint("%d of %d rows.", len(answer.Rows), *answer.Total)
			}
			return a.printAnswer(answer)
		},
	})
	cmd.Flags().BoolVar(&explain, "explain", false, "show how the query is understood, in both notations, and ask nobody")
	cmd.Flags().BoolVar(&total, "total", false, "say how many rows there are without limit and offset")
	return cmd
}

// readQuery checks a query before anybody is asked, and shows where it is wrong.
func readQuery(text string) (*pql.Query, error) {
	q, err := pql.Read(text)
	if err == nil {
		_, err = pql.Check(q)
	}
	if e, ok := errors.AsType[*pql.Error](err); ok {
		if caret := caretIn(text, e); caret != "" {
			return nil, usageError{fault.New(fault.Invalid, "%s\n\n%s", e.Error(), caret)}
		}
	}
	return q, err
}

// caretIn marks the place of an error; those of the schema do not know the text.
func caretIn(text string, e *pql.Error) string {
	lines := strings.Split(text, "\n")
	if e.Pos.Line < 1 || e.Pos.Line > len(lines) {
		return ""
	}
	e.Line = lines[e.Pos.Line-1]
	return e.Caret()
}

func (a *app) explainQuery(q *pql.Query) error {
	if a.asJSON() {
		return a.printJSON(map[string]any{"pql": q.String(), "ast": json.RawMessage(q.AST()), "columns": q.Names()})
	}
	return a.printRows(nil, [][]string{{"pql", q.String()}, {"ast", q.AST()}, {"columns", strings.Join(q.Names(), ", ")}})
}

// completeQuery offers what may follow the query as it is written so far.
func completeQuery(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if len(args) > 0 {
		return nil, directive
	}
	typed := strings.LastIndexFunc(toComplete, func(r rune) bool {
		return r != '_' && r != '?' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	var out []string
	for _, s := range pql.Complete(toComplete) {
		out = append(out, toComplete[:typed+1]+s.Text)
	}
	return out, directive
}

func (a *app) printAnswer(answer api.QueryAnswer) error {
	if a.output == "json" { // as PuppetDB's own tool prints it
		return a.printJSON(answer.Rows)
	}
	return printList(a, answer.Rows, table[json.RawMessage]{
		columns: answer.Columns,
		row:     func(row json.RawMessage) []string { return cells(row, answer.Columns) },
		name:    func(row json.RawMessage) string { return cells(row, answer.Columns)[0] },
		empty:   "No rows.",
	})
}

// cells are a row's values for people: text as it is, the rest as JSON.
func cells(row json.RawMessage, columns []string) []string {
	var values map[string]json.RawMessage
	_ = json.Unmarshal(row, &values) // the server sends objects
	out := make([]string, len(columns))
	for i, name := range columns {
		raw := values[name]
		var text string
		switch {
		case json.Unmarshal(raw, &text) == nil:
			out[i] = text
		case len(raw) > 0 && string(raw) != "null":
			var b bytes.Buffer
			_ = json.Compact(&b, raw) // it was decoded before
			out[i] = b.String()
		}
	}
	return out
}
