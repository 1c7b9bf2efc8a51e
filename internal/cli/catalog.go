package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fleet"
)

func (a *app) catalogCommand() *cobra.Command {
	return a.withAccess(noun("catalog", "See compiled catalogs, and decide which one nodes may have", a.catalogShow(), a.catalogInputs(), a.catalogDiff(),
		a.catalogStatus(), a.catalogRelease(), a.catalogMode(), a.catalogGenerations(), a.catalogPin(), a.catalogUnpin(),
		a.catalogHeld(), a.catalogLet()))
}

func (a *app) catalogShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NODE", Short: "Show the resources of a node's newest catalog", Args: exactly(1),
		Long:    "Show the resources of a node's newest catalog. With -o json also their parameters and the edges; values of sensitive parameters are never shown.",
		Example: "  tutti catalog show web-1.example.test\n  tutti catalog show web-1.example.test -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			catalog, err := ask(cmd.Context(), a, api.NodeCatalog, api.NameRequest{Name: args[0]})
			if err != nil {
				return err
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(catalog)
			}
			a.hint("Catalog %s of %s: environment %s, version %s, %s %s, %d resources, %d edges", short(catalog.Digest), catalog.Name,
				catalog.Environment, short(catalog.Version), origin(catalog), print.Ago(catalog.CompiledAt, time.Now()), len(catalog.Resources), len(catalog.Edges))
			return print.List(a.printer(), catalog.Resources, print.Table[api.Resource]{
				Columns: []string{"resource", "where"},
				Row: func(r api.Resource) []string {
					return []string{resourceName(r), fleet.Place(r.File, r.Line)}
				},
				Name:  resourceName,
				Empty: "The catalog has no resources.",
			})
		},
	}
}

// origin says how a catalog came about.
func origin(c api.Catalog) string {
	if c.Received {
		return "compiled by " + first(c.Producer, "another server") + " (its document is not stored here), received"
	}
	return "compiled"
}

func resourceName(r api.Resource) string {
	name := fmt.Sprintf("%s[%s]", r.Type, r.Title)
	if r.Exported {
		return "@@" + name
	}
	return name
}
