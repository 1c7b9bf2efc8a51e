package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pql"
)

type queryCommandInput struct{ explain, total bool }

var queryCommand = asking{verb[queryCommandInput]{
	use: "query PQL|@FILE|-", short: "Ask the inventory a question", args: oneQuery,
	prints: aList,
	long: `Ask the inventory a question, in PQL or in PuppetDB's AST language (JSON): as
argument, from a file (@FILE), or from standard input (-).

A query names an entity, the columns to show (all if there are none), and which
rows. The entities are nodes, facts, fact_contents, fact_paths, factsets,
inventory, catalogs, resources, edges, collected (what nodes collected from
others), reports, events, environments, packages, package_inventory, agents and
modules (what each node's agent is and can do).

A query that is asked often is saved under a name, for oneself or for all: see save, list, show, ask and delete.

-o json prints an array, as ` + "`puppet query`" + ` does; -o jsonl one row a line.`,
	example: `  tutti query 'nodes[certname]{latest_report_status = "failed"}'
  tutti query 'inventory[certname]{facts.os.family = "Debian" and resources{type = "Class" and title = "Role::Web"}}'
  tutti query 'facts[value, count()]{name = "kernel" group by value}' -o csv
  tutti query @failed.pql -o json
  tutti query --explain 'nodes{certname != "a"}'`,
	complete: completeQuery,
	below:    []declared{querySave, queryList, queryShow, queryDelete, queryAsk, queryWords},
	flags: func(f flagSet, in *queryCommandInput) {
		f.BoolVar(&in.explain, "explain", false, "show how the query is understood, in both notations, and ask nobody")
		f.BoolVar(&in.total, "total", false, "say how many rows there are without limit and offset")
	},
	run: func(ctx context.Context, c *call, in *queryCommandInput) error {
		text, err := queryText(c.app, c.args[0])
		if err != nil {
			return err
		}
		q, err := readQuery(text)
		if err != nil {
			return err
		}
		if in.explain {
			return explainQuery(c.printer(), q)
		}
		return queryRows(ctx, c.app, api.QueryRequest{Query: text, Total: in.total}, "No rows.", true)
	},
}}

// oneQuery says how to give what is missing.
func oneQuery(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return usageError{fmt.Errorf("what is the question? give it in quotes, @FILE for a file, or - for standard input; see `%s --help`", cmd.CommandPath())}
	}
	return usageError{fmt.Errorf("a query is one argument, %d are given: put it in single quotes, so that the shell leaves it whole", len(args))}
}

// queryText is the query that an argument stands for.
func queryText(a *app, argument string) (string, error) {
	name, isFile := strings.CutPrefix(argument, "@")
	from := a.system.In
	switch {
	case argument == "-":
	case isFile:
		file, err := openNamed("the query", name)
		if err != nil {
			return "", err
		}
		defer file.Close() //nolint:errcheck // it was only read
		from = file
	default:
		return argument, nil
	}
	text, err := io.ReadAll(io.LimitReader(from, pql.MaxBytes+1))
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "cannot read the query: %v", err)
	}
	return string(text), nil
}

// readQuery checks a query before anybody is asked, and shows where it is wrong.
func readQuery(text string) (*pql.Query, error) {
	q, err := pql.Read(text)
	if err == nil {
		_, err = pql.Check(q)
	}
	return q, pointed(text, err)
}

// readCondition does the same for the condition of --where; nil for an empty one.
func readCondition(text string) (pql.Expr, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	e, err := pql.NodeCondition(text)
	if err = pointed(text, err); err != nil {
		return nil, usageError{&fault.Error{Kind: fault.Invalid, Detail: "--where: " + fault.Detail(err), Hint: fault.Hint(err), Err: err}}
	}
	return e, nil
}

// pointed shows the place of an error below it.
func pointed(text string, err error) error {
	e, ok := errors.AsType[*pql.Error](err)
	if !ok {
		return err
	}
	if caret := caretIn(text, e); caret != "" {
		return usageError{&fault.Error{Kind: fault.Invalid, Detail: e.Error() + "\n\n" + caret, Hint: e.Hint}}
	}
	return usageError{err}
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

func explainQuery(to print.Printer, q *pql.Query) error {
	if to.ForPrograms() {
		return to.Thing(map[string]any{"pql": q.String(), "ast": json.RawMessage(q.AST()), "columns": q.Names()})
	}
	return to.Rows(nil, [][]string{{"pql", q.String()}, {"ast", q.AST()}, {"columns", strings.Join(q.Names(), ", ")}})
}

// completeQuery offers what may follow the query as it is written so far.
func completeQuery(*app) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, pqlDirective
		}
		return completed(toComplete, pql.Complete(toComplete)), pqlDirective
	}
}

// completeCondition does the same for a condition on nodes.
func completeCondition(*app) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return completed(toComplete, pql.CompleteCondition(toComplete)), pqlDirective
	}
}

const pqlDirective = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace

// completed is the text with each suggestion instead of the word that is begun.
func completed(text string, suggestions []pql.Suggestion) []string {
	before := strings.TrimSuffix(text, pql.Begun(text))
	var out []string
	for _, s := range suggestions {
		out = append(out, before+s.Text)
	}
	return out
}

// queryRows asks and prints what comes. As JSON, bare is an array.
func queryRows(ctx context.Context, a *app, request api.QueryRequest, empty string, bare bool) error {
	return printRows(ctx, a, request, func(columns []string) print.Table[json.RawMessage] { return rowTable(columns, empty, bare) })
}

// printRows asks and prints what comes as a table that depends on the columns.
func printRows(ctx context.Context, a *app, request api.QueryRequest, shape func(columns []string) print.Table[json.RawMessage]) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	var l *print.Listing[json.RawMessage]
	var total *int64
	err = client.Rows(ctx, request, func(head api.QueryAnswer) error {
		total = head.Total
		l, err = print.NewListing(a.printer(), shape(head.Columns))
		return err
	}, func(row json.RawMessage) error { return l.Add(row) })
	if err != nil {
		return err
	}
	if total != nil {
		a.hint("%d of %s.", l.Count(), fault.Count(*total, "row"))
	}
	return l.End()
}

func rowTable(columns []string, empty string, bare bool) print.Table[json.RawMessage] {
	return print.Table[json.RawMessage]{
		Columns: columns, Empty: empty, Bare: bare,
		Row:  func(row json.RawMessage) []any { return cells(row, columns) },
		Name: func(row json.RawMessage) string { return fmt.Sprint(cells(row, columns)[0]) },
	}
}

// cells are a row's values: texts and numbers as they are, the rest as JSON.
func cells(row json.RawMessage, columns []string) []any {
	var values map[string]json.RawMessage
	_ = json.Unmarshal(row, &values) // the server sends objects
	out := make([]any, len(columns))
	for i, name := range columns {
		raw := values[name]
		var text string
		var number json.Number
		out[i] = ""
		switch {
		case json.Unmarshal(raw, &text) == nil:
			out[i] = text
		case json.Unmarshal(raw, &number) == nil:
			out[i] = number
		case len(raw) > 0 && string(raw) != "null":
			var b bytes.Buffer
			_ = json.Compact(&b, raw) // it was decoded before
			out[i] = b.String()
		}
	}
	return out
}
