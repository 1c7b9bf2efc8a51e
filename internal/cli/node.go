package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fleet"
)

var nodeCommand = asking{noun{
	use: "node", short: "See what is known of nodes",
	verbs: []declared{nodeList, nodeSummary, nodeShow, nodeWhy, nodeGraph, otherName{nodeFacts}, nodeDeactivate, nodePurge},
}}

var nodeList = verb[api.NodeListRequest]{
	use: "list", short: "List nodes with the state of their last run",
	prints: aList,
	long: `List nodes with the state of their last run: all, or those that everything holds for
that is given.

CONNECTED says whether orders reach a node: yes; no, its agent is away; or never, if no
tutti agent or pxp-agent has ever connected from it. SINCE is since when. A node that
runs puppet agent alone never connects.

--where takes a condition in PQL, over the fields of nodes (certname,
latest_report_status, report_timestamp, ...) and of the inventory (facts.PATH,
trusted.PATH, environment). In it, resources{...}, facts{...}, events{...} ask for
what belongs to the node. Deactivated nodes are listed, too; node_state = "active"
leaves them out.`,
	example: `  tutti node list
  tutti node list --where 'facts.os.family = "Debian" and facts.processors.count >= 4'
  tutti node list --where 'resources{type = "Class" and title = "Role::Web"}' -o name
  tutti node list --group 'Web servers' --status failed
  tutti node list --environment production -o csv
  tutti node list --not-connected`,
	flags: func(f flagSet, in *api.NodeListRequest) {
		f.StringVar(&in.Where, "where", "", "only nodes that this PQL condition holds for")
		f.StringVar(&in.Group, "group", "", "only nodes in this group (name or id)")
		f.StringVarP(&in.Environment, "environment", "e", "", "only nodes of this environment")
		f.StringVar(&in.Version, "version", "",
			"only nodes that may have a catalog of this version of the environment's code, as tutti code spread counts them; none: no catalog")
		f.StringVar(&in.Status, "status", "",
			"only nodes whose last run was failed, changed or unchanged, or none; failed also where the newest catalog does not compile")
		f.StringVar(&in.State, "state", "", "only nodes whose last run was failed, corrective, changed, pending, unchanged or none; commas join several")
		f.StringVar(&in.Order, "order", "", "order: name, reported (the longest ago first) or state (the worst first); -reported and the like turn it round")
		connection := func(flag, word, usage string) {
			f.BoolFunc(flag, usage, func(value string) error {
				if value != "true" {
					return errors.New("it takes no value; there are --connected, --not-connected and --never-connected")
				}
				in.Connected = word
				return nil
			})
		}
		connection("connected", "yes", "only nodes whose agent is connected now")
		connection("not-connected", "no", "only nodes whose agent is not connected now")
		connection("never-connected", "never", "only nodes that never had an agent connected")
		f.cmd.MarkFlagsMutuallyExclusive("connected", "not-connected", "never-connected")
		f.completes("where", completeCondition)
		f.completes("group", completeGroup)
		f.offers("status", "failed", "changed", "unchanged", "none")
		f.offers("state", "failed", "corrective", "changed", "pending", "unchanged", "none")
		f.offers("order", "name", "reported", "state", "-name", "-reported", "-state")
	},
	run: func(ctx context.Context, c *call, in *api.NodeListRequest) error {
		if _, err := readCondition(in.Where); err != nil {
			return err
		}
		return pages(api.NodeList, nextNodes, nodeTable)(ctx, c, in)
	},
}

func nextNodes(in *api.NodeListRequest, after string, limit int) { in.After, in.Limit = after, limit }

func nodeTable(in *api.NodeListRequest) print.Table[api.Node] {
	empty := "No nodes yet. `tutti ca token` prints the command that joins one, with Puppet or without."
	if *in != (api.NodeListRequest{}) {
		empty = "No such nodes."
	}
	return print.Table[api.Node]{
		Columns: []string{"node", "environment", "status", "last report", "facts", "catalog", "connected", "since", "agent"},
		Spare:   []string{"catalog", "facts", "since", "environment", "agent"},
		Row: func(n api.Node) []any {
			connected, since := connectedText(n)
			return []any{
				n.Name, n.Environment, print.State(nodeStatus(n)), n.ReportAt, n.FactsAt,
				print.ID(n.CatalogDigest), connected, since, clientOf(n),
			}
		},
		Name:  func(n api.Node) string { return n.Name },
		Empty: empty,
	}
}

// connectedText is whether a node's agent is connected, and since when it is, or is not.
func connectedText(n api.Node) (word string, since *time.Time) {
	switch {
	case n.Connected != nil:
		return "yes", &n.Connected.Since
	case n.Certificate != "" && n.LastConnected != nil:
		return "no, " + n.Certificate, &n.LastConnected.Until
	case n.Certificate != "":
		return "no, " + n.Certificate, nil
	case n.LastConnected != nil:
		return "no", &n.LastConnected.Until
	}
	return "never", nil
}

// clientOf is which agent is connected, or was.
func clientOf(n api.Node) string {
	switch {
	case n.Connected != nil:
		return strings.TrimSpace(n.Connected.Client + " " + n.Connected.ClientVersion)
	case n.LastConnected != nil:
		return strings.TrimSpace(n.LastConnected.Client + " " + n.LastConnected.ClientVersion)
	}
	return ""
}

// nodeStatus is the word for a node's last run. That its catalog does not compile comes first: it is worse than what any run of an older one was, and
// the end of a narrow cell is cut.
func nodeStatus(n api.Node) string {
	words := []string{first(n.Status, neverRun(n))}
	if n.CompileError != nil {
		words = []string{"does not compile", words[0]}
	}
	switch {
	case n.Pending > 0:
		words = append(words, wouldChange(n.Pending))
	case n.Noop:
		words = append(words, "noop")
	}
	if n.CachedCatalog {
		words = append(words, "cached catalog")
	}
	if n.Certificate != "" {
		words = append(words, "certificate "+n.Certificate)
	}
	if n.Corrective {
		words = append(words, "corrective")
	}
	if n.DeactivatedAt != nil {
		words = append(words, "deactivated")
	}
	if n.ExpiredAt != nil {
		words = append(words, "expired")
	}
	return strings.Join(words, ", ")
}

// neverRun is the word for a node without a report. One that has no catalog either has joined, and Puppet has never run on it.
func neverRun(n api.Node) string {
	if n.CatalogAt == nil && n.CompileError == nil {
		return "joined, never run"
	}
	return "no report"
}

// compileErrorOf is why a node's catalog does not compile, with its place.
func compileErrorOf(n api.Node) string {
	if n.CompileError == nil {
		return ""
	}
	return fleet.Placed(n.CompileError.File, n.CompileError.Line, n.CompileError.Message)
}

var nodeShow = verb[api.NameRequest]{
	use: "show NODE", short: "Show one node", example: "  tutti node show web-1.example.test",
	into: byName,
	run: func(ctx context.Context, c *call, in *api.NameRequest) error {
		return showAnswer(ctx, c.app, api.NodeShow, *in, print.Rows(func(node api.Node) [][]string {
			rows := nodeRows(node)
			// Who may not see certificates sees the rest.
			if cert, err := ask(ctx, c.app, api.CertificateShow, *in); err == nil {
				rows = slices.Insert(rows, 1, []string{"Certificate", certificateState(cert, time.Now())})
			}
			return rows
		}))
	},
}

// certificateState is how a node's certificate stands, in words.
func certificateState(c api.Certificate, now time.Time) string {
	switch {
	case c.NotAfter == nil:
		return c.State
	case c.State == "signed" && c.NotAfter.Before(now):
		return "expired on " + dateOf(c.NotAfter)
	case c.State == "signed":
		return "good until " + dateOf(c.NotAfter)
	}
	return c.State
}

func nodeRows(node api.Node) [][]string {
	now := time.Now()
	return [][]string{
		{"Node", node.Name},
		{"Environment", node.Environment},
		{"Agent", agentOf(node, now)},
		{"Platform", platformOf(node.Agent)},
		{"Modules", modulesOf(node.Agent)},
		{"Last run", nodeStatus(node)},
		{"Compile error", compileErrorOf(node)},
		{"Last report", print.AgoOf(node.ReportAt, now) + reference(node.ReportID, "tutti report show ")},
		{"Facts", print.AgoOf(node.FactsAt, now)},
		{"Delivery", deliveryOf(node.Delivery)},
		{"Lost", lossText(node.Delivery)},
		{"Catalog", print.AgoOf(node.CatalogAt, now) + reference(node.CatalogDigest, "digest ")},
	}
}

// agentOf tells of the agent's connection.
func agentOf(n api.Node, now time.Time) string {
	c := n.Connected
	if last := n.LastConnected; c == nil && last != nil {
		return fmt.Sprintf("not connected since %s  (%s)", print.Ago(last.Until, now), strings.TrimSpace(last.Client+" "+last.ClientVersion))
	}
	if c == nil {
		return "not connected: no tutti agent or pxp-agent has ever connected from this node"
	}
	text := fmt.Sprintf("connected to %s, %s  (%s)", c.Server, print.Ago(c.Since, now),
		strings.Join(strings.Fields(c.Protocol+" "+c.Client+" "+c.ClientVersion), " "))
	if c.Shared != "" {
		text += "; " + c.Shared + ": give each a certificate of its own"
	}
	return text
}

// platformOf is which agent a node has, and what for.
func platformOf(a *api.AgentTold) string {
	if a == nil {
		return ""
	}
	return fmt.Sprintf("tutti agent %s for %s/%s", a.Version, a.OS, a.Arch)
}

// modulesOf is the modules of a node with their versions; what it cannot use is marked.
func modulesOf(a *api.AgentTold) string {
	if a == nil {
		return ""
	}
	if len(a.Modules) == 0 {
		return "not told yet"
	}
	names := make([]string, len(a.Modules))
	for i, m := range a.Modules {
		names[i] = strings.TrimSpace(m.Name + " " + m.Version)
		if m.Problem != "" {
			names[i] += " (" + m.Problem + ")"
		}
	}
	return strings.Join(names, ", ")
}

// lossText tells of a newest catalog that lost resources.
func lossText(d *api.Delivered) string {
	if d == nil || d.Loss == nil {
		return ""
	}
	return d.Loss.Text
}

// deliveryOf tells what a node may have, and whether it applied that.
func deliveryOf(d *api.Delivered) string {
	if d == nil {
		return ""
	}
	text := modeText(d.Mode, d.Generation) + ", " + modeFrom(d.ModeFrom, d.ModeGroup)
	if d.Pinned {
		text += ", pinned"
	}
	return text + "  (" + deliveryState(d.State) + ")"
}

// reference is a bracketed pointer to more, when there is more.
func reference(id, how string) string {
	if id == "" {
		return ""
	}
	return "  (" + how + short(id) + ")"
}

var nodeDeactivate = verb[api.NameRequest]{
	use: "deactivate NODE", short: "Say that a node is gone: queries leave it out, and it is purged later (node_purge_ttl) unless it comes back",
	example: "  tutti node deactivate old-1.example.test",
	into:    byName,
	run: does(api.NodeDeactivate, func(in *api.NameRequest) string {
		return fmt.Sprintf("Node %s is deactivated. Its next facts or report make it active again; to keep it out: tutti ca revoke %s", in.Name, in.Name)
	}),
}

var nodePurge = verb[api.NameRequest]{
	use: "purge NODE", short: "Forget a node: its facts, catalog and reports (its certificate stays: see `tutti ca clean`)",
	destroys: lossOfNode,
	example:  "  tutti node purge old-1.example.test",
	into:     byName,
	run: does(api.NodePurge, func(in *api.NameRequest) string {
		return fmt.Sprintf("Node %s is forgotten. If it is gone for good: tutti ca clean %s", in.Name, in.Name)
	}),
}

// short is the beginning of a digest, enough to name it by.
func short(digest string) string {
	if len(digest) > 12 {
		return digest[:12]
	}
	return digest
}
