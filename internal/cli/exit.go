package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// The exit codes. They are part of the interface: never renumbered.
const (
	exitDone        = 0
	exitFailed      = 1   // failed for another reason
	exitUsage       = 2   // the command line is wrong, or what it names: a file, a query, a value that the server cannot use
	exitDiffers     = 3   // there is a difference; only with --exit-code
	exitSomeFailed  = 4   // a job failed on some of its nodes; code has mistakes, does not compile, or its catalogs are held
	exitRefused     = 5   // the server refuses: it conflicts with what is there; or nodes refuse
	exitLate        = 6   // nodes were offline or took too long
	exitDenied      = 7   // not logged in, or no right
	exitUnreachable = 8   // no answer from the server
	exitInterrupted = 130 // Ctrl-C
)

// exitCode is the one table from error to exit code.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if _, ok := errors.AsType[usageError](err); ok || strings.HasPrefix(err.Error(), "unknown command") {
		return exitUsage
	}
	if _, ok := errors.AsType[*print.Unusable](err); ok {
		return exitUsage
	}
	if outcome, ok := errors.AsType[jobOutcome](err); ok {
		return outcome.code
	}
	if _, ok := errors.AsType[*api.CheckFailed](err); ok {
		return exitSomeFailed
	}
	switch {
	case errors.Is(err, errDiffers):
		return exitDiffers
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, api.ErrUnreachable):
		return exitUnreachable
	}
	switch fault.Of(err) {
	case fault.Denied:
		return exitDenied
	case fault.Conflict:
		return exitRefused
	case fault.Invalid:
		return exitUsage
	case fault.Internal, fault.NotFound, fault.Unavailable:
		return exitFailed
	}
	return exitFailed
}

// kindOf is the word for an error in JSON: that of its fault, unless the exit code says more.
func kindOf(err error) string {
	switch exitCode(err) {
	case exitUsage:
		return "usage"
	case exitUnreachable:
		return "unreachable"
	case exitInterrupted:
		return "interrupted"
	case exitSomeFailed:
		return "failed"
	case exitLate:
		return "late"
	}
	return fault.Of(err).String()
}

// failure is an error as programs read it, on one line of standard error.
type failure struct {
	Kind      string `json:"kind"`                 // usage, unreachable, interrupted, failed, late, or as the API's errors
	Message   string `json:"message"`              // what and why
	Hint      string `json:"hint,omitempty"`       // what to do next
	RequestID string `json:"request_id,omitempty"` // by which the server's log knows the request
	ExitCode  int    `json:"exit_code"`
}

// report says an error on standard error: in words, or as JSON for who asked for that.
func (a *app) report(err error) {
	told := failure{Kind: kindOf(err), Message: explain(err), Hint: fault.Hint(err), RequestID: api.RequestID(err), ExitCode: exitCode(err)}
	if a.printer().ForPrograms() {
		_ = print.Line(a.system.Err, told)
		return
	}
	text := told.Message
	switch {
	case told.Hint == "":
	case strings.Contains(text, "\n"): // the place of a mistake is shown below it
		text += "\n" + told.Hint
	default:
		text += "; " + told.Hint
	}
	_, _ = fmt.Fprintln(a.system.Err, "tutti:", print.Visible(text))
}

// errDiffers ends a command that has printed a difference. It is an answer, and
// nothing more is said.
var errDiffers = errors.New("there is a difference")

// errSaid ends a command that failed and has said why in its own words: nothing more is said.
var errSaid = errors.New("the reason was said")

// explain is err in words for the person at the terminal.
func explain(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	if detail := fault.Detail(err); detail != "" {
		return detail
	}
	return err.Error()
}
