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

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

func (a *app) appCommand() *cobra.Command {
	cmd := a.withAccess(noun("app", "See applications, and which nodes wait for which others", a.appList(), a.appShow(), a.appGraph()))
	cmd.AddCommand(a.appModule())
	return cmd
}

func (a *app) appList() *cobra.Command {
	var request api.AppListRequest
	cmd := &cobra.Command{
		Use: "list", Short: "List applications", Args: exactly(0),
		Long:    "List the applications that catalogs declare with the module tutti; see `tutti app module`.",
		Example: "  tutti app list\n  tutti app list --environment production -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			apps, err := allApps(a, cmd.Context(), request)
			if err != nil {
				return err
			}
			return print.List(a.printer(), apps, print.Table[api.App]{
				Columns: []string{"application", "environment", "components", "nodes", "problems"},
				Row: func(p api.App) []string {
					return []string{p.Name, p.Environment, fmt.Sprint(len(p.Components)), fmt.Sprint(len(p.Nodes)), fmt.Sprint(len(p.Problems))}
				},
				Name:  func(p api.App) string { return p.Name },
				Empty: "No catalog declares an application; `tutti app module DIR` writes the module that does.",
			})
		},
	}
	cmd.Flags().StringVarP(&request.Environment, "environment", "e", "", "only of this environment")
	return cmd
}

func allApps(a *app, ctx context.Context, request api.AppListRequest) ([]api.App, error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	apps, err := api.AppList.Call(ctx, client, request)
	return apps.Items, wrongInput(err)
}

func (a *app) appShow() *cobra.Command {
	var request api.AppListRequest
	cmd := &cobra.Command{
		Use: "show [MODEL|MODEL[INSTANCE]]", Short: "Show applications with their components in the order of their needs", Args: cobra.MaximumNArgs(1),
		Long: `Show applications: each model with its instances, and under each instance its components with their nodes, each behind
those that it needs, with what it produces (+) and consumes (-).`,
		Example: "  tutti app show\n  tutti app show Shop\n  tutti app show 'Shop[eu]' -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				request.App = args[0]
			}
			apps, err := allApps(a, cmd.Context(), request)
			if err != nil {
				return err
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(apps)
			}
			if len(apps) == 0 {
				a.hint("No catalog declares an application; `tutti app module DIR` writes the module that does.")
			}
			_, err = fmt.Fprint(a.system.Out, appsText(apps))
			return err
		},
	}
	cmd.Flags().StringVarP(&request.Environment, "environment", "e", "", "only of this environment")
	return cmd
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

func (a *app) appGraph() *cobra.Command {
	return &cobra.Command{
		Use: "graph [MODEL|MODEL[INSTANCE]]", Short: "Draw which nodes wait for which others, and why", Args: cobra.MaximumNArgs(1),
		Long: `Draw which nodes wait for which others: of the fleet, or of an application. A node waits for those whose exported
resources it collects, and for those whose components produce what its own consume. Nodes that collect resources of one
type from each other share them, and do not wait for one another.`,
		Example: "  tutti app graph\n  tutti app graph 'Shop[eu]'\n  tutti app graph -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			var request api.AppGraphRequest
			if len(args) > 0 {
				request.App = args[0]
			}
			graph, err := api.AppGraph.Call(cmd.Context(), client, request)
			if err != nil {
				return wrongInput(err)
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(graph)
			}
			if len(graph.Layers)+len(graph.Cycle) == 0 {
				a.hint("No node waits for another one.")
			}
			_, err = fmt.Fprint(a.system.Out, graphText(graph))
			return err
		},
	}
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

func (a *app) appModule() *cobra.Command {
	return &cobra.Command{
		Use: "module DIR", Short: "Write the Puppet module that declares applications", Args: exactly(1),
		Long: `Write the Puppet module tutti into a directory of modules, such as the site-modules of a control repository. Its defined
types tutti::component and tutti::application declare applications; they manage nothing on nodes. An older copy is replaced.`,
		Example: "  tutti app module control-repo/site-modules",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := writeModule(args[0]); err != nil {
				return fault.Wrap(fault.Invalid, err, "the module cannot be written: %v", err)
			}
			a.hint("Wrote %s; deploy the control repository to use it.", filepath.Join(args[0], "tutti"))
			return nil
		},
	}
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
