package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// outputs are the values that the --output of a verb can have; the first is what it does without.
type outputs []string

// What verbs print. aThing is what those that say nothing else print.
var (
	aThing  = outputs{"table", "json", "jsonl", "yaml"}
	aList   = outputs{"table", "wide", "json", "jsonl", "yaml", "csv", "name"}
	results = outputs{"table", "json", "jsonl", "yaml", "csv", "name"} // of what is ordered on many nodes
	asLines = outputs{"table", "json", "jsonl", "name"}                // as they come; json and jsonl are the same
	silent  = outputs{}                                                // nothing that has a form
)

// orName are outputs of a thing that has a name.
func (o outputs) orName() outputs { return append(slices.Clip(slices.Clone(o)), "name") }

// printing is how results are printed: what the flags that verbs of lists have say.
type printing struct {
	columns []string
	sort    string
	watch   time.Duration
}

// lists says whether o are those of a list.
func (o outputs) lists() bool { return slices.Contains(o, "wide") }

// flags gives a verb its --output, and what else belongs to what it prints.
func (o outputs) flags(f flagSet) {
	if len(o) == 0 {
		return
	}
	f.StringVarP(&f.app.output, "output", "o", o[0], "how to print: "+alternatives(o))
	f.offers("output", o...)
	if !o.lists() {
		return
	}
	f.StringSliceVar(&f.app.printing.columns, "columns", nil, "print these columns only, in this order (table, wide, csv)")
	f.StringVar(&f.app.printing.sort, "sort", "", "sort by this column; with - before it, the largest first")
	f.duration(&f.app.printing.watch, "watch", 0, "print it again and again, so long after each other (2s without a value), until Ctrl-C")
	watch := f.Lookup("watch")
	watch.NoOptDefVal, watch.DefValue = "2s", ""
}

// alternatives are words as a choice: a, b or c.
func alternatives(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// check refuses an --output that the verb does not have.
func (o outputs) check(c *call) error {
	if len(o) == 0 || slices.Contains(o, c.output) {
		if len(c.printing.columns) > 0 && !slices.Contains([]string{"table", "wide", "csv"}, c.output) {
			return usageError{fault.New(fault.Invalid, "--columns chooses columns of a table or of CSV; -o %s has all there is", c.output)}
		}
		return nil
	}
	hint := fault.DidYouMean(c.output, o)
	if hint == "" {
		hint = "choose " + alternatives(o)
	}
	return usageError{fault.New(fault.Invalid, "`%s` cannot print %.40q; %s", c.cmd.CommandPath(), c.output, hint)}
}

// repeat does run, and with --watch again and again.
func (c *call) repeat(ctx context.Context, run func(context.Context, *call) error) error {
	every := c.printing.watch
	if every == 0 {
		return run(ctx, c)
	}
	if every < minWatch {
		return usageError{fault.New(fault.Invalid, "--watch is %s; at least %s lies between two looks", print.Duration(every), print.Duration(minWatch))}
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for first := true; ; first = false {
		if err := c.look(ctx, run, first); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil // Ctrl-C is how it ends
		case <-tick.C:
		}
	}
}

// minWatch keeps a forgotten terminal from being a load.
const minWatch = 500 * time.Millisecond

// look prints once what is watched: over what was there on a terminal, else below it.
func (c *call) look(ctx context.Context, run func(context.Context, *call) error, first bool) error {
	var page bytes.Buffer
	inner, outer := *c, *c.app
	inner.app = &outer
	outer.system.Out = &page
	err := run(ctx, &inner)
	switch text := page.Bytes(); {
	case ctx.Err() != nil: // somebody had enough
		err = nil
	case err != nil && (first || !errors.Is(err, errDiffers) && fault.Of(err) != fault.Unavailable):
		return err
	case err != nil: // it is away, and comes back
		c.hint("%s", explain(err))
		err = nil
	case c.system.Width > 0 && c.system.Getenv("TERM") != "dumb":
		_, err = fmt.Fprintf(c.system.Out, "\x1b[H\x1b[2JEvery %s: %s   %s\n\n%s", print.Duration(c.printing.watch), c.cmd.CommandPath(),
			time.Now().Format(time.TimeOnly), text)
	default:
		_, err = c.system.Out.Write(text)
	}
	return err
}

// printer prints results as the flags say.
func (a *app) printer() print.Printer {
	return print.Printer{
		Out: a.system.Out, Format: a.output, Width: a.system.Width, Colours: a.coloured(a.system.Width > 0),
		Columns: a.printing.columns, Sort: a.printing.sort, Hint: a.hint,
	}
}

// coloured says whether something is shown in colours: as --color says, else on a terminal that has them.
func (a *app) coloured(terminal bool) bool {
	switch a.colour {
	case "always":
		return true
	case "never":
		return false
	}
	return terminal && a.system.Getenv("NO_COLOR") == "" && a.system.Getenv("TERM") != "dumb"
}

// checkColour refuses a --color that is none.
func (a *app) checkColour(*cobra.Command, []string) error {
	if choices := []string{"auto", "always", "never"}; !slices.Contains(choices, a.colour) {
		return usageError{fault.New(fault.Invalid, "--color is %.40q; choose %s", a.colour, alternatives(choices))}
	}
	return nil
}
