package deliver

import (
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Floor is the share of its resources, in percent, that a catalog must keep of what its node has. The zero Floor
// is passed as long as one resource is left; Off is passed by every catalog.
type Floor int

// Off is the floor of who wants no brake.
const Off Floor = -1

// ParseFloor reads a floor: off, or 0% to 100%.
func ParseFloor(text string) (Floor, error) {
	if text == "off" {
		return Off, nil
	}
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseUint(digits, 10, 8)
	if err != nil || !percent || n > 100 {
		return Off, fault.New(fault.Invalid, "a share of resources is off, or 0%% to 100%%, not %.40q", text)
	}
	return Floor(n), nil
}

func (f Floor) String() string {
	if f < 0 {
		return "off"
	}
	return strconv.Itoa(int(f)) + "%"
}

// under says whether left of was resources are too few.
func (f Floor) under(was, left int) bool {
	return f >= 0 && was > 0 && left < was && (left <= 0 || left*100 < was*int(f))
}

// Limits are the floors of the brake.
type Limits struct {
	Hold Floor // below it a catalog is held until somebody lets it go
	Warn Floor // below it a catalog is given with a warning
}

// Ruling is what the brake does with a catalog.
type Ruling string

// The rulings.
const (
	Give Ruling = "give"
	Warn Ruling = "warn" // it is given, and people are told
	Hold Ruling = "hold" // its node keeps what it has
)

// Brake rules on a catalog with left resources whose node has one with was resources. Both count what an agent would
// apply: stages, classes and exported resources are left out. A node without a catalog has none.
func Brake(was, left int, l Limits) Ruling {
	switch {
	case l.Hold.under(was, left):
		return Hold
	case l.Warn.under(was, left):
		return Warn
	}
	return Give
}

// The named findings of previews, releases and policies.
const (
	LostAll  = "lost-all"  // no resource is left
	LostMost = "lost-most" // fewer are left than the warning's floor
)

// LostText says a finding in words.
func LostText(finding string) string {
	if finding == LostAll {
		return "no resource is left but stages and classes"
	}
	return "most of the resources are gone"
}

// Lost names what a change that leaves left of was resources loses; empty: nothing to speak of. What is lost does not
// depend on what is held: a floor that is off leaves nothing left a finding.
func Lost(was, left int, l Limits) string {
	switch {
	case Floor(0).under(was, left):
		return LostAll
	case l.Warn.under(was, left), l.Hold.under(was, left):
		return LostMost
	}
	return ""
}
