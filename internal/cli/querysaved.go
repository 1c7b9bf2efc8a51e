package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

func savedTable(*api.Nothing) print.Table[api.SavedQuery] {
	return print.Table[api.SavedQuery]{
		Columns: []string{"name", "owner", "for", "changed", "description", "query"},
		Spare:   []string{"changed", "description"},
		Row: func(q api.SavedQuery) []any {
			return []any{q.Name, q.Owner, whom(q), q.ChangedAt, q.Description, q.Query}
		},
		Name:  func(q api.SavedQuery) string { return q.Name },
		Empty: "No query is saved yet. `tutti query save NAME PQL` saves one.",
	}
}

func whom(q api.SavedQuery) string {
	if q.Private {
		return "its owner"
	}
	return "all"
}

var queryList = verb[api.Nothing]{
	use: "list", short: "List the saved queries: those that are shared, and your own", example: "  tutti query list",
	prints: aList, run: lists(api.QueryList, savedTable),
}

var queryShow = verb[api.SavedQueryRequest]{
	use: "show NAME", short: "Show a saved query", example: "  tutti query show failed",
	complete: completeSaved,
	into:     func(in *api.SavedQueryRequest, args []string) { in.Saved = args[0] },
	run:      shows(api.QueryShow, printSaved),
}

func printSaved(to print.Printer, q api.SavedQuery) error {
	rows := [][]string{{"Name", q.Name}, {"Query", q.Query}}
	if q.Description != "" {
		rows = append(rows, []string{"Description", q.Description})
	}
	return to.Rows(nil, append(rows, []string{"Owner", q.Owner}, []string{"For", whom(q)}))
}

var querySave = verb[api.QuerySaveRequest]{
	use: "save NAME PQL|@FILE|-", short: "Save a query under a name, for all or for yourself", args: exactly(2),
	long: `Save a query under a name. It is checked first. Others see it, and only its owner, who saved it, can change it: to change it, save it again.
With --private only the owner sees it, too.`,
	example: `  tutti query save failed 'nodes[certname]{latest_report_status = "failed"}' --description 'whose last run failed'
  tutti query save mine @big.pql --private`,
	flags: func(f flagSet, in *api.QuerySaveRequest) {
		f.StringVar(&in.Description, "description", "", "what the query is for")
		f.BoolVar(&in.Private, "private", false, "nobody else sees it")
	},
	run: func(ctx context.Context, c *call, in *api.QuerySaveRequest) error {
		text, err := queryText(c.app, c.args[1])
		if err != nil {
			return err
		}
		if _, err := readQuery(text); err != nil {
			return err
		}
		in.Saved, in.Query = c.args[0], text
		return showAnswer(ctx, c.app, api.QuerySave, *in, func(to print.Printer, q api.SavedQuery) error {
			to.Hint("Saved for %s: `tutti query ask %s`", whom(q), q.Name)
			return nil
		})
	},
}

var queryDelete = verb[api.SavedQueryRequest]{
	use: "delete NAME", short: "Delete a saved query of your own", example: "  tutti query delete failed",
	aliases:  []string{"remove"},
	complete: completeSaved,
	into:     func(in *api.SavedQueryRequest, args []string) { in.Saved = args[0] },
	run:      does(api.QueryRemove, func(in *api.SavedQueryRequest) string { return fmt.Sprintf("The saved query %s is deleted", in.Saved) }),
}

type queryAskInput struct{ total bool }

var queryAsk = verb[queryAskInput]{
	use: "ask NAME", short: "Ask the inventory a saved query", example: "  tutti query ask failed -o csv",
	prints:   aList,
	complete: completeSaved,
	flags: func(f flagSet, in *queryAskInput) {
		f.BoolVar(&in.total, "total", false, "say how many rows there are without limit and offset")
	},
	run: func(ctx context.Context, c *call, in *queryAskInput) error {
		q, err := ask(ctx, c.app, api.QueryShow, api.SavedQueryRequest{Saved: c.args[0]})
		if err != nil {
			return err
		}
		return queryRows(ctx, c.app, api.QueryRequest{Query: q.Query, Total: in.total}, "No rows.", true)
	},
}

type queryWordsInput struct{ condition bool }

var queryWords = verb[queryWordsInput]{
	use: "words TEXT", short: "List what may follow the beginning of a query", args: exactly(1),
	prints:  aList,
	long:    "List what may follow the beginning of a query, as editors and shells offer it: names of entities and fields, operators, words.",
	example: "  tutti query words 'nodes{latest_'\n  tutti query words --condition 'certname '",
	flags: func(f flagSet, in *queryWordsInput) {
		f.BoolVar(&in.condition, "condition", false, "it is the beginning of a condition on nodes, as --where has it")
	},
	run: func(ctx context.Context, c *call, in *queryWordsInput) error {
		list, err := ask(ctx, c.app, api.QueryWords, api.QueryWordsRequest{Text: c.args[0], Condition: in.condition})
		if err != nil {
			return err
		}
		return print.List(c.printer(), list.Words, print.Table[api.QueryWord]{
			Columns: []string{"word", "kind"},
			Row:     func(w api.QueryWord) []any { return []any{w.Text, w.Kind} },
			Name:    func(w api.QueryWord) string { return w.Text },
			Empty:   fmt.Sprintf("Nothing may follow %.80q: it is whole, or there is a mistake in it.", c.args[0]),
		})
	},
}

// completeSaved offers the names of saved queries.
func completeSaved(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, err := ask(completing(cmd), a, api.QueryList, api.Nothing{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, q := range list.Items {
			if strings.HasPrefix(q.Name, begun) {
				names = append(names, q.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
