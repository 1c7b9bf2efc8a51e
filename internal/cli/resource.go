package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pql"
)

var resourceCommand = asking{noun{
	use: "resource", short: "See which nodes have a resource, and where it differs",
	verbs: []declared{resourceList, resourceVariants, resourceLive},
}}

type resourceListInput struct {
	where      string
	parameters bool
}

var resourceList = verb[resourceListInput]{
	use: "list TYPE [TITLE]", short: "List the nodes that have a resource in their newest catalog", args: oneOrTwo("TYPE", "TITLE"),
	prints: aList,
	example: `  tutti resource list Service nginx
  tutti resource list Class Role::Web -o name
  tutti resource list File /etc/motd --parameters --where 'facts.os.family = "Debian"'`,
	flags: func(f flagSet, in *resourceListInput) {
		f.BoolVar(&in.parameters, "parameters", false, "show the parameters, too")
		addWhereFlag(f, &in.where)
	},
	run: func(ctx context.Context, c *call, in *resourceListInput) error {
		kind, title := spelled(c.args)
		q := &pql.Query{Entity: "resources", Where: named(kind, title)}
		columns := []string{"certname", "title", "exported", "file", "line"}
		if in.parameters {
			columns = append(columns, "parameters")
		}
		for _, name := range columns {
			q.Columns = append(q.Columns, column(name))
		}
		q.OrderBy = []pql.Order{{Field: column("certname")}, {Field: column("title")}}
		if err := onNodes(q, in.where); err != nil {
			return err
		}
		return listResources(ctx, c.app, q, kind, append([]string{"node"}, columns[1:]...))
	},
}

// listResources prints what a query answers with. When that is nothing, the type is looked at: it may be misspelt.
func listResources(ctx context.Context, a *app, q *pql.Query, kind string, headings []string) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	var l *print.Listing[json.RawMessage]
	err = client.Rows(ctx, api.QueryRequest{Query: q.AST()}, func(head api.QueryAnswer) error {
		t := rowTable(head.Columns, "No node has such a resource.", false)
		t.Columns = headings
		l, err = print.NewListing(a.printer(), t)
		return err
	}, func(row json.RawMessage) error { return l.Add(row) })
	if err == nil && l.Count() == 0 {
		err = knownType(ctx, a, kind)
	}
	if err != nil {
		return err
	}
	return l.End()
}

// knownType is an error for a type that no catalog has, and names those that are near. While there are no catalogs, all are known.
func knownType(ctx context.Context, a *app, kind string) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	var types []string
	q := &pql.Query{Entity: "resources", Columns: []pql.Column{column("type")}, GroupBy: []pql.Column{column("type")}}
	err = client.Rows(ctx, api.QueryRequest{Query: q.AST()}, func(api.QueryAnswer) error { return nil }, func(text json.RawMessage) error {
		var row struct {
			Type string `json:"type"`
		}
		err := json.Unmarshal(text, &row)
		types = append(types, row.Type)
		return err
	})
	if err != nil || len(types) == 0 || slices.Contains(types, kind) {
		return err
	}
	hint := fault.DidYouMean(kind, types)
	if hint == "" {
		hint = "`tutti query 'resources[type]{group by type}'` lists the types that there are"
	}
	return &fault.Error{Kind: fault.NotFound, Detail: fmt.Sprintf("no catalog has a resource of the type %.80s", kind), Hint: hint}
}

// oneOrTwo takes one argument, and perhaps another.
func oneOrTwo(first, second string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < 1 || len(args) > 2 {
			return usageError{
				fault.New(fault.Invalid, "it takes %s, and perhaps %s; %s given; usage: %s", first, second, fault.Are(len(args), "argument"), cmd.UseLine()),
			}
		}
		return nil
	}
}

// spelled is type and title as catalogs spell them: apache::vhost is Apache::Vhost.
func spelled(args []string) (kind, title string) {
	kind = capitalised(args[0])
	if len(args) > 1 {
		title = args[1]
	}
	if kind == "Class" {
		title = capitalised(title)
	}
	return kind, title
}

func capitalised(name string) string {
	parts := strings.Split(strings.TrimPrefix(name, "::"), "::")
	for i, part := range parts {
		if part != "" {
			parts[i] = strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return strings.Join(parts, "::")
}

func named(kind, title string) pql.Expr {
	is := func(name, text string) pql.Expr {
		return pql.Compare{Op: "=", Field: pql.Field{Name: name}, Value: pql.Text(text)}
	}
	if title == "" {
		return is("type", kind)
	}
	return pql.And{Terms: []pql.Expr{is("type", kind), is("title", title)}}
}

var resourceVariants = verb[api.ResourceVariantsRequest]{
	use: "variants TYPE [TITLE]", short: "Say how a resource differs over the fleet: the way to find drift",
	prints: aList,
	args:   oneOrTwo("TYPE", "TITLE"),
	long: `Say with which parameters nodes have a resource, how many have each set, and which
parameters differ; what most nodes have comes first. Without TITLE, every resource
of the type is listed with the number of its variants.`,
	example: `  tutti resource variants Service nginx
  tutti resource variants File /etc/ssh/sshd_config --where 'facts.os.family = "Debian"'
  tutti resource variants Package -o csv`,
	flags: func(f flagSet, in *api.ResourceVariantsRequest) { addWhereFlag(f, &in.Where) },
	run: func(ctx context.Context, c *call, in *api.ResourceVariantsRequest) error {
		in.Type, in.Title = spelled(c.args)
		if _, err := readCondition(in.Where); err != nil {
			return err
		}
		found, err := ask(ctx, c.app, api.ResourceVariants, *in)
		if err != nil {
			return err
		}
		if len(found.Items) == 0 {
			if err := knownType(ctx, c.app, in.Type); err != nil {
				return err
			}
		}
		if in.Title == "" {
			return print.List(c.printer(), found.Items, comparisonTable())
		}
		if len(found.Items) == 0 {
			return print.List(c.printer(), []api.ResourceVariant(nil), variantTable(nil))
		}
		one := found.Items[0]
		c.hint("%s[%s] on %s: %s", one.Type, one.Title, fault.Count(one.Nodes, "node"), differs(one))
		return print.List(c.printer(), one.Variants, variantTable(one.Differing))
	},
}

// differs sums up a comparison.
func differs(c api.ResourceComparison) string {
	if len(c.Variants) == 1 {
		return "the same everywhere"
	}
	return fmt.Sprintf("%d variants, which differ in %s", len(c.Variants), strings.Join(c.Differing, ", "))
}

func comparisonTable() print.Table[api.ResourceComparison] {
	return print.Table[api.ResourceComparison]{
		Columns: []string{"title", "variants", "nodes", "differing"},
		Row: func(c api.ResourceComparison) []any {
			return []any{c.Title, len(c.Variants), c.Nodes, c.Differing}
		},
		Name:  func(c api.ResourceComparison) string { return c.Title },
		Empty: "No node has such a resource.",
	}
}

// variantTable has a column for each parameter that differs; -o json has all.
func variantTable(differing []string) print.Table[api.ResourceVariant] {
	return print.Table[api.ResourceVariant]{
		Columns: append(append([]string{"nodes"}, differing...), "for example"),
		Row: func(v api.ResourceVariant) []any {
			return append(append([]any{v.Nodes}, cells(v.Parameters, differing)...), examples(v))
		},
		Name:  examples,
		Empty: "No node has such a resource.",
	}
}

// examples are some of the nodes, and that there are more.
func examples(v api.ResourceVariant) string {
	text := strings.Join(v.Examples, " ")
	if v.Nodes > len(v.Examples) {
		text += " …"
	}
	return text
}
