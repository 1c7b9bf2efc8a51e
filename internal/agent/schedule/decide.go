package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Config is when a node runs.
type Config struct {
	Node     string        // its name: where its slot is
	Interval time.Duration // between runs
	Splay    time.Duration // part of the interval that the fleet is spread over; none: all at its begin
	Gap      time.Duration // between the begins of runs that are told
}

// Check returns an Invalid fault for a configuration that cannot be followed.
func (c Config) Check() error {
	switch {
	case c.Interval < time.Second:
		return fault.New(fault.Invalid, "the interval between runs is %s; it must be at least one second", c.Interval)
	case c.Splay < 0 || c.Splay > c.Interval:
		return fault.New(fault.Invalid, "the splay %s must be between nothing and the interval, %s", c.Splay, c.Interval)
	case c.Gap < 0 || c.Gap > c.Interval:
		return fault.New(fault.Invalid, "the gap %s must be between nothing and the interval, %s", c.Gap, c.Interval)
	}
	return nil
}

// State is what is known of a node's runs.
type State struct {
	Running  string    `json:"running,omitzero"`  // the run that goes on; empty: none
	Began    time.Time `json:"began,omitzero"`    // the newest run, also the one that goes on
	Ended    time.Time `json:"ended,omitzero"`    // the newest run that is over
	Last     Outcome   `json:"last,omitzero"`     // of that
	Failures int       `json:"failures,omitzero"` // runs in a row that could not be done
	Told     time.Time `json:"told,omitzero"`     // since when somebody waits for a run; zero: nobody does
}

// Outcome is what came of a run.
type Outcome struct {
	Began   time.Time `json:"began,omitzero"` // set by End
	Status  Status    `json:"status,omitzero"`
	Pending int       `json:"pending,omitzero"`     // resources that noop kept from changing
	Detail  string    `json:"detail,omitzero"`      // why it was not done, for people
	Catalog string    `json:"catalog,omitzero"`     // digest of the catalog that it applied; empty: the one the server gave then
	Run     string    `json:"transaction,omitzero"` // its name on the node
	UUID    string    `json:"report,omitzero"`      // its report's transaction_uuid
}

// Status is how a run ended.
type Status string

// The ways to end.
const (
	Changed   Status = "changed"
	Unchanged Status = "unchanged"
	Failed    Status = "failed"   // it was done, and not all went well
	Disabled  Status = "disabled" // by who owns the node
	NotDone   Status = "not done"
)

// Why is the reason for a run.
type Why string

// The reasons, strongest first.
const (
	ByOrder    Why = "told"
	BySlot     Why = "scheduled"
	ByRetry    Why = "retry"
	ByNoReason Why = "" // one goes on
)

// Step is what comes next: a run at a time, which may have come. Without a reason there is none.
type Step struct {
	At  time.Time
	Why Why
}

// Due says whether the time has come.
func (s Step) Due(now time.Time) bool { return s.Why != ByNoReason && !s.At.After(now) }

// Decide says what comes next. It never gives a run while one goes on.
func Decide(c Config, s State, now time.Time) Step {
	if s.Running != "" {
		return Step{}
	}
	began := earlier(s.Began, now) // the clock may have been set back
	next := Step{At: now, Why: BySlot}
	if !began.IsZero() {
		next.At = Slot(c, began)
	}
	if s.Failures > 0 {
		next = sooner(Step{At: earlier(s.Ended, now).Add(Pause(c, s.Failures)), Why: ByRetry}, next)
	}
	if s.Told.IsZero() {
		return next
	}
	told := Step{At: earlier(s.Told, now), Why: ByOrder}
	if free := began.Add(c.gap(s.Failures)); !began.IsZero() && free.After(told.At) {
		told.At = free
	}
	return sooner(told, next)
}

func sooner(a, b Step) Step {
	if b.At.Before(a.At) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

// Slot is the first time after t at which the node's schedule has a run.
func Slot(c Config, t time.Time) time.Time {
	interval := c.Interval.Nanoseconds()
	begin := t.UnixNano() - floorMod(t.UnixNano(), interval)
	slot := time.Unix(0, begin+offset(c)).UTC()
	if !slot.After(t) {
		slot = slot.Add(c.Interval)
	}
	return slot
}

// offset is where in an interval the node's slot is.
func offset(c Config) int64 {
	if c.Splay <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(c.Node))
	return int64(binary.BigEndian.Uint64(sum[:8]) % uint64(c.Splay.Nanoseconds())) //nolint:gosec // it is below the splay
}

func floorMod(a, b int64) int64 { return (a%b + b) % b }

// firstPause is how soon a run is tried again that could not be done.
const firstPause = time.Minute

// Pause is how long after a number of runs in a row that could not be done the next is tried.
func Pause(c Config, failures int) time.Duration {
	return doubled(firstPause, failures-1, c.Interval)
}

func (c Config) gap(failures int) time.Duration { return doubled(c.Gap, failures, c.Interval) }

// doubled doubles d a number of times, up to a limit.
func doubled(d time.Duration, times int, most time.Duration) time.Duration {
	for ; times > 0 && d < most; times-- {
		d *= 2
	}
	return min(d, most)
}

// Begin is the state when a run begins.
func (s State) Begin(run string, now time.Time) State {
	s.Running, s.Began, s.Told = run, now, time.Time{}
	return s
}

// End is the state when the run that went on is over.
func (s State) End(o Outcome, now time.Time) State {
	o.Began = s.Began
	s.Running, s.Ended, s.Last = "", now, o
	if o.Status == NotDone {
		s.Failures++
	} else {
		s.Failures = 0
	}
	return s
}

// Tell is the state when somebody wants a run.
func (s State) Tell(now time.Time) State {
	if s.Told.IsZero() {
		s.Told = now
	}
	return s
}
