package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/cli/print"
)

var appCommand = asking{noun{
	use: "app", short: "See applications, and which nodes wait for which others",
	verbs: []declared{appList, appShow, appGraph, appModule},
}}

var appList = verb[api.AppListRequest]{
	use: "list", short: "List applications",
	prints:  aList,
	long:    "List the applications that catalogs declare with the module tutti; see `tutti app module`.",
	example: "  tutti app list\n  tutti app list --environment production -o json",
	flags: func(f flagSet, in *api.AppListRequest) {
		f.StringVarP(&in.Environment, "environment", "e", "", "only of this environment")
	},
	run: func(ctx context.Context, c *call, in *api.AppListRequest) error {
		apps, err := allApps(ctx, c.app, *in)
		if err != nil {
			return err
		}
		return print.List(c.printer(), apps, print.Table[api.App]{
			Columns: []string{"application", "environment", "components", "nodes", "problems"},
			Row: func(p api.App) []any {
				return []any{p.Name, p.Environment, len(p.Components), len(p.Nodes), len(p.Problems)}
			},
			Name:  func(p api.App) string { return p.Name },
			Empty: noApps,
		})
	},
}

func allApps(ctx context.Context, a *app, request api.AppListRequest) ([]api.App, error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	apps, err := api.AppList.Call(ctx, client, request)
	return apps.Items, err
}

var appShow = verb[api.AppListRequest]{
	use: "show [MODEL|MODEL[INSTANCE]]", short: "Show applications with their components in the order of their needs",
	args: atMostOne,
	long: `Show applications: each model with its instances, and under each instance its components with their nodes, each behind
those that it needs, with what it produces (+) and consumes (-).`,
	example: "  tutti app show\n  tutti app show Shop\n  tutti app show 'Shop[eu]' -o json",
	flags: func(f flagSet, in *api.AppListRequest) {
		f.StringVarP(&in.Environment, "environment", "e", "", "only of this environment")
	},
	run: func(ctx context.Context, c *call, in *api.AppListRequest) error {
		if len(c.args) > 0 {
			in.App = c.args[0]
		}
		apps, err := allApps(ctx, c.app, *in)
		if err != nil {
			return err
		}
		return print.One(c.printer(), apps, printApps)
	},
}

// noApps is said when there are none.
const noApps = "No catalog declares an application; `tutti app module DIR` writes the module that does."

func printApps(to print.Printer, apps []api.App) error {
	if len(apps) == 0 {
		to.Hint(noApps)
	}
	return to.Text(appsText(apps))
}

// appsText is applications by their models, as people read them.
func appsText(apps []api.App) string {
	models := map[string][]api.App{}
	for _, p := range apps {
		models[p.Model] = append(models[p.Model], p)
	}
	var text strings.Builder
	for _, model := range slices.Sorted(maps.Keys(models)) {
		fmt.Fprintln(&text, model)
		for _, p := range models[model] {
			writeApp(&text, p)
		}
	}
	return text.String()
}

// writeApp writes one instance.
func writeApp(text *strings.Builder, p api.App) {
	fmt.Fprintf(text, "  %s  (%s)", p.Name, p.Environment)
	if p.Description != "" {
		fmt.Fprintf(text, "  %s", print.OneLine(p.Description))
	}
	fmt.Fprintln(text)
	if parameters := parametersText(p.Parameters); parameters != "" {
		fmt.Fprintf(text, "    Parameters: %s\n", parameters)
	}
	widest, widestNode := 0, 0
	for _, c := range p.Components {
		widest, widestNode = max(widest, len(c.Name)), max(widestNode, len(c.Node))
	}
	for _, c := range p.Components {
		line := fmt.Sprintf("    %-*s  => %-*s", widest, c.Name, widestNode, c.Node)
		if len(c.Produces) > 0 {
			line += "  + produces " + strings.Join(c.Produces, ", ")
		}
		if len(c.Consumes) > 0 {
			line += "  - consumes " + strings.Join(c.Consumes, ", ")
		}
		fmt.Fprintln(text, strings.TrimRight(line, " "))
	}
	for _, problem := range p.Problems {
		fmt.Fprintf(text, "    ! %s\n", print.OneLine(problem))
	}
}

// parametersText is what an instance is made with: name = value.
func parametersText(object json.RawMessage) string {
	var values map[string]json.RawMessage
	if json.Unmarshal(object, &values) != nil {
		return ""
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		words = append(words, name+" = "+string(values[name]))
	}
	return strings.Join(words, ", ")
}

var appGraph = verb[api.Nothing]{
	use: "graph [MODEL|MODEL[INSTANCE]]", short: "Draw which nodes wait for which others, and why", args: atMostOne,
	long: `Draw which nodes wait for which others: of the fleet, or of an application. A node waits for those whose exported
resources it collects, and for those whose components produce what its own consume. Nodes that collect resources of one
type from each other share them, and do not wait for one another.`,
	example: "  tutti app graph\n  tutti app graph 'Shop[eu]'\n  tutti app graph -o json",
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		client, err := c.client()
		if err != nil {
			return err
		}
		var request api.AppGraphRequest
		if len(c.args) > 0 {
			request.App = c.args[0]
		}
		graph, err := api.AppGraph.Call(ctx, client, request)
		if err != nil {
			return err
		}
		return print.One(c.printer(), graph, printGraph)
	},
}

func printGraph(to print.Printer, graph api.NodeGraph) error {
	if len(graph.Layers)+len(graph.Cycle) == 0 {
		to.Hint("No node waits for another one.")
	}
	return to.Text(graphText(graph))
}

// graphText draws layers, and under each node whom it waits for.
func graphText(graph api.NodeGraph) string {
	var text strings.Builder
	edges := map[string][]api.NodeEdge{}
	for _, e := range graph.Edges {
		edges[e.Node] = append(edges[e.Node], e)
	}
	for i, nodes := range graph.Layers {
		fmt.Fprintf(&text, "Level %d\n", i)
		for _, node := range nodes {
			fmt.Fprintf(&text, "  %s\n", node)
			for n, e := range edges[node] {
				branch := "├─"
				if n == len(edges[node])-1 {
					branch = "└─"
				}
				fmt.Fprintf(&text, "    %s waits for %s: %s\n", branch, e.WaitsFor, print.OneLine(strings.Join(e.Why, "; ")))
			}
		}
	}
	if len(graph.Cycle) > 0 {
		fmt.Fprintf(&text, "! no order: %s -> %s\n", strings.Join(graph.Cycle, " -> "), graph.Cycle[0])
	}
	for _, s := range graph.Shared {
		fmt.Fprintf(&text, "Shared, without an order: %s of %s\n", s.Type, someNames(s.Nodes, shownNames))
	}
	for _, problem := range graph.Problems {
		fmt.Fprintf(&text, "! %s\n", print.OneLine(problem))
	}
	return text.String()
}

var appModule = verb[api.Nothing]{
	use: "module DIR", short: "Write the Puppet module that declares applications",
	prints: silent,
	long: `Write the Puppet module tutti into a directory of modules, such as the site-modules of a control repository. Its defined
types tutti::component and tutti::application declare applications; they manage nothing on nodes. An older copy is replaced.`,
	example: "  tutti app module control-repo/site-modules",
	run: func(_ context.Context, c *call, _ *api.Nothing) error {
		if err := writeModule(c.args[0]); err != nil {
			return unwritten("the module", c.args[0], err)
		}
		c.hint("Wrote %s; deploy the control repository to use it.", filepath.Join(c.args[0], "tutti"))
		return nil
	},
}

// writeModule writes the module into an existing directory.
func writeModule(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	module := appgraph.Module()
	return fs.WalkDir(module, ".", func(path string, entry fs.DirEntry, err error) error {
		target := filepath.Join(dir, filepath.FromSlash(path))
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.MkdirAll(target, 0o755) //nolint:gosec // modules are read by everybody
		}
		text, err := fs.ReadFile(module, path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644) //nolint:gosec // the same
	})
}
