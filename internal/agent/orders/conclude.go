package orders

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// conclude writes into a record how its transaction ended, from what was left
// and from the error that ended the work, if one did.
func conclude(r *Record, label string, action Action, o Output, err error) {
	r.End = time.Now().UTC()
	r.Status, r.Error = Failure, ""
	switch {
	case errors.Is(err, errStopped) || err == nil && o.Exit == nil && r.Stop != "":
		r.Error = cancelled(r.Stop)
	case errors.Is(err, errTooLong):
		r.Error = pxp.TimedOut + ": it had not begun by then"
	case err != nil:
		r.Error = describe(label, err)
		_, r.Aborted = errors.AsType[*Aborted](err)
	case o.Exit == nil:
		r.Status, r.Error = Undetermined, pxp.Vanished+", but no output is available"
	default:
		if _, err := resultsOf(label, action, o); err != nil {
			r.Error = err.Error()
			return
		}
		if *o.Exit == 0 {
			r.Status = Success
		}
	}
}

// describe is what a requester is told of an error.
func describe(label string, err error) string {
	if aborted, ok := errors.AsType[*Aborted](err); ok {
		return aborted.Message
	}
	detail := fault.Detail(err)
	if strings.HasPrefix(detail, pxp.Full) {
		return detail
	}
	if detail == "" {
		detail = "internal error; the log of the node's agent knows more"
	}
	return "Failed to execute the task for the " + label + ". Error: " + detail
}

func cancelled(reason string) string {
	if reason == "" {
		return pxp.Cancelled
	}
	return pxp.Cancelled + ": " + reason
}

// resultsOf reads the results of what a program left; its error is the whole text
// for the requester.
func resultsOf(label string, action Action, o Output) (jsontext.Value, error) {
	read := action.results()
	if read == nil {
		return outcome(o)
	}
	if !utf8.Valid(o.Stdout) || bytes.IndexByte(o.Stdout, 0) >= 0 {
		return nil, fmt.Errorf("The task executed for the %s returned invalid UTF-8 on stdout", label) //nolint:staticcheck // the original's words
	}
	results, err := read(o)
	if _, aborted := errors.AsType[*Aborted](err); aborted {
		return nil, err
	}
	switch {
	case err == nil:
		return results, nil
	case o.Ended == pxp.EndedByOrder:
		return nil, errors.New(pxp.Cancelled)
	case o.Ended == pxp.EndedByTime:
		return nil, errors.New(pxp.TimedOut)
	default:
		return nil, fmt.Errorf("The task executed for the %s %w", label, err) //nolint:staticcheck // the original's words
	}
}

func tooBig(size, most int) string {
	return fmt.Sprintf("Message size: %d exceeded max-message-size %d", size, most)
}
