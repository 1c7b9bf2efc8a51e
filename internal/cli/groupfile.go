package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/yamljson"
)

// groupFile is a file that describes all groups.
type groupFile struct {
	Groups []api.GroupSpec `json:"groups"`
}

// maxGroupFile is the largest file of groups, in bytes.
const maxGroupFile = 32 << 20

type groupApplyInput struct {
	path   string
	dryRun bool
}

var groupApply = verb[groupApplyInput]{
	use: "apply -f FILE", short: "Make the groups what a file says, after showing the difference", args: exactly(0),
	long: `Make the groups what a YAML or JSON file says, all of it or nothing. The difference is shown first; with --dry-run that is all.
Groups that the file does not describe are deleted. All Nodes stays as it is unless the file describes it. A group keeps
its identity by its name; to rename one, give its id beside the new name.

  groups:
    - name: Web servers
      parent: Debian
      rule: facts.os.family = "Debian" and trusted.extensions.pp_role = "web"
      nodes: [web-9.example.test]
      environment: production
      classes:
        apache: {default_vhost: false}
      variables: {tier: gold}
      data:
        ssh::server: {ciphers: [aes256-gcm@openssh.com]}`,
	example: "  tutti group export > groups.yaml\n  tutti group apply -f groups.yaml --dry-run\n  tutti group apply -f groups.yaml",
	flags: func(f flagSet, in *groupApplyInput) {
		f.StringVarP(&in.path, "file", "f", "", "file with the groups; - for standard input")
		f.BoolVar(&in.dryRun, "dry-run", false, "show what would change and change nothing")
	},
	run: func(ctx context.Context, c *call, in *groupApplyInput) error {
		if in.path == "" {
			return usageError{fault.New(fault.Invalid, "which file? give -f FILE, or -f - for standard input")}
		}
		file, err := readGroups(c.app, in.path)
		if err != nil {
			return err
		}
		return applyGroups(ctx, c.app, file, in.dryRun)
	},
}

// applyGroups shows, then makes exactly what was shown.
func applyGroups(ctx context.Context, a *app, file groupFile, dryRun bool) error {
	plan, err := ask(ctx, a, api.GroupApply, api.GroupApplyRequest{Groups: file.Groups, DryRun: true})
	if err != nil {
		return err
	}
	if !a.printer().ForPrograms() {
		printChanges(a.printer(), plan.Changes)
	}
	if !dryRun && len(plan.Changes) > 0 {
		request := api.GroupApplyRequest{Groups: file.Groups, Revision: plan.Revision}
		if plan, err = ask(ctx, a, api.GroupApply, request); err != nil {
			return err
		}
		a.hint("Applied")
	}
	if a.printer().ForPrograms() {
		return a.printer().Thing(plan)
	}
	for i, doubt := range plan.Warnings {
		if i == shownDoubts {
			a.hint("and %d warnings more; tutti group list -o json has all", len(plan.Warnings)-i)
			break
		}
		a.hint("warning: %s", print.OneLine(doubt))
	}
	return nil
}

// signs mark kinds of change as people know them from other tools.
func sign(kind string) string {
	return map[string]string{"create": "+", "update": "~", "delete": "-"}[kind]
}

func printChanges(to print.Printer, changes []api.GroupChange) {
	count := map[string]int{}
	for _, c := range changes {
		count[c.Kind]++
		_, _ = fmt.Fprintf(to.Out, "%s %s group %q\n", sign(c.Kind), c.Kind, print.OneLine(c.Name))
		for _, d := range c.Differences {
			if c.Kind == "delete" {
				continue // it all goes
			}
			_, _ = fmt.Fprintf(to.Out, "    %s: %s\n", d.Field, difference(d))
		}
	}
	if len(changes) == 0 {
		to.Hint("Nothing differs")
		return
	}
	to.Hint("To create: %d, to update: %d, to delete: %d", count["create"], count["update"], count["delete"])
}

func difference(d api.GroupDifference) string {
	before, after := print.Shortened(print.OneLine(d.Old), 200), print.Shortened(print.OneLine(d.New), 200)
	switch {
	case d.Old == "":
		return after
	case d.New == "":
		return before + " -> (nothing)"
	}
	return before + " -> " + after
}

// readGroups reads a YAML or JSON file of groups.
func readGroups(a *app, path string) (file groupFile, err error) {
	source := a.system.In
	if path != "-" {
		opened, err := openNamed("the groups", path)
		if err != nil {
			return file, err
		}
		defer func() { _ = opened.Close() }()
		source = opened
	}
	text, err := io.ReadAll(io.LimitReader(source, maxGroupFile+1))
	if err != nil {
		return file, err
	}
	if len(text) > maxGroupFile {
		return file, fault.New(fault.Invalid, "%s has more than %d bytes", path, maxGroupFile)
	}
	if !utf8.Valid(text) {
		return file, fault.New(fault.Invalid, "%s is no text in UTF-8, and groups are YAML or JSON; `tutti group export` shows the form", path)
	}
	if file, err = parseGroups(text); err != nil {
		return file, fault.New(fault.Invalid, "%s: %s", path, misfit(err))
	}
	return file, nil
}

// misfit says in the file's words what does not fit.
func misfit(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s cannot be a %s; `tutti group export` shows the form", strings.TrimPrefix(wrong.Field, "groups."), wrong.Value)
	}
	return err.Error()
}

func parseGroups(text []byte) (file groupFile, err error) {
	value, err := yamljson.ToJSON(text)
	if err != nil {
		return file, err
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.DisallowUnknownFields()
	return file, decoder.Decode(&file)
}

func formatGroups(file groupFile) ([]byte, error) {
	text, err := json.Marshal(file)
	if err != nil {
		return nil, err
	}
	return yamljson.FromJSON(text)
}

var groupExport = verb[api.Nothing]{
	use: "export", short: "Write all groups as a file that `group apply` takes",
	long:    "Write all groups as a file that `group apply` takes: YAML, or JSON with -o json. The same groups give the same file.",
	example: "  tutti group export > groups.yaml\n  tutti group export -o json > groups.json",
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		groups, err := allGroups(ctx, c.app)
		if err != nil {
			return err
		}
		var file groupFile
		for _, g := range groups {
			if g.Defect != "" {
				return fault.New(fault.Conflict, "the group %q cannot be used as it is stored: %s; mend or delete it first", g.Name, g.Defect)
			}
			file.Groups = append(file.Groups, exported(g))
		}
		if c.printer().ForPrograms() {
			return c.printer().Thing(file)
		}
		text, err := formatGroups(file)
		if err != nil {
			return err
		}
		_, err = c.system.Out.Write(text)
		return err
	},
}

// maxRuleWords is how long a rule may be to be written for people: what is longer
// was made by a program.
const maxRuleWords = 64 << 10

func exported(g api.Group) api.GroupSpec {
	spec := specOf(g)
	if g.ParentID == g.ID { // the root: these are not for choosing
		spec.Parent, spec.Rule = "", nil
	} else if len(g.RuleText) > 0 && len(g.RuleText) < maxRuleWords {
		spec.Rule = ruleJSON(g.RuleText)
	}
	return spec
}
