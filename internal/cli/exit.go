package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// The exit codes. They are part of the interface: never renumbered.
const (
	exitDone        = 0
	exitFailed      = 1   // failed for another reason
	exitUsage       = 2   // the command line is wrong
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
	case fault.Internal, fault.Invalid, fault.NotFound, fault.Unavailable:
		return exitFailed
	}
	return exitFailed
}

// errDiffers ends a command that has printed a difference. It is an answer, and
// nothing more is said.
var errDiffers = errors.New("there is a difference")

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
