package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/internal/fault"
)

// verbNames are the names of the commands below cmd, as people may write them.
func verbNames(cmd *cobra.Command) []string {
	var names []string
	for _, below := range cmd.Commands() {
		if !below.Hidden {
			names = append(append(names, below.Name()), below.Aliases...)
		}
	}
	return names
}

// otherWords are what other tools call a command.
var otherWords = map[string]string{"ls": "list", "rm": "delete", "get": "show", "describe": "show", "new": "create", "add": "create"}

// otherFlags are what other tools call a flag.
var otherFlags = map[string]string{
	"--async": "--no-wait", "--background": "--no-wait", "--detach": "--no-wait", "--env": "--environment", "--filter": "--where", "--format": "--output",
	"--json": "--output json",
}

// wrongFlag adds to an error about flags which one may be meant.
func wrongFlag(cmd *cobra.Command, err error) error {
	hint := "see `" + cmd.CommandPath() + " --help`"
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return &fault.Error{Kind: fault.Invalid, Detail: fmt.Sprintf("--%s: %v", invalid.GetFlag().Name, invalidValue(invalid)), Hint: hint}
	}
	if lacking, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return &fault.Error{Kind: fault.Invalid, Detail: dashed(lacking.GetSpecifiedName()) + " needs a value", Hint: hint}
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return &fault.Error{Kind: fault.Invalid, Detail: err.Error(), Hint: hint}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	name := dashed(unknown.GetSpecifiedName())
	flag, _, _ := strings.Cut(otherFlags[name], " ")
	if slices.Contains(names, flag) {
		hint = "did you mean " + otherFlags[name] + "?"
	} else if meant := fault.DidYouMean(name, names); meant != "" {
		hint = meant
	}
	return &fault.Error{Kind: fault.Invalid, Detail: fmt.Sprintf("`%s` has no flag %.60s", cmd.CommandPath(), name), Hint: hint}
}

// dashed is a flag's name as people write it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// invalidValue is why a flag does not take a value.
func invalidValue(err *pflag.InvalidValueError) string {
	cause := err.Unwrap()
	if number, ok := errors.AsType[*strconv.NumError](cause); ok {
		return fmt.Sprintf("%.40q is no number of the kind %s", number.Num, err.GetFlag().Value.Type())
	}
	return cause.Error()
}

// asFlags puts the name of the flag for that of the API's field which a request has wrong: people know only the one.
func (c *call) asFlags(err error) error {
	if of, wrong, ok := strings.Cut(fault.Detail(err), ": field "); ok && strings.HasPrefix(of, "input of ") { // of an action: NAME=VALUE
		return &fault.Error{Kind: fault.Of(err), Detail: of + ": " + wrong, Hint: fault.Hint(err), Err: err}
	}
	rest, field := strings.CutPrefix(fault.Detail(err), "field ")
	name, why, ok := strings.Cut(rest, ": ")
	if !field || !ok {
		return err
	}
	if flag := c.cmd.Flags().Lookup(strings.ReplaceAll(name, "_", "-")); flag != nil {
		why = "--" + flag.Name + ": " + why
	}
	return &fault.Error{Kind: fault.Of(err), Detail: why, Hint: fault.Hint(err), Err: err}
}

// nearby adds to an error about a name that nothing has which names are near: those that the shell would complete in
// its place. The server is asked for them only then.
func (c *call) nearby(err error) error {
	detail := fault.Detail(err)
	if fault.Of(err) == fault.Invalid && fault.Hint(err) == "" {
		return misnamed(err, detail)
	}
	if fault.Of(err) != fault.NotFound || fault.Hint(err) != "" {
		return err
	}
	hint, known := "", false
	look := func(name string, complete cobra.CompletionFunc, before []string) {
		if hint == "" {
			var is bool
			hint, is = c.near(name, detail, complete, before)
			known = known || is
		}
	}
	for i, arg := range c.args {
		look(arg, c.cmd.ValidArgsFunction, c.args[:i])
	}
	c.cmd.Flags().Visit(func(f *pflag.Flag) {
		if with, ok := c.cmd.GetFlagCompletionFunc(f.Name); ok {
			values := []string{f.Value.String()}
			if list, ok := f.Value.(pflag.SliceValue); ok {
				values = list.GetSlice()
			}
			for _, value := range values {
				look(value, with, nil)
			}
		}
	})
	if hint == "" && !known { // of what the error speaks of all is there: something else is missing
		hint = c.listed(detail)
	}
	if hint == "" {
		return err
	}
	return hinted(err, hint)
}

// listed is where the names are that a verb's first argument, or a flag of it, could be; empty if the error says so already,
// or there is no such list.
func (c *call) listed(detail string) string {
	noun := c.cmd.Parent()
	if noun == nil || strings.Contains(detail, "`") || strings.Contains(detail, "tutti ") {
		return ""
	}
	if kind, _, ok := strings.Cut(detail, " "); ok && kind != strings.ToLower(noun.Name()) {
		if list := seeList(kind); list != "" { // "environment x has no code": of another noun than the command's
			return list
		}
	}
	if len(c.args) > 0 {
		for _, verb := range noun.Commands() {
			if verb.Name() == "list" && verb != c.cmd {
				return "see `" + verb.CommandPath() + "`"
			}
		}
		if words := strings.Fields(c.cmd.Use); len(words) > 1 {
			return seeList(strings.ToLower(nameOf(words[1])))
		}
		return ""
	}
	hint := ""
	c.cmd.Flags().Visit(func(f *pflag.Flag) {
		if value := f.Value.String(); value != "" && strings.Contains(detail, value) {
			hint = cmp.Or(hint, seeList(f.Name))
		}
	})
	return hint
}

// misnamed adds to an error about what cannot be a name where the names are.
func misnamed(err error, detail string) error {
	what, _, ok := strings.Cut(detail, " must be a number, not ")
	if !ok {
		if _, _, ok = strings.Cut(detail, "a report is named by "); ok {
			what = "report"
		}
	}
	if hint := seeList(what); ok && hint != "" {
		return hinted(err, hint)
	}
	return err
}

// seeList says which command lists things of a kind.
func seeList(kind string) string {
	list := map[string]string{
		"node": "tutti node list", "environment": "tutti code list", "group": "tutti group list", "preview": "tutti preview list", "release": "tutti release list",
		"report": "tutti report list --node NODE",
	}[kind]
	if list == "" {
		return ""
	}
	return "see `" + list + "`"
}

// excluded words an error of cobra about flags that cannot stand together.
func excluded(err error) error {
	_, rest, ok := strings.Cut(err.Error(), "are set none of the others can be; [")
	if !ok {
		return err
	}
	names, _, _ := strings.Cut(rest, "]")
	return usageError{fault.New(fault.Invalid, "--%s exclude each other; give one of them", strings.Join(strings.Fields(names), " and --"))}
}

// oneNeeded says which flags a verb has at least one of, if none was given.
func (c *call) oneNeeded() error {
	var names []string
	given := false
	c.cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, one := f.Annotations[oneOfFlags]; one {
			names, given = append(names, "--"+f.Name), given || f.Changed
		}
	})
	if given || len(names) == 0 {
		return nil
	}
	last := len(names) - 1
	return usageError{&fault.Error{
		Kind: fault.Invalid, Detail: "what is to change? Give " + strings.Join(names[:last], ", ") + " or " + names[last],
		Hint: "see `" + c.cmd.CommandPath() + " --help`",
	}}
}

// strangers says of flags that narrow a list which found nothing that what they name is not there at all.
func (c *call) strangers() {
	c.cmd.Flags().Visit(func(f *pflag.Flag) {
		complete, ok := c.cmd.GetFlagCompletionFunc(f.Name)
		if !ok || f.Name == "where" || f.Name == "output" {
			return
		}
		name := f.Value.String()
		names := c.offered(complete, nil, name)
		if slices.Contains(names, name) {
			return
		}
		names = append(names, c.offered(complete, nil, "")...)
		if hint := fault.DidYouMean(name, names); hint != "" {
			c.hint("--%s: nothing is called %s; %s", f.Name, name, hint)
		} else if list := seeList(f.Name); list != "" && len(names) > 0 {
			c.hint("--%s: nothing is called %s; %s", f.Name, name, list)
		}
	})
}

// offered are the names that the shell would offer in the place of one.
func (c *call) offered(complete cobra.CompletionFunc, before []string, begun string) []string {
	var names []string
	offers, _ := complete(c.cmd, before, begun)
	for _, offer := range offers {
		name, _, _ := strings.Cut(offer, "\t")
		names = append(names, name)
	}
	return names
}

// near asks which names stand nearest to one that an error speaks of. A name that is there is known: the error is about something else.
func (c *call) near(name, detail string, complete cobra.CompletionFunc, before []string) (hint string, known bool) {
	if name == "" || complete == nil || !strings.Contains(detail, strings.TrimPrefix(name, "@")) { // a wave is the @name of a group
		return "", false
	}
	if slices.Contains(c.offered(complete, before, name), name) {
		return "", true
	}
	if hint := fault.DidYouMean(name, c.offered(complete, before, name[:1])); hint != "" { // of many names few are asked for
		return hint, false
	}
	return fault.DidYouMean(name, c.offered(complete, before, "")), false
}

// hinted is err with a hint.
func hinted(err error, hint string) error {
	return &fault.Error{Kind: fault.Of(err), Detail: fault.Detail(err), Hint: hint, Err: err}
}
