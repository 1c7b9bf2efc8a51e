package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// groupFlags are what create and edit can change of a group.
type groupFlags struct {
	name, parent, rule, environment, description    string
	decides                                         bool
	pin, classes, parameters, variables, data       []string
	unpin, noClasses, noParams, noVariables, noData []string
}

func (in *groupFlags) add(f flagSet) {
	f.StringVar(&in.parent, "parent", "", "name or id of the group above; a new group is below All Nodes if nothing is said")
	f.StringVar(&in.rule, "rule", "", "which nodes: a rule like facts.os.family = \"Debian\" and not name ~ '^db', or the classifier's JSON array; empty: none")
	f.StringVarP(&in.environment, "environment", "e", "", "environment of its nodes, or agent-specified; empty: what the group above says")
	f.BoolVar(&in.decides, "environment-group", false, "the environment outvotes those of other groups")
	f.StringVar(&in.description, "description", "", "what the group is for")
	f.StringSliceVar(&in.pin, "pin", nil, "node that is in the group whatever the rule says; may be repeated")
	f.StringArrayVar(&in.classes, "class", nil, "class that nodes get; may be repeated")
	f.StringArrayVar(&in.parameters, "param", nil, "CLASS::NAME=VALUE, parameter of a class; VALUE is JSON, or else a text; may be repeated")
	f.StringArrayVar(&in.variables, "variable", nil, "NAME=VALUE, top-scope variable; may be repeated")
	f.StringArrayVar(&in.data, "data-value", nil, "CLASS::NAME=VALUE, for the class wherever it is included; may be repeated")
}

func (in *groupFlags) addRemovals(f flagSet) {
	f.StringVar(&in.name, "name", "", "new name")
	f.StringSliceVar(&in.unpin, "unpin", nil, "node that is pinned no more; may be repeated")
	f.StringArrayVar(&in.noClasses, "no-class", nil, "class to take away; may be repeated")
	f.StringArrayVar(&in.noParams, "no-param", nil, "CLASS::NAME, parameter to take away; may be repeated")
	f.StringArrayVar(&in.noVariables, "no-variable", nil, "variable to take away; may be repeated")
	f.StringArrayVar(&in.noData, "no-data-value", nil, "CLASS::NAME to take away; may be repeated")
}

// change makes the changes that were asked for.
func (in *groupFlags) change(changed func(flag string) bool, spec *api.GroupSpec) error {
	for flag, change := range map[string]func(){
		"name":              func() { spec.Name = in.name },
		"parent":            func() { spec.Parent = in.parent },
		"environment":       func() { spec.Environment = in.environment },
		"environment-group": func() { spec.EnvironmentGroup = in.decides },
		"description":       func() { spec.Description = in.description },
		"rule":              func() { spec.Rule = ruleJSON(in.rule) },
	} {
		if changed(flag) {
			change()
		}
	}
	spec.Nodes = slices.DeleteFunc(append(spec.Nodes, in.pin...), func(node string) bool { return slices.Contains(in.unpin, node) })
	return in.changeValues(spec)
}

// ruleJSON passes an array on as it is, and a text as a text.
func ruleJSON(rule string) json.RawMessage {
	if text := strings.TrimSpace(rule); strings.HasPrefix(text, "[") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	text, _ := json.Marshal(rule) // a string is JSON
	return text
}

func (in *groupFlags) changeValues(spec *api.GroupSpec) error {
	spec.Classes, spec.Variables, spec.Data = made(spec.Classes), made(spec.Variables), made(spec.Data)
	for _, class := range in.noClasses {
		delete(spec.Classes, strings.TrimPrefix(class, "::"))
	}
	for _, class := range in.classes {
		class = strings.TrimPrefix(class, "::")
		spec.Classes[class] = made(spec.Classes[class])
	}
	for flag, lists := range map[string]struct {
		remove, set []string
		in          map[string]map[string]json.RawMessage
	}{
		"param":      {in.noParams, in.parameters, spec.Classes},
		"data-value": {in.noData, in.data, spec.Data},
	} {
		for _, path := range lists.remove {
			class, name, err := classAndName(path, flag)
			if err != nil {
				return err
			}
			delete(lists.in[class], name)
		}
		for _, assignment := range lists.set {
			path, value, err := assigned(assignment, flag)
			if err != nil {
				return err
			}
			class, name, err := classAndName(path, flag)
			if err != nil {
				return err
			}
			lists.in[class] = made(lists.in[class])
			lists.in[class][name] = value
		}
	}
	for _, name := range in.noVariables {
		delete(spec.Variables, strings.TrimPrefix(name, "$"))
	}
	for _, assignment := range in.variables {
		name, value, err := assigned(assignment, "variable")
		if err != nil {
			return err
		}
		spec.Variables[strings.TrimPrefix(name, "$")] = value
	}
	return nil
}

func made[V any](values map[string]V) map[string]V {
	if values == nil {
		return map[string]V{}
	}
	return values
}

// classAndName splits apache::vhost::port into class and parameter.
func classAndName(path, flag string) (class, name string, err error) {
	path = strings.TrimPrefix(path, "::")
	at := strings.LastIndex(path, "::")
	if at <= 0 || at+2 == len(path) {
		return "", "", usageError{fault.New(fault.Invalid, "--%s %.80q: CLASS::NAME is expected", flag, path)}
	}
	return path[:at], path[at+2:], nil
}

// assigned splits NAME=VALUE. What is no JSON is a text.
func assigned(assignment, flag string) (name string, value json.RawMessage, err error) {
	name, text, ok := strings.Cut(assignment, "=")
	if !ok {
		return "", nil, usageError{fault.New(fault.Invalid, "--%s %.80q: NAME=VALUE is expected", flag, assignment)}
	}
	if trimmed := bytes.TrimSpace([]byte(text)); json.Valid(trimmed) {
		return name, trimmed, nil
	}
	value, err = json.Marshal(text)
	return name, value, err
}

var groupCreate = verb[groupFlags]{
	use: "create NAME", short: "Create a group",
	long: `Create a group. A node is in it when the rule matches or the node is pinned, and the node is in all groups above it too.

A rule compares facts, trusted data and the name:  = != ~ !~ (regular expression)  < <= > >= (numbers), joined by and, or,
not and parentheses. Keys with other characters than letters, digits, _ and - are quoted; elements of arrays are [0], [1].`,
	example: `  tutti group create 'Web servers' --rule 'trusted.extensions.pp_role = "web"' --class apache --param apache::default_vhost=false
  tutti group create Canaries --environment test --environment-group --pin web-1.example.test,web-2.example.test
  tutti group create 'Big Debian' --parent Debian --rule 'facts.processors.count >= 16 and not facts.is_virtual = true' --variable tier=gold`,
	flags: func(f flagSet, in *groupFlags) { in.add(f) },
	run: func(ctx context.Context, c *call, in *groupFlags) error {
		spec := api.GroupSpec{Name: c.args[0]}
		if err := in.change(c.changed, &spec); err != nil {
			return err
		}
		return showAnswer(ctx, c.app, api.GroupCreate, api.GroupCreateRequest{Spec: spec}, printGroup)
	},
}

var groupEdit = verb[groupFlags]{
	use: "edit GROUP", short: "Change what a group matches and gives; what is not named stays",
	example: `  tutti group edit 'Web servers' --pin web-9.example.test --no-param apache::default_vhost
  tutti group edit 'Web servers' --rule '' --description 'by hand only'
  tutti group edit 'All Nodes' --class base`,
	flags: func(f flagSet, in *groupFlags) {
		in.add(f)
		in.addRemovals(f)
	},
	run: func(ctx context.Context, c *call, in *groupFlags) error {
		old, err := ask(ctx, c.app, api.GroupShow, api.GroupRequest{Group: c.args[0]})
		if err != nil {
			return err
		}
		spec := specOf(old)
		spec.Parent = old.ParentID
		if err := in.change(c.changed, &spec); err != nil {
			return err
		}
		return showAnswer(ctx, c.app, api.GroupEdit, api.GroupEditRequest{Group: old.ID, Spec: spec, Revision: old.Revision}, printGroup)
	},
}

// specOf is a group as it could be described.
func specOf(g api.Group) api.GroupSpec {
	return api.GroupSpec{
		Name: g.Name, Parent: g.Parent, Description: g.Description, Environment: g.Environment, EnvironmentGroup: g.EnvironmentGroup,
		Rule: g.Rule, Nodes: g.Nodes, Classes: g.Classes, Variables: g.Variables, Data: g.Data,
	}
}
