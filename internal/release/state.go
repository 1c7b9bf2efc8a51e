package release

import "slices"

// State of a release; see the package comment.
type State string

// The states of a release.
const (
	WaitingApproval  State = "waiting_approval"
	Running          State = "running"
	Paused           State = "paused"
	Stopping         State = "stopping"
	Done             State = "done"
	DoneWithFailures State = "done_with_failures"
	Aborted          State = "aborted"
)

// States is every state of a release.
func States() []State {
	return []State{WaitingApproval, Running, Paused, Stopping, Done, DoneWithFailures, Aborted}
}

// Final says whether a release has ended.
func (s State) Final() bool { return s == Done || s == DoneWithFailures || s == Aborted }

// OpenStates is the states that are not final.
func OpenStates() []State { return slices.DeleteFunc(States(), State.Final) }

// Hold is why a release is paused.
type Hold string

// Why a release is paused.
const (
	NoHold      Hold = ""
	ByHand      Hold = "by_hand"
	OverBudget  Hold = "budget"    // too many targets failed
	ForPromoter Hold = "promotion" // the wave has ended, and somebody has to promote it
	Frozen      Hold = "freeze"    // nothing begins now; it goes on by itself
	ByPolicy    Hold = "policy"    // a rule denies it
	Trouble     Hold = "trouble"   // the next step cannot be taken
)

// Holds is every reason for which a release is paused.
func Holds() []Hold { return []Hold{ByHand, OverBudget, ForPromoter, Frozen, ByPolicy, Trouble} }

// Phase of a wave; see the package comment.
type Phase string

// The phases of a wave.
const (
	NotBegun   Phase = "waiting"
	Releasing  Phase = "releasing"
	Rehearsing Phase = "rehearsing"
	Applying   Phase = "running"
	Ended      Phase = "ended"
)

// Phases is every phase of a wave, in order.
func Phases() []Phase { return []Phase{NotBegun, Releasing, Rehearsing, Applying, Ended} }

// Standing is the state of a target; see the package comment.
type Standing string

// The states of a target.
const (
	Waiting    Standing = "waiting"
	Superseded Standing = "superseded"
	Refused    Standing = "refused"
	Sent       Standing = "sent"     // its generation is set
	AtWork     Standing = "applying" // its run goes on, or its report is waited for
	Unchanged  Standing = "ok"       // applied; nothing had to change
	Changed    Standing = "changed"  // applied
	Failed     Standing = "failed"
	Foreign    Standing = "foreign" // its run applied another catalog
	Skipped    Standing = "skipped"
	Offline    Standing = "offline"
	TimedOut   Standing = "timed_out"
)

// Standings is every state of a target, in the order in which people are told of them.
func Standings() []Standing {
	return []Standing{Waiting, Sent, AtWork, Unchanged, Changed, Failed, Foreign, TimedOut, Offline, Skipped, Superseded, Refused}
}

// Final says whether a target stays as it is.
func (s Standing) Final() bool { return s != Waiting && s != Sent && s != AtWork }
