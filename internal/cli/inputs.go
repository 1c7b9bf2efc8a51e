package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var catalogInputs = verb[api.Nothing]{
	use: "inputs NODE", short: "Show what a node's newest catalog was made of, and whether it still stands",
	prints: aList,
	long: "Show what was read for a node's newest catalog: facts, trusted data, files of the environment (also those that were looked for and not there)\n" +
		"and questions to the inventory. While all of it is as it was, a node that asks is given the same catalog without a compilation.",
	example: "  tutti catalog inputs web-1.example.test\n  tutti catalog inputs web-1.example.test -o json",
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		return showAnswer(ctx, c.app, api.NodeInputs, api.NameRequest{Name: c.args[0]}, func(to print.Printer, in api.CatalogInputs) error {
			to.Hint("Catalog %s of %s: environment %s, version %s, compiled %s", short(in.Catalog), in.Name, in.Environment, short(in.Version),
				print.Ago(in.CompiledAt, time.Now()))
			hintStanding(to, in)
			return print.List(to, inputRows(in), print.Table[inputRow]{
				Columns: []string{"kind", "what"},
				Row:     func(r inputRow) []any { return []any{r.kind, r.what} },
				Name:    func(r inputRow) string { return r.what },
				Empty:   "Nothing was read.",
			})
		})
	},
}

// hintStanding says whether the catalog is used again, and what was wrong with
// others.
func hintStanding(to print.Printer, in api.CatalogInputs) {
	if in.Stands {
		to.Hint("It stands: a node that asks now is given it")
	} else {
		to.Hint("It does not stand, a node that asks now has one compiled: %s", in.Why)
	}
	if len(in.Volatile) > 0 {
		to.Hint("It is volatile, and used again only for the time that the setting volatile_ttl gives: %s", strings.Join(in.Volatile, "; "))
	}
	if f := in.Follows; f != nil {
		to.Hint("It was compiled because of others (%s), %s in a row without another cause", f.Because, fault.Count(f.Rounds, "time"))
		if f.StoppedAt != nil {
			to.Hint("It did not settle: since %s it is not compiled ahead any more, until something else changes", stampOf(f.StoppedAt))
		}
	}
	for _, stop := range in.Stops {
		to.Hint("ALARM: catalog %s of version %s was used again at %s, but a compilation gave %s; different: %s. No catalog of this version is used again",
			short(stop.Reused), short(stop.Version), stampOf(&stop.At), short(stop.Fresh), strings.Join(stop.Differs, ", "))
	}
}

// inputRow is one thing that was read.
type inputRow struct{ kind, what string }

func inputRows(in api.CatalogInputs) (rows []inputRow) {
	for _, v := range in.Values {
		root, rest, _ := strings.Cut(strings.TrimPrefix(v.Pointer, "/"), "/")
		row := inputRow{kind: map[string]string{"facts": "fact", "server_facts": "server fact"}[root], what: factPath(rest)}
		if row.kind == "" {
			row.kind = root
		}
		switch {
		case v.Seen && (strings.HasSuffix(v.Pointer, "/") || rest == ""):
			row.what = strings.TrimSuffix(factPath(rest), ".") + " (which there are)"
		case rest == "":
			row.what = "(all)"
		case v.Seen:
			row.what += " (whether it is there)"
		case !v.There:
			row.what += " (not there)"
		}
		rows = append(rows, row)
	}
	for _, q := range in.Questions {
		answer := fault.Count(q.Rows, "row")
		if q.Refused {
			answer = "refused"
		}
		rows = append(rows, inputRow{q.Kind, q.Text + " (" + answer + ")"})
	}
	for _, kind := range []struct {
		name  string
		paths []string
	}{
		{"file", in.Sources.Files},
		{"names in", in.Sources.Lists},
		{"names below", in.Sources.Names},
		{"all of", in.Sources.Trees},
		{"module", in.Sources.Modules},
		{"in modules", in.Sources.Anywhere},
	} {
		for _, path := range kind.paths {
			rows = append(rows, inputRow{kind.name, path})
		}
	}
	return rows
}

// factPath is a JSON pointer's rest as people write paths of facts.
func factPath(rest string) string {
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		if strings.Contains(part, ".") {
			part = fmt.Sprintf("%q", part)
		}
		parts[i] = part
	}
	return strings.Join(parts, ".")
}
