package cli

import (
	"context"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

var codeSpread = verb[api.EnvironmentRequest]{
	use: "spread [ENVIRONMENT]", short: "Show how many nodes of each group have which version of the code",
	prints: aList, args: atMostOne,
	long: `Show how many nodes of each group may have a catalog of which version of an environment's code, production if none is named: one look
says whether a fix is everywhere. Versions that were released from a preview and never deployed come first, then the others, newest first.

In live mode a node has the current version when its catalog stands for that, also if it was compiled of an earlier one that differs in
nothing that the node read. In released mode a node has the version of its newest generation. The nodes that are counted are listed by
"tutti node list --environment ENVIRONMENT --version VERSION".`,
	example: "  tutti code spread\n  tutti code spread staging -o json",
	run: func(ctx context.Context, c *call, in *api.EnvironmentRequest) error {
		in.Environment = "production"
		if len(c.args) > 0 {
			in.Environment = c.args[0]
		}
		return showAnswer(ctx, c.app, api.VersionSpread, *in, func(to print.Printer, s api.CodeSpread) error {
			return print.List(to, sharesOf(s), print.Table[codeShare]{
				Columns: []string{"group", "version", "stands", "nodes", "of"},
				Row: func(r codeShare) []any {
					return []any{r.group, print.ID(r.version), print.State(r.stands), r.nodes, r.of}
				},
				Name:  func(r codeShare) string { return strings.TrimSpace(r.group) },
				Empty: "No node is in the environment " + s.Environment + ".",
			})
		})
	},
}

// codeShare is how many nodes of a group have a version.
type codeShare struct {
	group, version string
	stands         string // current, older, previewed (released from a preview, never deployed), other (not told apart), none
	nodes, of      int
}

func sharesOf(s api.CodeSpread) (rows []codeShare) {
	for _, g := range s.Groups {
		add := func(version, stands string, nodes int) {
			if nodes > 0 {
				rows = append(rows, codeShare{strings.Repeat("  ", g.Depth) + g.Group, version, stands, nodes, g.Nodes})
			}
		}
		for i, v := range s.Versions {
			stands := "older"
			switch {
			case v.Current:
				stands = "current"
			case v.DeployedAt == nil:
				stands = "previewed"
			}
			add(v.ID, stands, g.Counts[i])
		}
		add("", "other", g.Other)
		add("", "none", g.None)
	}
	return rows
}
