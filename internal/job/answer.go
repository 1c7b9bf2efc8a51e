package job

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// AnswerKind is what kind of message an answer is.
type AnswerKind uint8

// The kinds of answer.
const (
	Provisional AnswerKind = iota // the node has the order
	Response                      // the results of a run
	Reply                         // the results of a question about a run
	Failure                       // the order, or the question, was not carried out
)

// Answer is what a node says. Its transaction names a run, or a question about one.
type Answer struct {
	Node        fleet.Certname // proved by its certificate
	Kind        AnswerKind
	Transaction string
	Results     jsontext.Value // of Response and Reply
	Description string         // of Failure
	Aborted     bool           // of Failure: the action itself says that it could not be done
}

// bytes is about what an answer takes in memory.
func (a Answer) bytes() int64 { return int64(len(a.Results)+len(a.Description)) + 1024 }

// maxReasonBytes is how much of what a node says becomes a reason.
const maxReasonBytes = 1000

// event is what an answer means for a run of a job of the kind; false: nothing.
func (a Answer) event(kind Kind, now, due time.Time) (Event, bool) {
	run, question := questionOf(a.Transaction)
	e := Event{Run: run, Node: a.Node, At: now, Due: due}
	switch {
	case a.Kind == Provisional && question == "":
		e.What = Accepted
	case a.Kind == Response && question == "":
		a.response(&e, kind)
	case a.Kind == Reply && question == askStatus:
		return e, a.status(&e, kind)
	case a.Kind == Reply && question == askCancel:
		return e, a.cancelled(&e)
	case a.Kind == Failure && question == "":
		e.What, e.Reason = NotRun, clean(a.Description)
		e.State = failureState(a.Description)
		if kind == Action && a.Aborted {
			e.State = RunFailed
		}
	case a.Kind == Failure && question == askStatus && strings.HasPrefix(a.Description, pxp.TooLarge): // it will be so each time
		e.What, e.State, e.Reason = NotRun, Errored, "what it gave is too large for its agent to send: "+clean(a.Description)
	case a.Kind == Failure && question == askCancel:
		e.What, e.Reason = CannotStop, "its agent cannot stop it: "+clean(a.Description)
	default:
		return e, false
	}
	return e, true
}

// failureState is what a failure's description says.
func failureState(description string) State {
	for _, known := range []struct {
		begins string
		state  State
	}{
		{pxp.UnknownModule, Refused},
		{pxp.UnknownAction, Refused},
		{pxp.Refused, Refused},
		{pxp.Cancelled, Killed},
		{pxp.TimedOut, TimedOut},
		{pxp.Vanished, Lost},
	} {
		if strings.HasPrefix(description, known.begins) {
			return known.state
		}
	}
	return Errored
}

// response reads the results of a run.
func (a Answer) response(e *Event, kind Kind) {
	e.What = Ended
	switch kind {
	case Puppet:
		e.puppet(a.Results)
		return
	case Action:
		e.action(string(a.Results))
		return
	case Task, Command, Script, File:
	}
	var o pxp.Outcome
	if err := json.Unmarshal(a.Results, &o); err != nil {
		e.unreadable()
		return
	}
	e.outcome(kind, o)
}

// unreadable is results that nobody can read.
func (e *Event) unreadable() {
	e.What, e.State, e.Reason = NotRun, Errored, "its agent answered with results that cannot be read"
}

func (e *Event) outcome(kind Kind, o pxp.Outcome) {
	e.State, e.Reason = Succeeded, fmt.Sprintf("exit code %d", o.ExitCode)
	switch {
	case o.Ended == pxp.EndedByOrder:
		e.State, e.Reason = Killed, "stopped by its agent, as ordered"
	case o.Ended == pxp.EndedByTime:
		e.State, e.Reason = TimedOut, "stopped by its agent after the longest time that the node allows"
	case o.ExitCode != 0:
		e.State = RunFailed
	}
	if kind == Task {
		said := readTaskOutput(o.Stdout)
		if o.Stdout = said.text; said.failed && e.State == Succeeded {
			e.State, e.Reason = RunFailed, strings.TrimSuffix(e.Reason+", and its output has an _error: "+clean(said.problem), ": ")
		}
	}
	out, chunks := EncodeLines(o.Stdout, o.Stderr, e.At)
	e.Outcome = &Outcome{ExitCode: o.ExitCode, Output: out, Chunks: chunks}
}

// action reads the results of an action: they are the run's output, as they are.
func (e *Event) action(results string) {
	e.State, e.Reason = Succeeded, "the action is done"
	out, chunks := EncodeLines(strings.TrimSpace(results), "", e.At)
	e.Outcome = &Outcome{Output: out, Chunks: chunks}
}

// maxMetrics is how many figures a Puppet run may have; Puppet has nine.
const maxMetrics = 200

// puppet reads the results of a Puppet run.
func (e *Event) puppet(results []byte) {
	var p pxp.PuppetResults
	if err := json.Unmarshal(results, &p); err != nil {
		e.unreadable()
		return
	}
	if len(p.Metrics) > maxMetrics {
		e.unreadable()
		return
	}
	out, chunks := EncodeLines("", p.Stderr, e.At)
	e.Outcome = &Outcome{ExitCode: p.ExitCode, Output: out, Chunks: chunks, Puppet: &PuppetResult{
		Status: clean(p.Status), Transaction: clean(p.TransactionUUID), Environment: clean(p.Environment), Metrics: p.Metrics, ErrorType: clean(p.ErrorType),
	}, kept: p.Catalog != ""}
	switch {
	case p.ErrorType == "" && p.Status == "" && p.ExitCode == 0: // it was killed before it could say anything
		e.State, e.Reason = Errored, "Puppet ended without a word"
	case p.ErrorType == "" && p.Status != "failed" && p.ExitCode == 0:
		e.State, e.Reason = Succeeded, "Puppet ran: "+clean(p.Status)
	case p.ErrorType == "" || p.ErrorType == pxp.AgentExitNonZero:
		e.State, e.Reason = RunFailed, join("Puppet ran and failed", clean(p.Error))
	default:
		e.State, e.Reason = Errored, join("Puppet did not run: "+clean(p.ErrorType), clean(p.Error))
	}
}

// executionError is the kind of error that stands in for output in the status of what did not run.
const executionError = "puppetlabs.pxp-agent/execution-error"

// notRunText finds the error that stands in for output.
func notRunText(stdout string) (string, bool) {
	var wrapper struct {
		Error *struct {
			Kind string `json:"kind"`
			Msg  string `json:"msg"`
		} `json:"_error"`
	}
	if !strings.Contains(stdout, executionError) || json.Unmarshal([]byte(stdout), &wrapper) != nil || wrapper.Error == nil ||
		wrapper.Error.Kind != executionError {
		return "", false
	}
	return wrapper.Error.Msg, true
}

// status reads how a run stands.
func (a Answer) status(e *Event, kind Kind) bool {
	var s pxp.StatusResults
	if json.Unmarshal(a.Results, &s) != nil || s.Transaction != e.Run {
		return false
	}
	problem, wrapped := notRunText(s.Stdout)
	switch {
	case s.Status == pxp.Running:
		e.What = Accepted
	case s.Status != pxp.Success && s.Status != pxp.Failed:
		e.What, e.Reason = Unknown, join("its agent does not know it", clean(problem))
	case wrapped:
		e.What, e.State, e.Reason = NotRun, failureState(problem), clean(problem)
	case s.ExitCode == nil:
		return false
	case kind == Puppet:
		e.What = Ended
		e.puppet([]byte(s.Stdout))
	case kind == Action && *s.ExitCode != 0: // what the program of a module wrote, which is no answer of its action
		e.What, e.State, e.Reason = NotRun, RunFailed, join("the action failed", clean(s.Stderr))
	case kind == Action:
		e.What = Ended
		e.action(s.Stdout)
	default:
		e.What = Ended
		e.outcome(kind, pxp.Outcome{ExitCode: *s.ExitCode, Stdout: s.Stdout, Stderr: s.Stderr})
	}
	return true
}

// cancelled reads what became of telling a run to stop. Its own outcome follows, unless the
// run is not known there. If it was over, its outcome is on its way, or was lost.
func (a Answer) cancelled(e *Event) bool {
	var c pxp.CancelResults
	if json.Unmarshal(a.Results, &c) != nil || c.Transaction != e.Run {
		return false
	}
	switch c.Status {
	case pxp.Unknown:
		e.What, e.Reason = Unknown, "its agent does not know it"
		return true
	case pxp.Success, pxp.Failed:
		e.What = WasLeft
		return true
	}
	return false
}

// wantsStatus says whether what an answer did to a run leaves a question: an order that was sent
// more than once may have been carried out before, and then no outcome follows.
func (a Answer) wantsStatus(e Event, now Run) bool {
	return e.What == Accepted && a.Kind == Provisional && now.State == Running && now.Attempts > 1 || e.What == WasLeft
}

// clean makes text of a node fit to show: UTF-8 without control characters, not too long.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }), " ")
	if len(text) > maxReasonBytes {
		text = strings.ToValidUTF8(text[:maxReasonBytes], "") + "…"
	}
	return text
}
