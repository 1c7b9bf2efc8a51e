package job

import "time"

// Step is the transition function of a run. What is final stays; what was heard
// before, or comes too late to matter, changes nothing.
func (r Run) Step(e Event) (Run, Verdict) {
	switch {
	case e.Node != "" && e.Node != r.Node:
		return r, Foreign
	case r.State.Final():
		return r, Same
	}
	next, took := r.hear(e)
	if !took {
		return r, Same
	}
	return next, Took
}

// hear is Step for a run that has not ended, and who may speak of it.
func (r Run) hear(e Event) (Run, bool) {
	switch e.What {
	case WasSent:
		return r.sent(e)
	case WasNotSent:
		return r.notSent(e)
	case WasResent, WasAsked, WasLeft, Doubted:
		return r.looked(e)
	case Accepted:
		return r.accepted(e)
	case Ended:
		return r.ended(e)
	case NotRun:
		return r.notRun(e)
	case Unknown:
		return r.unknown(e)
	case ToldToStop:
		return r.told(e)
	case CannotStop:
		return r.cannotStop(e)
	case DroppedOut:
		return r.dropped(e)
	}
	return r, false
}

func (r Run) sent(e Event) (Run, bool) {
	if r.State != Waiting {
		return r, false
	}
	r.State, r.Reason, r.SentAt, r.DueAt, r.Attempts = Sent, "", e.At, e.Due, 1
	return r, true
}

// notSent takes back what never left. An order that was sent before may have
// arrived then: it is left as it is.
func (r Run) notSent(e Event) (Run, bool) {
	switch {
	case r.State != Sent:
		return r, false
	case r.Attempts > 1 || r.Ending != "":
		return r.looked(e)
	}
	r.State, r.SentAt, r.DueAt, r.Attempts = Waiting, time.Time{}, time.Time{}, 0
	return r, true
}

func (r Run) looked(e Event) (Run, bool) {
	if r.State == Waiting || e.What == WasResent && r.State != Sent {
		return r, false
	}
	if e.What == Doubted && r.Ending != "" { // it ends soon enough
		return r, false
	}
	r.DueAt = e.Due
	if e.What == WasResent {
		r.Attempts++
	}
	if r.Ending == "" && e.What != WasNotSent {
		r.Reason = e.Reason
	}
	return r, true
}

// accepted also takes a word of a run that waits: it can only be the answer to an
// order that we thought had not left.
func (r Run) accepted(e Event) (Run, bool) {
	if r.State == Running {
		return r.answered()
	}
	r.State, r.StartedAt = Running, e.At
	if r.Ending == "" {
		r.Reason = ""
	}
	if r.SentAt.IsZero() {
		r.SentAt = e.At
	}
	if r.Ending == "" { // otherwise it is being stopped, and that does not take longer now
		r.DueAt = e.Due
	}
	return r, true
}

// answered takes back what was said of a run while its node did not answer.
func (r Run) answered() (Run, bool) {
	if r.Ending != "" || r.Reason == "" {
		return r, false
	}
	r.Reason = ""
	return r, true
}

// ended ends a run as its node says.
func (r Run) ended(e Event) (Run, bool) {
	if e.Outcome == nil || !e.State.Final() {
		return r, false
	}
	if r.StartedAt.IsZero() {
		r.StartedAt = e.At
	}
	exit := e.Outcome.ExitCode
	r.ExitCode, r.Puppet, r.Output = &exit, e.Outcome.Puppet, e.Outcome.Output
	return r.asTold(e), true
}

// notRun ends a run that its node says it did not run.
func (r Run) notRun(e Event) (Run, bool) {
	if !e.State.Final() {
		return r, false
	}
	return r.asTold(e), true
}

// asTold ends a run as an event says; but one that was told to stop and did not succeed ends
// as it was told.
func (r Run) asTold(e Event) Run {
	state := e.State
	if r.Ending != "" && state != Succeeded {
		state, e.Reason = r.Ending, join(r.Reason, e.Reason)
	}
	return r.final(state, e)
}

// unknown is what a node says of a run that it does not have, or of which it does
// not know how it ended.
func (r Run) unknown(e Event) (Run, bool) {
	switch {
	case r.State == Waiting:
		return r, false
	case r.Ending != "":
		e.Reason = join(r.Reason, e.Reason)
		return r.final(r.Ending, e), true
	case r.State == Sent: // it never arrived: send it again
		r.DueAt = e.At
		return r, true
	}
	return r.final(Lost, e), true
}

func (r Run) told(e Event) (Run, bool) {
	if r.State == Waiting || r.Ending != "" {
		return r, false
	}
	r.Ending, r.Reason, r.DueAt = e.State, e.Reason, e.Due
	return r, true
}

// cannotStop ends a run that was to be stopped: nothing else will end it. What it does on its node goes on.
func (r Run) cannotStop(e Event) (Run, bool) {
	if r.Ending == "" {
		return r, false
	}
	e.Reason = join(join(r.Reason, e.Reason), "it may still run")
	return r.final(r.Ending, e), true
}

// dropped ends a run that the server gives up. What waits cannot be lost, and what was
// sent cannot be skipped.
func (r Run) dropped(e Event) (Run, bool) {
	fits := false
	switch e.State {
	case Offline, Skipped:
		fits = r.State == Waiting
	case Lost, TimedOut, Killed:
		fits = r.State != Waiting
	case Errored:
		fits = true
	case Waiting, Sent, Running, Succeeded, RunFailed, Refused:
	}
	if !fits {
		return r, false
	}
	return r.final(e.State, e), true
}

func (r Run) final(state State, e Event) Run {
	r.State, r.Reason, r.FinishedAt, r.DueAt, r.Ending = state, e.Reason, e.At, time.Time{}, ""
	return r
}

func join(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "; " + second
}
