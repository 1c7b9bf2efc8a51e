package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

func (a *app) taskRun() *cobra.Command {
	o, p := orderFlags{}, paramFlags{}
	var environment string
	var noop bool
	cmd := &cobra.Command{
		Use: "run TASK [NAME=VALUE]...", Short: "Run a task on nodes", Args: atLeastOne("which task?"),
		Long: `Run a task of the deployed code on nodes. "tutti task show TASK" lists its parameters; they are checked before
anything is sent.

` + paramHelp + `

` + targetHelp + `

` + exitHelp,
		Example: `  tutti task run package name=openssl action=status --targets web-1.example.test
  tutti task run service --params @restart.json --group 'Web servers' --concurrency 10
  tutti task run db::passwd user=app --ask password --targets db-1.example.test
  echo '{"user": "app", "password": "s"}' | tutti task run db::passwd --params - --all`,
		ValidArgsFunction: completeTaskRun(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if stdinTwice(o, p) {
				return usageError{fault.New(fault.Invalid, "standard input can be the nodes or the parameters, not both: put one of them into a file")}
			}
			t, err := ask(cmd.Context(), a, api.TaskShow, api.TaskRequest{Environment: environment, Task: args[0]})
			if err != nil {
				return wrongTask(err)
			}
			given, err := readParams(a, args[1:], p, t)
			if err != nil {
				return err
			}
			request := api.JobTaskRequest{Environment: environment, Task: t.Name, Texts: given.texts, Noop: noop}
			if request.Params, err = given.json(); err != nil {
				return err
			}
			return launch(a, cmd, o, newJob{
				does: "task " + t.Name,
				send: ordered(api.JobTask, func(order api.JobOrder) api.JobTaskRequest {
					request.JobOrder = order
					return request
				}),
			})
		},
	}
	addOrderFlags(a, cmd, &o)
	p.add(cmd)
	cmd.Flags().StringVarP(&environment, "environment", "e", "production", "environment whose code has the task")
	cmd.Flags().BoolVar(&noop, "noop", false, "let the task change nothing; not every task can")
	return cmd
}

// wrongTask says of a task or environment that is not there that it was misspelt.
func wrongTask(err error) error {
	if fault.Is(err, fault.NotFound) {
		return usageError{err}
	}
	return wrongInput(err)
}

// stdinTwice says whether standard input would be read for two things.
func stdinTwice(o orderFlags, p paramFlags) bool {
	n := 0
	for _, word := range slices.Concat(o.names, o.nodes, o.exclude, p.params) {
		if word == "-" {
			n++
		}
	}
	return n > 1
}

// completeTaskRun completes the task, then the names of its parameters.
func completeTaskRun(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		environment, _ := cmd.Flags().GetString("environment")
		if len(args) == 0 {
			return completeTask(a)(cmd, args, begun)
		}
		t, err := ask(completing(cmd), a, api.TaskShow, api.TaskRequest{Environment: environment, Task: args[0]})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, p := range t.Parameters {
			given := slices.ContainsFunc(args[1:], func(arg string) bool { return strings.HasPrefix(arg, p.Name+"=") })
			if strings.HasPrefix(p.Name, begun) && !given && !p.Sensitive {
				names = append(names, p.Name+"=\t"+p.Type)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completing is the context of a completion, which cobra may not have set.
func completing(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}
