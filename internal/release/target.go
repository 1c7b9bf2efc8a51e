package release

import (
	"cmp"
	"time"
)

// Step is what a run's result makes of a target. Applied is what became of it: a run that went well is judged by
// its report.
func (t Target) Step(r Result) Target {
	if t.State.Final() || t.State == Waiting {
		return t
	}
	switch r.Stands {
	case Pending:
	case Begun:
		t.State = AtWork
	case Succeeded:
		t.State, t.Report, t.RunEnded, t.RunChanged, t.Reason = AtWork, r.Transaction, r.At, r.Changed, "its report is waited for"
	case RunFailed:
		t.State, t.Report, t.Reason = Failed, r.Transaction, cmp.Or(r.Reason, "its run failed")
	case RunTimedOut:
		t.State, t.Reason = TimedOut, cmp.Or(r.Reason, "its run took too long")
	case RunOffline:
		t.State, t.Reason = Offline, cmp.Or(r.Reason, "it was not connected")
	case RunSkipped:
		t.State, t.Reason = Skipped, cmp.Or(r.Reason, "its run did not begin")
	}
	return t
}

// Rehearsed is what a run in noop mode makes of a target: one that went well is to be run.
func (t Target) Rehearsed(r Result) Target {
	if t.State != Sent || r.Stands == Pending || r.Stands == Begun || r.Stands == Succeeded {
		return t
	}
	stepped := t.Step(r)
	stepped.Reason = "in the rehearsal: " + stepped.Reason
	return stepped
}

// reportPatience is how long after a run its report is waited for.
const reportPatience = 2 * time.Minute

// Judge holds a run against its report: uuid is the catalog that it applied, ok whether there is a report.
func (t Target) Judge(uuid string, ok bool, now time.Time) Target {
	switch {
	case t.State != AtWork || t.RunEnded.IsZero():
	case ok && uuid == t.Catalog.UUID && t.RunChanged:
		t.State, t.Reason = Changed, ""
	case ok && uuid == t.Catalog.UUID:
		t.State, t.Reason = Unchanged, ""
	case ok:
		t.State, t.Reason = Foreign, "its run applied another catalog than was released ("+cmp.Or(uuid, "its report names none")+")"
	case now.Sub(t.RunEnded) > reportPatience:
		t.State, t.Reason = Failed, "its run ended well, but no report of it came: nobody knows what it applied"
	}
	return t
}

// Again has a target that was skipped wait in another round.
func (t Target) Again(round int) Target {
	if t.State == Skipped {
		t.State, t.Round, t.Reason, t.Report, t.RunEnded, t.RunChanged = Waiting, round, "", "", time.Time{}, false
	}
	return t
}

// end is t in a final state.
func (t Target) end(s Standing, reason string) Target {
	if !t.State.Final() {
		t.State, t.Reason = s, reason
	}
	return t
}
