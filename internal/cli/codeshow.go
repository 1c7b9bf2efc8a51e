package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var codeShow = verb[api.VersionLinesRequest]{
	use: "show ENVIRONMENT FILE:LINE", short: "Show the code around a place, as errors name it",
	long: `Show the lines around a place in the code of an environment: in a manifest, a template or Ruby code. Errors and reports name
places like this. Files of data are not shown, because they may hold secrets.`,
	args: place,
	example: `  tutti code show production manifests/site.pp:12
  tutti code show production /etc/puppetlabs/code/environments/production/modules/web/manifests/init.pp:3
  tutti code show production manifests/site.pp:12 --version 9c1f2e7a --around 20`,
	flags: func(f flagSet, in *api.VersionLinesRequest) {
		f.StringVar(&in.Version, "version", "current", "the version, or its first digits")
		f.IntVar(&in.Around, "around", 5, "so many lines before and behind it")
	},
	into: func(in *api.VersionLinesRequest, args []string) { in.Environment, in.File = args[0], args[1] },
	run: func(ctx context.Context, c *call, in *api.VersionLinesRequest) error {
		at := strings.LastIndexByte(in.File, ':')
		line, err := strconv.Atoi(in.File[at+1:])
		if at < 1 || err != nil || line < 1 {
			return usageError{&fault.Error{
				Kind: fault.Invalid, Detail: fmt.Sprintf("which line? name a place as manifests/site.pp:12, not %.200q", in.File),
				Hint: fmt.Sprintf("its beginning: `tutti code show %s %.200s:1`", in.Environment, strings.TrimRight(in.File, ":")),
			}}
		}
		in.File, in.Line = in.File[:at], line
		return showAnswer(ctx, c.app, api.VersionLines, *in, printLines)
	},
}

// printLines numbers the lines, and marks the one that is meant.
func printLines(to print.Printer, code api.CodeLines) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s:%d of %s, version %s\n", code.File, code.Line, code.Environment, short(code.Version))
	width := len(strconv.Itoa(code.From + len(code.Lines)))
	for i, line := range code.Lines {
		mark := ' '
		if code.From+i == code.Line {
			mark = '>'
		}
		shown := ""
		if line != "" {
			shown = "  " + print.OneLine(strings.ReplaceAll(line, "\t", "    "))
		}
		fmt.Fprintf(&text, "%c %*d%s\n", mark, width, code.From+i, shown)
	}
	return to.Text(text.String())
}
