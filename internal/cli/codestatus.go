package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
)

func (a *app) codeStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status [ENVIRONMENT]", Short: "Show how many nodes have a catalog of the current version, and what is wrong with the others", Args: cobra.MaximumNArgs(1),
		Long: `Show how the nodes of an environment, production if none is named, stand to its current version. Catalogs are compiled
ahead: a node is current when its catalog stands for the version, also if it was compiled of an earlier one that differs in
nothing that the node read. A node whose code does not compile keeps its last good catalog until it asks for one itself: then
it is told the error, and applies the catalog that it has cached, as agents do.`,
		Example: `  tutti code status
  tutti code status testing -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			env := "production"
			if len(args) > 0 {
				env = args[0]
			}
			s, err := ask[api.CodeStatus](cmd.Context(), a, api.EnvironmentStatus, api.EnvironmentRequest{Environment: env})
			if err != nil {
				return err
			}
			if a.asJSON() {
				return a.printJSON(s)
			}
			if _, err := fmt.Fprintf(a.system.Out, "%s is version %s, deployed %s: %d nodes, %d current, %d waiting, %d failed, %d unknown\n",
				s.Environment, short(s.Version), ago(s.DeployedAt, time.Now()), s.Nodes, s.Current, s.Waiting, s.Failed, s.Unknown); err != nil {
				return err
			}
			if err := a.printVerified(s); err != nil || len(s.Errors) == 0 {
				return err
			}
			return printList(a, s.Errors, codeErrors())
		},
	}
}

func codeErrors() table[api.CodeError] {
	return table[api.CodeError]{
		columns: []string{"nodes", "where", "error", "on"},
		row: func(e api.CodeError) []string {
			where := e.File
			if e.Line > 0 {
				where = fmt.Sprintf("%s:%d", e.File, e.Line)
			}
			names := strings.Join(e.Names, ", ")
			if more := e.Nodes - len(e.Names); more > 0 {
				names += fmt.Sprintf(" and %d more", more)
			}
			return []string{fmt.Sprint(e.Nodes), where, e.Message, names}
		},
		name:  func(e api.CodeError) string { return e.Message },
		empty: "No errors.",
	}
}
