package cli

import (
	"fmt"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

var catalogCommand = asking{noun{
	use: "catalog", short: "See compiled catalogs, and decide which one nodes may have",
	verbs: []declared{
		catalogShow, catalogInputs, catalogDiff, catalogStatus, catalogRelease, catalogMode, catalogGenerations,
		catalogPin, catalogUnpin, catalogHeld, catalogLet,
	},
}}

var catalogShow = verb[api.NameRequest]{
	use: "show NODE", short: "Show the resources of a node's newest catalog",
	prints:  aList,
	long:    "Show the resources of a node's newest catalog. With -o json also their parameters and the edges; values of sensitive parameters are never shown.",
	example: "  tutti catalog show web-1.example.test\n  tutti catalog show web-1.example.test -o json",
	into:    byName,
	run: shows(api.NodeCatalog, func(to print.Printer, catalog api.Catalog) error {
		to.Hint("Catalog %s of %s: environment %s, version %s, %s %s, %s, %s", short(catalog.Digest), catalog.Name,
			catalog.Environment, short(catalog.Version), origin(catalog), print.Ago(catalog.CompiledAt, time.Now()), fault.Count(len(catalog.Resources), "resource"),
			fault.Count(len(catalog.Edges), "edge"))
		return print.List(to, catalog.Resources, print.Table[api.Resource]{
			Columns: []string{"resource", "where"},
			Row: func(r api.Resource) []any {
				return []any{resourceName(r), fleet.Place(r.File, r.Line)}
			},
			Name:  resourceName,
			Empty: "The catalog has no resources.",
		})
	}),
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
