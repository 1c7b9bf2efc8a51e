package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

func (a *app) nodeCommand() *cobra.Command {
	return a.withAccess(noun("node", "See what is known of nodes", a.nodeList(), a.nodeShow(), a.nodeFacts(), a.nodePurge()))
}

func (a *app) nodeList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List nodes with the state of their last run", Args: exactly(0),
		Example: "  tutti node list\n  tutti node list -o csv",
		RunE: func(cmd *cobra.Command, _ []string) error {
			nodes, err := collect[api.Node](cmd.Context(), a, api.NodeList, func(after string) any { return api.PageRequest{After: after, Limit: 1000} })
			if err != nil {
				return err
			}
			now := time.Now()
			return printList(a, nodes, table[api.Node]{
				columns: []string{"node", "environment", "status", "last report", "facts", "catalog"},
				row: func(n api.Node) []string {
					return []string{n.Name, n.Environment, nodeStatus(n), agoOf(n.ReportAt, now), agoOf(n.FactsAt, now), short(n.CatalogDigest)}
				},
				name:  func(n api.Node) string { return n.Name },
				empty: "No nodes yet. On a node: puppet agent -t --server HOST; then `tutti ca list` shows its request.",
			})
		},
	}
}

// nodeStatus is the word for a node's last run.
func nodeStatus(n api.Node) string {
	words := []string{first(n.Status, "no report")}
	if n.Noop {
		words = append(words, "noop")
	}
	if n.Corrective {
		words = append(words, "corrective")
	}
	return strings.Join(words, ", ")
}

func (a *app) nodeShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NODE", Short: "Show one node", Args: exactly(1), Example: "  tutti node show web-1.example.test",
		RunE: func(cmd *cobra.Command, args []string) error {
			node, err := ask[api.Node](cmd.Context(), a, api.NodeShow, api.NameRequest{Name: args[0]})
			if err != nil {
				return err
			}
			if a.asJSON() {
				return a.printJSON(node)
			}
			now := time.Now()
			return a.printRows(nil, [][]string{
				{"Node", node.Name},
				{"Environment", node.Environment},
				{"Last run", nodeStatus(node)},
				{"Last report", agoOf(node.ReportAt, now) + reference(node.ReportID, "tutti report show ")},
				{"Facts", agoOf(node.FactsAt, now)},
				{"Catalog", agoOf(node.CatalogAt, now) + reference(node.CatalogDigest, "digest ")},
			})
		},
	}
}

// reference is a bracketed pointer to more, when there is more.
func reference(id, how string) string {
	if id == "" {
		return ""
	}
	return "  (" + how + short(id) + ")"
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
			facts, err := ask[api.Facts](cmd.Context(), a, api.NodeFacts, api.NameRequest{Name: args[0]})
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
			if a.asJSON() {
				return a.printJSON(values)
			}
			return a.printRows([]string{"fact", "value"}, flatten(prefix, values, nil))
		},
	}
}

// below walks down a dotted path.
func below(values any, path string) (any, error) {
	for step := range strings.SplitSeq(path, ".") {
		object, ok := values.(map[string]any)
		if !ok {
			return nil, fault.New(fault.NotFound, "there is nothing below %q in %s", step, path)
		}
		if values, ok = object[step]; !ok {
			return nil, fault.New(fault.NotFound, "the node has no fact %s", path)
		}
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

func (a *app) nodePurge() *cobra.Command {
	return &cobra.Command{
		Use: "purge NODE", Short: "Forget a node: its facts, catalog and reports (its certificate stays: see `tutti ca clean`)",
		Args: exactly(1), Example: "  tutti node purge old-1.example.test",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			if err := client.Call(cmd.Context(), api.NodePurge, api.NameRequest{Name: args[0]}, nil); err != nil {
				return err
			}
			a.hint("Node %s is forgotten. If it is gone for good: tutti ca clean %s", args[0], args[0])
			return nil
		},
	}
}

// ask calls an operation that answers with one thing.
func ask[T any](ctx context.Context, a *app, op api.Operation, request any) (T, error) {
	var answer T
	client, err := a.client()
	if err != nil {
		return answer, err
	}
	err = client.Call(ctx, op, request, &answer)
	return answer, err
}

// collect calls a list operation to its end.
func collect[T any](ctx context.Context, a *app, op api.Operation, request func(after string) any) ([]T, error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	var items []T
	err = api.All(ctx, client, op, request, func(item T) error {
		items = append(items, item)
		return nil
	})
	return items, err
}

// short is the beginning of a digest, enough to name it by.
func short(digest string) string {
	if len(digest) > 12 {
		return digest[:12]
	}
	return digest
}
