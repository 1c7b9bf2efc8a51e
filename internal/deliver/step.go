package deliver

import (
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Step is one change of a node's delivery. It was decided on what was stored, and is
// taken only if that is still so.
type Step struct {
	Node     fleet.Certname
	From, To Mode        // in force, before and after
	Base     int64       // number of the newest generation, before
	Next     *Generation // appended as Base+1; nil: none
}

// comeIn is why the first generation in released mode was released.
const comeIn = "the node came into released mode with it"

// Enter is the step that brings mode into force; nil when it is in force. A node that
// comes into released mode keeps the catalog that it has.
func Enter(s Standing, mode Mode, now time.Time, by string) *Step {
	if s.Force == mode {
		return nil
	}
	step := &Step{Node: s.Node, From: s.Force, To: mode, Base: s.base()}
	if mode == Released && s.Newest != nil && !s.has(*s.Newest) {
		step.Next = &Generation{Node: s.Node, Number: step.Base + 1, Catalog: *s.Newest, At: now, By: by, Why: comeIn, Promoted: true}
	}
	return step
}

// Order is what is to be released to a node, and why.
type Order struct {
	Catalog Catalog
	Release int64
	By, Why string
}

// Advance is the step that releases a catalog to a node; nil when the node has exactly
// that. Conflict for a node that is not in released mode, or is pinned.
func Advance(s Standing, o Order, now time.Time) (*Step, error) {
	switch {
	case s.Force != Released:
		return nil,
			fault.New(fault.Conflict, "%s is in live mode: it has the newest catalog at once; to release to it: tutti catalog mode %s released", s.Node, s.Node)
	case !s.Pin.At.IsZero():
		return nil, fault.New(fault.Conflict, "%s is pinned to generation %d by %s (%s)", s.Node, s.base(), s.Pin.By, s.Pin.Why)
	case o.Catalog.Digest == "" || o.Catalog.Environment == "" || o.Catalog.Version == "":
		return nil, fault.New(fault.Invalid, "what is to be released to %s is no stored catalog", s.Node)
	case s.has(o.Catalog):
		return nil, nil //nolint:nilnil // there is nothing to do
	}
	return &Step{Node: s.Node, From: Released, To: Released, Base: s.base(), Next: &Generation{
		Node: s.Node, Number: s.base() + 1, Catalog: o.Catalog, Release: o.Release, At: now, By: o.By, Why: o.Why,
	}}, nil
}

// has says whether the newest generation is this catalog, of the same code.
func (s Standing) has(c Catalog) bool {
	return s.Head != nil && s.Head.Digest == c.Digest && s.Head.Version == c.Version && s.Head.Environment == c.Environment
}
