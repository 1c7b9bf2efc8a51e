package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// completeContext offers the names of contexts; no server is asked.
func completeContext(a *app) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		all, err := a.readContexts()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, c := range all.Contexts {
			if strings.HasPrefix(c.Name, begun) {
				names = append(names, c.Name+"\t"+c.Server)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
