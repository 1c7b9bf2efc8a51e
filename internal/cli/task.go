package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

var taskCommand = asking{noun{
	use: "task", short: "See and run the tasks of the deployed code",
	verbs: []declared{taskList, taskShow, taskRun},
}}

const taskEnvironment = "environment whose code is looked at"

type taskListInput struct {
	environment string
	all         bool
}

var taskList = verb[taskListInput]{
	use: "list", short: "List tasks",
	prints: aList,
	long: `List the tasks of an environment's current version. A task that cannot be run is listed with the reason. Private tasks are
listed with --all.`,
	example: "  tutti task list\n  tutti task list --environment staging --all",
	flags: func(f flagSet, in *taskListInput) {
		f.StringVarP(&in.environment, "environment", "e", "production", taskEnvironment)
		f.BoolVar(&in.all, "all", false, "private tasks, too")
	},
	run: listTasks,
}

func listTasks(ctx context.Context, c *call, in *taskListInput) error {
	list, err := ask(ctx, c.app, api.TaskList, api.EnvironmentRequest{Environment: in.environment})
	if err != nil {
		return err
	}
	var shown []api.Task
	for _, t := range list.Items {
		if in.all || !t.Private {
			shown = append(shown, t)
		}
	}
	return print.List(c.printer(), shown, print.Table[api.Task]{
		Columns: []string{"task", "description"},
		Row:     func(t api.Task) []any { return []any{t.Name, taskSummary(t)} },
		Name:    func(t api.Task) string { return t.Name },
		Empty:   "No tasks in " + in.environment + ". A task is an executable in the tasks directory of a module.",
	})
}

func taskSummary(t api.Task) string {
	if t.Problem != "" {
		return "cannot be run: " + t.Problem
	}
	return t.Description
}

var taskShow = verb[taskListInput]{
	use: "show [TASK]", short: "Show what a task does and which parameters it takes; without one, list tasks", args: atMostOne,
	prints:   aList,
	example:  "  tutti task show package\n  tutti task show service::restart --environment staging -o json",
	complete: completeTask,
	flags: func(f flagSet, in *taskListInput) {
		f.StringVarP(&in.environment, "environment", "e", "production", taskEnvironment)
		f.BoolVar(&in.all, "all", false, "of the list: private tasks, too")
	},
	run: func(ctx context.Context, c *call, in *taskListInput) error {
		if len(c.args) == 0 {
			return listTasks(ctx, c, in)
		}
		text := printTask
		if c.tools.name != "" {
			text = printTheirTask
		}
		return showAnswer(ctx, c.app, api.TaskShow, api.TaskRequest{Environment: in.environment, Task: c.args[0]}, text)
	},
}

func printTask(to print.Printer, t api.Task) error {
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
	if err := to.Rows(nil, facts); err != nil || len(t.Parameters) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(to.Out); err != nil {
		return err
	}
	rows := make([][]string, len(t.Parameters))
	for i, p := range t.Parameters {
		rows[i] = []string{p.Name, p.Type, parameterNeed(p), p.Description}
	}
	return to.Rows([]string{"parameter", "type", "need", "description"}, rows)
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
