package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

var groupCommand = asking{noun{
	use: "group", short: "Decide by groups which environment, classes and values nodes get",
	verbs: []declared{groupList, groupShow, groupCreate, groupEdit, groupDelete, groupExplain, groupApply, groupExport},
}}

var groupList = verb[api.Nothing]{
	use: "list", short: "List groups as a tree", example: "  tutti group list\n  tutti group list -o json",
	prints: aList,
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		groups, err := allGroups(ctx, c.app)
		if err != nil {
			return err
		}
		depths := depthsOf(groups)
		hintDoubts(c.app, groups)
		return print.List(c.printer(), groups, print.Table[api.Group]{
			Columns: []string{"group", "environment", "classes", "pinned", "rule"},
			Row: func(g api.Group) []any {
				return []any{
					indent(g.Name, depths[g.ID]), groupEnvironment(g), len(g.Classes), len(g.Nodes),
					first(defective(g), g.RuleText),
				}
			},
			Name: func(g api.Group) string { return g.Name },
		})
	},
}

// shownDoubts is how many warnings a list of groups shows.
const shownDoubts = 20

// hintDoubts says what groups name and neither code nor nodes have. Programs find it in the groups.
func hintDoubts(a *app, groups []api.Group) {
	if a.printer().ForPrograms() {
		return
	}
	said := 0
	for _, g := range groups {
		for _, doubt := range g.Warnings {
			if said++; said <= shownDoubts {
				a.hint("warning: group %s: %s", g.Name, print.OneLine(doubt))
			}
		}
	}
	if said > shownDoubts {
		a.hint("and %d warnings more; tutti group list -o json has all", said-shownDoubts)
	}
}

func allGroups(ctx context.Context, a *app) ([]api.Group, error) {
	list, err := ask(ctx, a, api.GroupList, api.Nothing{})
	return list.Items, err
}

func defective(g api.Group) string {
	if g.Defect == "" {
		return ""
	}
	return "cannot be used: " + g.Defect
}

// depthsOf says how deep each group is; parents come before children.
func depthsOf(groups []api.Group) map[string]int {
	depths := map[string]int{}
	for _, g := range groups {
		if g.ParentID != g.ID {
			depths[g.ID] = depths[g.ParentID] + 1
		}
	}
	return depths
}

func indent(name string, depth int) string { return strings.Repeat("· ", depth) + name }

func groupEnvironment(g api.Group) string {
	if g.EnvironmentGroup {
		return g.Environment + " (decides)"
	}
	return g.Environment
}

type groupShowInput struct{ nodes bool }

var groupShow = verb[groupShowInput]{
	use: "show GROUP", short: "Show a group: what it matches and what it gives, or which nodes are in it",
	prints:   aList,
	example:  "  tutti group show 'Web servers'\n  tutti group show 'Web servers' -o json\n  tutti group show 'Web servers' --nodes -o name",
	complete: completeGroup,
	flags: func(f flagSet, in *groupShowInput) {
		f.BoolVar(&in.nodes, "nodes", false, "list the known nodes that are in the group; tutti node list --group GROUP shows more of each")
	},
	run: func(ctx context.Context, c *call, in *groupShowInput) error {
		if in.nodes {
			return pages(api.GroupNodes, nextGroupNodes, groupNodes)(ctx, c, &api.GroupNodesRequest{Group: c.args[0]})
		}
		return showAnswer(ctx, c.app, api.GroupShow, api.GroupRequest{Group: c.args[0]}, printGroup)
	},
}

func nextGroupNodes(in *api.GroupNodesRequest, after string, limit int) {
	in.After, in.Limit = after, limit
}

// groupNodes are a group's nodes as the server finds them.
func groupNodes(*api.GroupNodesRequest) print.Table[api.GroupNode] {
	return print.Table[api.GroupNode]{
		Columns: []string{"node", "pinned"},
		Row: func(n api.GroupNode) []any {
			if n.Pinned {
				return []any{n.Name, "pinned"}
			}
			return []any{n.Name, ""}
		},
		Name:  func(n api.GroupNode) string { return n.Name },
		Empty: "No known node is in the group. A group without rule and pins has none of its own.",
	}
}

// completeGroup offers the names of groups, if the server answers.
func completeGroup(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && cmd.Flags().Lookup("group") == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		groups, err := allGroups(completing(cmd), a)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, g := range groups {
			if strings.HasPrefix(g.Name, toComplete) {
				names = append(names, g.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func printGroup(to print.Printer, g api.Group) error {
	rows := [][]string{
		{"Group", g.Name},
		{"Id", g.ID},
		{"Parent", g.Parent},
		{"Description", g.Description},
		{"Environment", groupEnvironment(g)},
		{"Rule", g.RuleText},
		{"Pinned nodes", strings.Join(g.Nodes, " ")},
		{"Changed", print.AgoOf(g.ChangedAt, time.Now()) + by(g.ChangedBy) + fmt.Sprintf(", revision %d", g.Revision)},
	}
	if g.Defect != "" {
		rows = append(rows, []string{"Defect", g.Defect})
	}
	for _, class := range sorted(g.Classes) {
		rows = append(rows, []string{"Class", class})
		rows = append(rows, valueRows("  Parameter", class+"::", g.Classes[class])...)
	}
	rows = append(rows, valueRows("Variable", "$", g.Variables)...)
	for _, class := range sorted(g.Data) {
		rows = append(rows, valueRows("Data", class+"::", g.Data[class])...)
	}
	for _, doubt := range g.Warnings {
		to.Hint("warning: %s", print.OneLine(doubt))
	}
	return to.Rows(nil, rows)
}

func by(actor string) string {
	if actor == "" {
		return ""
	}
	return " by " + actor
}

func valueRows(label, prefix string, values map[string]json.RawMessage) (rows [][]string) {
	for _, name := range sorted(values) {
		rows = append(rows, []string{label, prefix + name + " = " + string(values[name])})
	}
	return rows
}

func sorted[V any](values map[string]V) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var groupDelete = verb[api.GroupDeleteRequest]{
	use: "delete GROUP", short: "Delete a group that has no others below it", example: "  tutti group delete 'Web servers'",
	destroys: lossOfGroup,
	complete: completeGroup,
	into:     func(in *api.GroupDeleteRequest, args []string) { in.Group = args[0] },
	run:      does(api.GroupDelete, func(in *api.GroupDeleteRequest) string { return fmt.Sprintf("Group %q is deleted", in.Group) }),
}
