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

// wrongFlag adds to an error about flags which one may be meant.
func wrongFlag(cmd *cobra.Command, err error) error {
	hint := "see `" + cmd.CommandPath() + " --help`"
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return &fault.Error{Kind: fault.Invalid, Detail: fmt.Sprintf("--%s: %v", invalid.GetFlag().Name, invalidValue(invalid)), Hint: hint}
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || len(unknown.GetSpecifiedName()) < 2 {
		return &fault.Error{Kind: fault.Invalid, Detail: err.Error(), Hint: hint}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	name := "--" + unknown.GetSpecifiedName()
	if meant := fault.DidYouMean(name, names); meant != "" {
		hint = meant
	}
	return &fault.Error{Kind: fault.Invalid, Detail: fmt.Sprintf("`%s` has no flag %.60s", cmd.CommandPath(), name), Hint: hint}
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
	if fault.Of(err) != fault.NotFound || fault.Hint(err) != "" {
		return err
	}
	detail := fault.Detail(err)
	for i, arg := range c.args {
		if hint := c.near(arg, detail, c.cmd.ValidArgsFunction, c.args[:i]); hint != "" {
			return hinted(err, hint)
		}
	}
	hint := ""
	c.cmd.Flags().Visit(func(f *pflag.Flag) {
		if with, ok := c.cmd.GetFlagCompletionFunc(f.Name); ok && hint == "" {
			values := []string{f.Value.String()}
			if list, ok := f.Value.(pflag.SliceValue); ok {
				values = list.GetSlice()
			}
			for _, value := range values {
				hint = cmp.Or(hint, c.near(value, detail, with, nil))
			}
		}
	})
	if hint == "" {
		hint = c.listed(detail)
	}
	if hint == "" {
		return err
	}
	return hinted(err, hint)
}

// listed is where the names are that a verb's first argument could be; empty if the error says so already, or there is no
// such list.
func (c *call) listed(detail string) string {
	noun := c.cmd.Parent()
	if len(c.args) == 0 || noun == nil || strings.Contains(detail, "`") || strings.Contains(detail, "tutti ") {
		return ""
	}
	for _, verb := range noun.Commands() {
		if verb.Name() == "list" && verb != c.cmd {
			return "see `" + verb.CommandPath() + "`"
		}
	}
	return ""
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
		if hint := fault.DidYouMean(name, append(names, c.offered(complete, nil, "")...)); hint != "" {
			c.hint("--%s: nothing is called %s; %s", f.Name, name, hint)
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

// near asks which names stand nearest to one that an error speaks of.
func (c *call) near(name, detail string, complete cobra.CompletionFunc, before []string) string {
	if name == "" || complete == nil || !strings.Contains(detail, strings.TrimPrefix(name, "@")) { // a wave is the @name of a group
		return ""
	}
	if hint := fault.DidYouMean(name, c.offered(complete, before, name[:1])); hint != "" { // of many names few are asked for
		return hint
	}
	return fault.DidYouMean(name, c.offered(complete, before, ""))
}

// hinted is err with a hint.
func hinted(err error, hint string) error {
	return &fault.Error{Kind: fault.Of(err), Detail: fault.Detail(err), Hint: hint, Err: err}
}
