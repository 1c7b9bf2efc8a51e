package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

func (a *app) catalogHeld() *cobra.Command {
	var request api.CatalogLossRequest
	cmd := &cobra.Command{
		Use: "held", Short: "List the nodes whose newest catalog is held because it lost its resources", Args: exactly(0),
		Long: `List the nodes in live mode whose newest catalog is held: nothing was left of the resources of the one that they have, or less
than the server's setting catalog_hold_below says. They keep what they have until the code is mended, or somebody says that it is meant:
see ` + "`tutti catalog let`" + `. With --warned also those that were given a catalog that lost more than catalog_warn_below allows.

Counted are the resources that an agent applies, without stages and classes.`,
		Example: `  tutti catalog held
  tutti catalog held --environment production --warned
  tutti catalog held -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := ask(cmd.Context(), a, api.CatalogLosses, request)
			if err != nil {
				return wrongInput(err)
			}
			return print.List(a.printer(), list.Items, lossTable(time.Now()))
		},
	}
	cmd.Flags().StringVarP(&request.Environment, "environment", "e", "", "of this environment only")
	cmd.Flags().StringVar(&request.Version, "version", "", "of this version of the code only, or of those that begin so")
	cmd.Flags().BoolVar(&request.Warned, "warned", false, "also those that were given with a warning")
	return cmd
}

func lossTable(now time.Time) print.Table[api.CatalogLoss] {
	return print.Table[api.CatalogLoss]{
		Columns: []string{"node", "state", "resources", "environment", "version", "has", "since"},
		Row: func(l api.CatalogLoss) []string {
			state := "warned"
			if l.Held {
				state = "held"
			}
			return []string{
				l.Node, state, fmt.Sprintf("%d of %d", l.Left, l.Was), l.Environment, short(l.Version), short(l.VersionThen), print.Ago(l.At, now),
			}
		},
		Name:  func(l api.CatalogLoss) string { return l.Node },
		Empty: "No catalog is held.",
	}
}

func (a *app) catalogLet() *cobra.Command {
	var version string
	cmd := &cobra.Command{
		Use: "let [NODE]", Short: "Let a held catalog go to its node, or all that are held of a version", Args: cobra.MaximumNArgs(1),
		Long: `Say that a catalog which lost its resources is meant: its node is given it. For NODE that is the catalog that is held now: if the
code, the facts or the groups give it another one that lost as much, that is held again. With --version it is whatever that version of the
code gives to any node. See what would happen first: tutti catalog diff NODE --with DIGEST.`,
		Example: `  tutti catalog let web-1.example.test
  tutti catalog let --version 3f9c2a71b0de -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (version != "") {
				return usageError{errors.New("name a node or a --version: exactly one of them")}
			}
			client, err := a.client()
			if err != nil {
				return err
			}
			let, err := letGo(cmd.Context(), client, version, args)
			if err != nil {
				return wrongInput(err)
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(let)
			}
			for _, node := range let.Nodes {
				a.hint("%s may have its newest catalog", node)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&version, "version", "", "let go all that is held of this version of the code: its id, or six digits of it at least")
	return cmd
}

// letGo lets go what a version gave to any node, or what one node was given.
func letGo(ctx context.Context, client *api.Client, version string, nodes []string) (api.CatalogLet, error) {
	if len(nodes) == 1 {
		return api.NodeLet.Call(ctx, client, api.NameRequest{Name: nodes[0]})
	}
	return api.CatalogLetGo.Call(ctx, client, api.CatalogLetRequest{Version: version})
}
