package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
)

// maxCompletions is how many values a completion asks for.
const maxCompletions = 200

// completeNodes completes names of nodes, after a comma, too.
func completeNodes(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		if strings.HasPrefix(begun, "@") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		before, last := "", begun
		if i := strings.LastIndex(begun, ","); i >= 0 {
			before, last = begun[:i+1], begun[i+1:]
		}
		request := api.NodeListRequest{Limit: maxCompletions}
		if last != "" {
			request.Where = `certname ~ "^` + strings.ReplaceAll(regexp.QuoteMeta(last), `\`, `\\`) + `"`
		}
		list, err := ask(completing(cmd), a, api.NodeList, request)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, n := range list.Items {
			names = append(names, before+n.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeTask completes names of tasks.
func completeTask(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		environment, _ := cmd.Flags().GetString("environment")
		list, err := ask(completing(cmd), a, api.TaskList, api.EnvironmentRequest{Environment: environment})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, t := range list.Items {
			if strings.HasPrefix(t.Name, begun) && !t.Private {
				names = append(names, t.Name+"\t"+taskSummary(t))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeJob completes ids of jobs: of those that go on, if active is set, else of the newest.
func completeJob(active bool) func(*app) cobra.CompletionFunc {
	return func(a *app) cobra.CompletionFunc {
		return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			request := api.JobListRequest{Limit: 50}
			if active {
				request.State = "active"
			}
			list, err := ask(completing(cmd), a, api.JobList, request)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var ids []string
			for _, j := range list.Items {
				if strings.HasPrefix(j.ID, begun) {
					ids = append(ids, j.ID+"\t"+jobText(j)+", "+j.State)
				}
			}
			return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		}
	}
}
