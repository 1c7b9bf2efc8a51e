package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

func (a *app) taskCommand() *cobra.Command {
	return a.withAccess(noun("task", "See and run the tasks of the deployed code", a.taskList(), a.taskShow(), a.taskRun()))
}

const taskEnvironment = "environment whose code is looked at"

func (a *app) taskList() *cobra.Command {
	var environment string
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List tasks", Args: exactly(0),
		Long: `List the tasks of an environment's current version. A task that cannot be run is listed with the reason. Private tasks are
listed with --all.`,
		Example: "  tutti task list\n  tutti task list --environment staging --all",
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := ask(cmd.Context(), a, api.TaskList, api.EnvironmentRequest{Environment: environment})
			if err != nil {
				return err
			}
			var shown []api.Task
			for _, t := range list.Items {
				if all || !t.Private {
					shown = append(shown, t)
				}
			}
			return print.List(a.printer(), shown, print.Table[api.Task]{
				Columns: []string{"task", "description"},
				Row:     func(t api.Task) []string { return []string{t.Name, taskSummary(t)} },
				Name:    func(t api.Task) string { return t.Name },
				Empty:   "No tasks in " + environment + ". A task is an executable in the tasks directory of a module.",
			})
		},
	}
	cmd.Flags().StringVarP(&environment, "environment", "e", "production", taskEnvironment)
	cmd.Flags().BoolVar(&all, "all", false, "private tasks, too")
	return cmd
}

func taskSummary(t api.Task) string {
	if t.Problem != "" {
		return "cannot be run: " + t.Problem
	}
	return t.Description
}

func (a *app) taskShow() *cobra.Command {
	var environment string
	cmd := &cobra.Command{
		Use: "show TASK", Short: "Show what a task does and which parameters it takes", Args: exactly(1), ValidArgsFunction: completeTask(a),
		Example: "  tutti task show package\n  tutti task show service::restart --environment staging -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := ask(cmd.Context(), a, api.TaskShow, api.TaskRequest{Environment: environment, Task: args[0]})
			if err != nil {
				return err
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(t)
			}
			return printTask(a, t)
		},
	}
	cmd.Flags().StringVarP(&environment, "environment", "e", "production", taskEnvironment)
	return cmd
}

func printTask(a *app, t api.Task) error {
	noop := "no"
	if t.SupportsNoop {
		noop = "yes"
	}
	facts := [][]string{
		{"Task", t.Name},
		{"Description", t.Description},
		{"Environment", t.Environment + ", version " + short(t.Version)},
		{"Noop", noop},
	}
	for i, f := range t.Files {
		facts = append(facts, []string{label("Files", i), fmt.Sprintf("%s (%s)", f.Name, print.Bytes(f.Bytes))})
	}
	if t.AnyParameters {
		facts = append(facts, []string{"Parameters", "whatever it is given: the task does not describe them"})
	} else if len(t.Parameters) == 0 {
		facts = append(facts, []string{"Parameters", "none"})
	}
	if err := a.printer().Rows(nil, facts); err != nil || len(t.Parameters) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(a.system.Out); err != nil {
		return err
	}
	rows := make([][]string, len(t.Parameters))
	for i, p := range t.Parameters {
		rows[i] = []string{p.Name, p.Type, parameterNeed(p), p.Description}
	}
	return a.printer().Rows([]string{"parameter", "type", "need", "description"}, rows)
}

// label is the heading of the first of several rows.
func label(text string, i int) string {
	if i > 0 {
		return " "
	}
	return text
}

func parameterNeed(p api.TaskParameter) string {
	var words []string
	switch {
	case p.Required:
		words = append(words, "required")
	case p.Default != nil && !p.Sensitive:
		words = append(words, "default "+string(p.Default))
	default:
		words = append(words, "optional")
	}
	if p.Sensitive {
		words = append(words, "sensitive")
	}
	return strings.Join(words, ", ")
}
