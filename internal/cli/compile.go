package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fleet"
)

var compileCommand = asking{noun{
	use: "compile", short: "See and steer what is compiled",
	verbs: []declared{compileQueue, compileShow, compileNow, compileVerify, compileVerifications, compilePause, compileResume},
}}

// compilationTable is rows of the queue, or of what became of them.
func compilationTable(empty string) print.Table[api.Compilation] {
	return print.Table[api.Compilation]{
		Columns: []string{"id", "node", "environment", "version", "for", "state", "wanted", "finished", "took", "error"},
		Spare:   []string{"version", "wanted", "took", "environment", "for"},
		Row: func(c api.Compilation) []any {
			return []any{
				c.ID, c.Node, c.Environment, print.ID(c.Version), priorityText(c.Priority), print.State(compilationState(c)), c.WantedAt, someTime(c.FinishedAt),
				print.Took(time.Duration(c.WallMillis) * time.Millisecond), compilationError(c),
			}
		},
		Name:  func(c api.Compilation) string { return fmt.Sprint(c.ID) },
		Empty: empty,
	}
}

// priorityText is why something is compiled, in words.
func priorityText(priority string) string { return strings.ReplaceAll(priority, "_", " ") }

func compilationState(c api.Compilation) string {
	state := c.State
	if c.Reused {
		state = "done (reused)"
	}
	if c.Staged {
		state += ", staged"
	}
	return state
}

// compilationError is what went wrong, on one line.
func compilationError(c api.Compilation) string {
	switch {
	case c.Error != nil:
		return errorText(*c.Error)
	case c.RestsUntil != nil:
		return fmt.Sprintf("attempt %d: %s; again at %s", c.Attempts, c.Trouble, c.RestsUntil.Format(time.TimeOnly))
	case c.Trouble != "":
		return fmt.Sprintf("attempt %d: %s", c.Attempts, c.Trouble)
	}
	return ""
}

// errorText has the place in front, unless the message says it.
func errorText(e api.CompileError) string {
	if place := fleet.Place(e.File, e.Line); place != "" && !strings.Contains(e.Message, e.File) {
		return place + ": " + e.Message
	}
	return e.Message
}

// pauseText is a pause in words.
func pauseText(p api.CompilePaused) string {
	what, resume := "Compiling", "tutti compile resume"
	if p.Environment != "" {
		what, resume = "Compiling for "+p.Environment, resume+" --environment "+p.Environment
	}
	reason := ""
	if p.Reason != "" {
		reason = ": " + p.Reason
	}
	return fmt.Sprintf("%s is paused by %s since %s%s. To go on: %s", what, p.By, p.At.Format(time.RFC3339), reason, resume)
}

var compilePause = verb[api.CompilePauseRequest]{
	use: "pause", short: "Start no more compilations until they are resumed",
	long: "Start no more compilations, at all or for one environment. What runs goes on, stored catalogs are still given out, and what is wanted stays wanted.\n" +
		"The pause is stored: it holds for all servers and over restarts. Agents whose catalog must be compiled are told of it, and when to come back.",
	example: "  tutti compile pause --reason 'new disks'\n  tutti compile pause --environment staging",
	flags: func(f flagSet, in *api.CompilePauseRequest) {
		f.StringVarP(&in.Environment, "environment", "e", "", "only this environment")
		f.StringVar(&in.Reason, "reason", "", "why; whoever waits is told")
	},
	run: does(api.CompilePause, func(in *api.CompilePauseRequest) string {
		return fmt.Sprintf("%s is paused. To go on: tutti compile resume%s", pausedWhat(in.Environment), flagOf(in.Environment))
	}),
}

var compileResume = verb[api.CompileResumeRequest]{
	use: "resume", short: "End a pause",
	long:    "End the pause of all, or with --environment that of one environment: each is ended by itself.",
	example: "  tutti compile resume\n  tutti compile resume --environment staging",
	flags: func(f flagSet, in *api.CompileResumeRequest) {
		f.StringVarP(&in.Environment, "environment", "e", "", "the pause of this environment")
	},
	run: does(api.CompileResume, func(in *api.CompileResumeRequest) string {
		return fmt.Sprintf("%s goes on", pausedWhat(in.Environment))
	}),
}

func pausedWhat(environment string) string {
	if environment == "" {
		return "Compiling"
	}
	return "Compiling for " + environment
}

func flagOf(environment string) string {
	if environment == "" {
		return ""
	}
	return " --environment " + environment
}
