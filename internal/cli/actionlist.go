package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

type actionListInput struct {
	api.ActionListRequest
}

var actionList = verb[actionListInput]{
	use: "list", short: "List the modules that nodes have, and their actions",
	prints: aList,
	long: `List the modules that nodes have, and their actions. A star marks actions that change
nothing on a node. NODES counts the nodes that have the module and can use it; the newest
of several versions is first.

A node tells which modules it has when its tutti agent connects. pxp-agent tells nothing.

With --problems: the modules that some nodes cannot use, and why.`,
	example: "  tutti action list\n  tutti action list --node web-1.example.test\n  tutti action list --problems",
	flags: func(f flagSet, in *actionListInput) {
		f.StringVar(&in.Node, "node", "", "only what this node has")
		f.BoolVar(&in.Problems, "problems", false, "only modules that cannot be used, with the reason")
	},
	run: func(ctx context.Context, c *call, in *actionListInput) error {
		list, err := ask(ctx, c.app, api.ActionList, in.ActionListRequest)
		if err != nil {
			return err
		}
		if in.Problems {
			return listProblems(c, list.Items)
		}
		return print.List(c.printer(), list.Items, print.Table[api.ActionModule]{
			Columns: []string{"module", "actions", "version", "nodes", "description"},
			Spare:   []string{"description", "version"},
			Row: func(m api.ActionModule) []any {
				return []any{m.Module, actionNames(m.Actions), versionNames(m.Versions), m.Nodes, m.Description}
			},
			Name:  func(m api.ActionModule) string { return m.Module },
			Empty: "No node has told of its modules yet: a tutti agent does when it connects.",
		})
	},
}

// moduleProblem is one row of action list --problems.
type moduleProblem struct {
	Module string `json:"module"`
	api.ActionModuleProblem
}

func listProblems(c *call, modules []api.ActionModule) error {
	var rows []moduleProblem
	for _, m := range modules {
		for _, p := range m.Problems {
			rows = append(rows, moduleProblem{m.Module, p})
		}
	}
	return print.List(c.printer(), rows, print.Table[moduleProblem]{
		Columns: []string{"module", "provider", "nodes", "for example", "problem"},
		Spare:   []string{"provider"},
		Row: func(p moduleProblem) []any {
			return []any{p.Module, p.Provider, p.Nodes, p.Examples[:min(len(p.Examples), shownExamples)], p.Problem}
		},
		Name:  func(p moduleProblem) string { return p.Module },
		Empty: "Every module that nodes told of can be used.",
	})
}

// shownExamples is how many nodes people see that have a problem.
const shownExamples = 3

// actionNames are the names of actions; a star marks those that only read.
func actionNames(actions []api.Action) []string {
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = a.Name
		if a.ReadOnly {
			names[i] += "*"
		}
	}
	return names
}

// versionNames are the versions of a module, each once. The agent's own modules have none.
func versionNames(versions []api.ActionModuleVersion) []string {
	var names []string
	for _, v := range versions {
		if v.Version != "" && !slices.Contains(names, v.Version) {
			names = append(names, v.Version)
		}
	}
	return names
}

type actionShowInput struct{ module, action string }

var actionShow = verb[actionShowInput]{
	use: "show MODULE [ACTION]", short: "Show what a module can do, what its actions take and what they give",
	args: oneOrTwo("the name of a module", "of its action"),
	long: `Show what a module can do, as the newest version of it says that nodes have: for each action
the inputs with their type, the values that are allowed and the default, and the results.`,
	example: "  tutti action show echo\n  tutti action show pxp-module-puppet run\n  tutti action show echo -o json",
	into: func(in *actionShowInput, args []string) {
		in.module = args[0]
		if len(args) > 1 {
			in.action = args[1]
		}
	},
	run: func(ctx context.Context, c *call, in *actionShowInput) error {
		m, err := ask(ctx, c.app, api.ActionShow, api.ActionShowRequest{Module: in.module})
		if err != nil {
			return err
		}
		if in.action == "" {
			return print.One(c.printer(), m, printModule)
		}
		one, err := actionNamed(m, in.action)
		if err != nil {
			return err
		}
		return print.One(c.printer(), one, func(to print.Printer, a api.Action) error { return printAction(to, m.Module, a) })
	},
}

func printModule(to print.Printer, m api.ActionModule) error {
	rows := [][]string{{"Module", m.Module}, {"Description", m.Description}}
	for i, v := range m.Versions {
		rows = append(rows, []string{label("Versions", i), fmt.Sprintf("%s  (%s, %s)", cmp.Or(v.Version, short(v.Digest)), v.Provider, fault.Count(v.Nodes, "node"))})
	}
	rows = append(rows, []string{"Author", m.Author}, []string{"License", m.License}, []string{"URL", m.URL})
	for i, p := range m.Problems {
		rows = append(rows, []string{
			label("Problems", i),
			fmt.Sprintf("%s  (%s, such as %s)", p.Problem, fault.Count(p.Nodes, "node"), strings.Join(p.Examples[:min(len(p.Examples), shownExamples)], ", ")),
		})
	}
	if len(m.Actions) == 0 {
		rows = append(rows, []string{"Actions", "not known: no node that can use it has told yet what it does"})
	}
	if err := to.Rows(nil, rows); err != nil {
		return err
	}
	for _, a := range m.Actions {
		if _, err := fmt.Fprintln(to.Out); err != nil {
			return err
		}
		if err := printAction(to, m.Module, a); err != nil {
			return err
		}
	}
	return nil
}

func printAction(to print.Printer, module string, a api.Action) error {
	rows := [][]string{{"Action", module + " " + a.Name}, {"Does", a.Description}, {"Changes", "the node"}}
	if a.ReadOnly {
		rows[2][1] = "nothing"
	}
	if a.Timeout > 0 {
		rows = append(rows, []string{"Timeout", print.Duration(time.Duration(a.Timeout * float64(time.Second)))})
	}
	for i, s := range a.Aggregates {
		rows = append(rows, []string{label("Sums up", i), s.Function + " of " + s.Field})
	}
	for _, part := range []struct {
		name   string
		fields []api.ActionField
	}{{"Inputs", a.Inputs}, {"Results", a.Outputs}} {
		if len(part.fields) == 0 {
			rows = append(rows, []string{part.name, "none"})
		}
	}
	if err := to.Rows(nil, rows); err != nil {
		return err
	}
	if err := printFields(to, "input", a.Inputs, true); err != nil {
		return err
	}
	return printFields(to, "result", a.Outputs, false)
}

// printFields is a table of inputs or results.
func printFields(to print.Printer, what string, fields []api.ActionField, given bool) error {
	if len(fields) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(to.Out); err != nil {
		return err
	}
	header := []string{what, "type", "need", "label", "description"}
	if !given {
		header = []string{what, "type", "label", "description"}
	}
	rows := make([][]string, len(fields))
	for i, f := range fields {
		rows[i] = []string{f.Name, fieldType(f), fieldNeed(f), titleOf(f), f.Description}
		if !given {
			rows[i] = slices.Delete(rows[i], 2, 3)
		}
	}
	return to.Rows(header, rows)
}

func titleOf(f api.ActionField) string {
	if f.Title == f.Name {
		return ""
	}
	return f.Title
}

// fieldType is what a value must be.
func fieldType(f api.ActionField) string {
	text := cmp.Or(f.Type, "any")
	if f.Format != "" {
		text += " (" + f.Format + ")"
	}
	if f.Sensitive {
		text += ", sensitive"
	}
	if f.MaxLength > 0 {
		text += fmt.Sprintf(", at most %d characters", f.MaxLength)
	}
	if len(f.Values) > 0 {
		text += ": " + strings.Join(f.Values, ", ")
	}
	return text
}

func fieldNeed(f api.ActionField) string {
	switch {
	case f.Default != nil:
		return "default " + string(f.Default)
	case f.Required:
		return "required"
	}
	return "optional"
}

// offerModules offers the modules that nodes have.
func offerModules(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.ActionList, func(asked) api.ActionListRequest { return api.ActionListRequest{} }, func(m api.ActionModule) string {
		return about(m.Module, m.Description)
	})(ctx, a, q)
}

// offerActions offers the actions of the module that was said before.
func offerActions(ctx context.Context, a *app, q asked) (values []string) {
	if len(q.args) == 0 {
		return nil
	}
	m, err := ask(ctx, a, api.ActionShow, api.ActionShowRequest{Module: q.args[0]})
	if err != nil {
		return nil // a shell has no place for words
	}
	for _, one := range m.Actions {
		values = append(values, about(one.Name, one.Description))
	}
	return values
}
