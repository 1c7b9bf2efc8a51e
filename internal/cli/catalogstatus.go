package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// deliveryStates is the states of delivery, as they are counted for people.
var deliveryStates = []string{"current", "behind", "foreign", "unknown"}

type catalogStatusInput struct {
	request  api.NodeListRequest
	exitCode bool
}

var catalogStatus = verb[catalogStatusInput]{
	use: "status", short: "Count the nodes that have applied the catalog that they may have, and name the others",
	prints: aList,
	long: `Count the nodes that have applied the catalog that they may have (current), that applied what they had before (behind), that applied
a catalog that they were not given here (foreign), and that did not say yet (unknown); those whose last run failed; and those whose newest
catalog does not compile. Nodes with which anything of this is wrong are named. Deactivated nodes are left out.`,
	example: "  tutti catalog status\n  tutti catalog status --group 'Web servers' --exit-code",
	flags: func(f flagSet, in *catalogStatusInput) {
		f.StringVar(&in.request.Where, "where", "", "only nodes that this PQL condition holds for")
		f.StringVar(&in.request.Group, "group", "", "only nodes in this group (name or id)")
		f.StringVarP(&in.request.Environment, "environment", "e", "", "only nodes of this environment")
		f.BoolVar(&in.exitCode, "exit-code", false, "end with exit code 3 if a node is not current, its last run failed, or its newest catalog does not compile")
		f.completes("where", completeCondition)
		f.completes("group", completeGroup)
	},
	run: func(ctx context.Context, c *call, in *catalogStatusInput) error {
		if _, err := readCondition(in.request.Where); err != nil {
			return err
		}
		nodes, err := deliveries(ctx, c.app, in.request)
		if err != nil {
			return err
		}
		wrong := slices.DeleteFunc(slices.Clone(nodes), isGreen)
		if c.printer().ForPrograms() {
			err = c.printer().Thing(api.List[api.Node]{Items: nodes})
		} else if err = c.printer().Linef("%s", deliveryCounts(nodes)); err == nil && len(wrong) > 0 {
			err = print.List(c.printer(), wrong, deliveryTable())
		}
		if err == nil && in.exitCode && len(wrong) > 0 {
			err = errDiffers
		}
		return err
	},
}

// deliveries reads how the nodes of a request stand to what they may have, without those that are deactivated.
func deliveries(ctx context.Context, a *app, request api.NodeListRequest) (nodes []api.Node, err error) {
	request.Delivery = true
	all, err := some(ctx, a, api.NodeList, request, nextNodes, 0)
	for _, n := range all {
		if n.DeactivatedAt == nil && n.ExpiredAt == nil && n.Delivery != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes, err
}

// isGreen says that a node has applied what it may have, that its last run did not fail, and that its newest catalog compiles.
func isGreen(n api.Node) bool {
	return n.Delivery.State == "current" && n.Status != "failed" && n.CompileError == nil
}

// deliveryCounts is how nodes stand, in a line.
func deliveryCounts(nodes []api.Node) string {
	counts, released, failed, broken := map[string]int{}, 0, 0, 0
	for _, n := range nodes {
		counts[n.Delivery.State]++
		if n.Delivery.Mode == "released" {
			released++
		}
		if n.Status == "failed" {
			failed++
		}
		if n.CompileError != nil {
			broken++
		}
	}
	words := make([]string, len(deliveryStates))
	for i, state := range deliveryStates {
		words[i] = fmt.Sprintf("%d %s", counts[state], state)
	}
	text := fmt.Sprintf("%s, %d of them in released mode: %s; %s failed in the last run", fault.Count(len(nodes), "node"), released, strings.Join(words, ", "),
		fault.Count(failed, "node"))
	switch broken {
	case 0:
		return text
	case 1:
		return text + "; 1 does not compile"
	}
	return fmt.Sprintf("%s; %d do not compile", text, broken)
}

func deliveryTable() print.Table[api.Node] {
	return print.Table[api.Node]{
		Columns: []string{"node", "mode", "delivery", "last run"},
		Row: func(n api.Node) []any {
			return []any{n.Name, modeText(n.Delivery.Mode, n.Delivery.Generation), print.State(n.Delivery.State), print.State(nodeStatus(n))}
		},
		Name: func(n api.Node) string { return n.Name },
	}
}
