package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

var catalogHeld = verb[api.CatalogLossRequest]{
	use: "held", short: "List the nodes whose newest catalog is held because it lost its resources",
	prints: aList,
	long: `List the nodes in live mode whose newest catalog is held: nothing was left of the resources of the one that they have, or less
than the server's setting catalog_hold_below says. They keep what they have until the code is mended, or somebody says that it is meant:
see ` + "`tutti catalog let`" + `. With --warned also those that were given a catalog that lost more than catalog_warn_below allows.

Counted are the resources that an agent applies, without stages and classes.`,
	example: `  tutti catalog held
  tutti catalog held --environment production --warned
  tutti catalog held -o json`,
	flags: func(f flagSet, in *api.CatalogLossRequest) {
		f.StringVarP(&in.Environment, "environment", "e", "", "of this environment only")
		f.StringVar(&in.Version, "version", "", "of this version of the code only, or of those that begin so")
		f.BoolVar(&in.Warned, "warned", false, "also those that were given with a warning")
	},
	run: lists(api.CatalogLosses, lossTable),
}

func lossTable(*api.CatalogLossRequest) print.Table[api.CatalogLoss] {
	return print.Table[api.CatalogLoss]{
		Columns: []string{"node", "state", "resources", "environment", "version", "has", "since"},
		Spare:   []string{"has", "version", "environment"},
		Row: func(l api.CatalogLoss) []any {
			state := "warned"
			if l.Held {
				state = "held"
			}
			return []any{
				l.Node, print.State(state), fmt.Sprintf("%d of %d", l.Left, l.Was), l.Environment, print.ID(l.Version), print.ID(l.VersionThen), l.At,
			}
		},
		Name:  func(l api.CatalogLoss) string { return l.Node },
		Empty: "No catalog is held.",
	}
}

type catalogLetInput struct{ version string }

var catalogLet = verb[catalogLetInput]{
	use: "let [NODE]", short: "Let a held catalog go to its node, or all that are held of a version", args: atMostOne,
	long: `Say that a catalog which lost its resources is meant: its node is given it. For NODE that is the catalog that is held now: if the
code, the facts or the groups give it another one that lost as much, that is held again. With --version it is whatever that version of the
code gives to any node. See what would happen first: tutti catalog diff NODE --with DIGEST.`,
	example: `  tutti catalog let web-1.example.test
  tutti catalog let --version 3f9c2a71b0de -o json`,
	flags: func(f flagSet, in *catalogLetInput) {
		f.StringVar(&in.version, "version", "", "let go all that is held of this version of the code: its id, or six digits of it at least")
	},
	run: func(ctx context.Context, c *call, in *catalogLetInput) error {
		if (len(c.args) == 1) == (in.version != "") {
			return usageError{errors.New("name a node or a --version: exactly one of them")}
		}
		client, err := c.client()
		if err != nil {
			return err
		}
		let, err := letGo(ctx, client, in.version, c.args)
		if err != nil {
			return err
		}
		return print.One(c.printer(), let, func(to print.Printer, let api.CatalogLet) error {
			for _, node := range let.Nodes {
				to.Hint("%s may have its newest catalog", node)
			}
			return nil
		})
	},
}

// letGo lets go what a version gave to any node, or what one node was given.
func letGo(ctx context.Context, client *api.Client, version string, nodes []string) (api.CatalogLet, error) {
	if len(nodes) == 1 {
		return api.NodeLet.Call(ctx, client, api.NameRequest{Name: nodes[0]})
	}
	return api.CatalogLetGo.Call(ctx, client, api.CatalogLetRequest{Version: version})
}
