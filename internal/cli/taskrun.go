package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

type taskRunInput struct {
	o           orderFlags
	p           paramFlags
	environment string
	noop        bool
}

var taskRun = verb[taskRunInput]{
	use: "run TASK [NAME=VALUE]...", short: "Run a task on nodes", args: atLeastOne("which task?"),
	prints: results,
	long: `Run a task of the deployed code on nodes. "tutti task show TASK" lists its parameters; they are checked before
anything is sent.

` + paramHelp + `

` + targetHelp + `

` + exitHelp,
	example: `  tutti task run package name=openssl action=status --targets web-1.example.test
  tutti task run service --params @restart.json --group 'Web servers' --concurrency 10
  tutti task run db::passwd user=app --ask password --targets db-1.example.test
  echo '{"user": "app", "password": "s"}' | tutti task run db::passwd --params - --all`,
	complete: completeTaskRun,
	flags: func(f flagSet, in *taskRunInput) {
		addOrderFlags(f, &in.o)
		in.p.add(f)
		f.StringVarP(&in.environment, "environment", "e", "production", "environment whose code has the task")
		f.BoolVar(&in.noop, "noop", false, "let the task change nothing; not every task can")
	},
	run: func(ctx context.Context, c *call, in *taskRunInput) error {
		if stdinTwice(in.o, in.p) {
			return usageError{fault.New(fault.Invalid, "standard input can be the nodes or the parameters, not both: put one of them into a file")}
		}
		t, err := ask(ctx, c.app, api.TaskShow, api.TaskRequest{Environment: in.environment, Task: c.args[0]})
		if err != nil {
			return err
		}
		given, err := readParams(c.app, c.args[1:], in.p, secretsOfTask(t))
		if err != nil {
			return err
		}
		request := api.JobTaskRequest{Environment: in.environment, Task: t.Name, Texts: given.texts, Noop: in.noop}
		if request.Params, err = given.json(); err != nil {
			return err
		}
		return launch(ctx, c.app, in.o, newJob{
			does: "task " + t.Name,
			send: ordered(api.JobTask, func(order api.JobOrder) api.JobTaskRequest {
				request.JobOrder = order
				return request
			}),
		})
	},
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
