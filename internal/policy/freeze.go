package policy

import (
	"slices"
	"time"
	_ "time/tzdata" // zones are known wherever a server runs

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Freezing says when nothing begins: from one instant to another, or every week.
type Freezing struct {
	Environments []fleet.Environment `json:"environments,omitempty"` // none: all
	From         time.Time           `json:"from,omitzero"`
	To           time.Time           `json:"to,omitzero"` // the first instant that is free again
	Weekly       string              `json:"weekly,omitempty"`
	Zone         string              `json:"zone"` // of Weekly, and in which times are shown
	Why          string              `json:"why"`
}

// Freeze is one version of a freezing with a name.
type Freeze struct {
	Name string
	fleet.Stamp
	Freezing
}

// MaxFreezes bounds how many there are.
const MaxFreezes = 500

// Check says what is wrong with a freeze.
func (f Freeze) Check() error {
	if err := checkName("freeze", f.Name); err != nil {
		return err
	}
	if err := checkEnvironments(f.Environments); err != nil {
		return err
	}
	if f.Zone == "" {
		return fault.New(fault.Invalid, "field zone: name the time zone, as Europe/Berlin or UTC")
	}
	if _, err := zone(f.Zone); err != nil {
		return err
	}
	if err := checkText("why", f.Why); err != nil {
		return err
	}
	once := !f.From.IsZero() || !f.To.IsZero()
	switch {
	case once && f.Weekly != "":
		return fault.New(fault.Invalid, "field weekly: from and to are a freeze that comes once; give one or the other")
	case f.Weekly != "":
		_, err := ParseWeekly(f.Weekly)
		return err
	case f.From.IsZero() || f.To.IsZero():
		return fault.New(fault.Invalid, "field from: a freeze needs from and to, or weekly")
	case !f.From.Before(f.To):
		return fault.New(fault.Invalid, "field to: the freeze ends before it begins")
	}
	return nil
}

// Frozen is that nothing begins, and until when.
type Frozen struct {
	Until   time.Time // of what goes on for longer than horizon: some time behind that
	Why     string
	Freezes []string // names of those that hold now
}

// horizon is how far an end is looked for: freezes may follow each other forever.
const horizon = 400 * 24 * time.Hour

// FrozenAt says whether something may begin in an environment at a time; nil: it may. Freezes that follow each other are one:
// Until is the first instant at which none holds.
func FrozenAt(freezes []Freeze, env fleet.Environment, at time.Time) *Frozen {
	freezes = slices.DeleteFunc(slices.Clone(freezes), func(f Freeze) bool { return f.Removed || !in(f.Environments, env) })
	frozen := Frozen{Until: at}
	for _, f := range freezes {
		if end, holds := f.holds(at); holds {
			frozen.Freezes = append(frozen.Freezes, f.Name)
			if end.After(frozen.Until) {
				frozen.Until, frozen.Why = end, f.Why
			}
		}
	}
	if len(frozen.Freezes) == 0 {
		return nil
	}
	for more := true; more; {
		more = false
		for _, f := range freezes {
			if end, holds := f.holds(frozen.Until); holds {
				frozen.Until, more = end, true
			}
		}
		if frozen.Until.Sub(at) > horizon {
			break
		}
	}
	return &frozen
}

// holds says whether a freeze holds at a time, and when it ends then. What is damaged holds, without an end.
func (f Freeze) holds(at time.Time) (end time.Time, holds bool) {
	if f.Weekly == "" {
		return f.To, !at.Before(f.From) && at.Before(f.To)
	}
	weekly, err := ParseWeekly(f.Weekly)
	where, wrong := zone(f.Zone)
	if err != nil || wrong != nil {
		return at.Add(2 * horizon), true
	}
	return weekly.holds(at, where)
}
