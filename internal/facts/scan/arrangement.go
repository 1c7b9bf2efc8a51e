package scan

import (
	"strconv"
	"strings"
)

// Arrangement notes an arrangement while a value is brought into canonical form.
type Arrangement struct {
	parts   []string
	doubled bool // an object named a member twice, which no Ruby writes: nothing is noted
}

// begin keeps a place for the object that begins.
func (a *Arrangement) begin() (part int) {
	if a == nil {
		return 0
	}
	a.parts = append(a.parts, "")
	return len(a.parts) - 1
}

// note says in which order the members of an object came; sorted are the same ones, each
// with its place as it came.
func (a *Arrangement) note(part int, sorted []member) {
	if a == nil {
		return
	}
	places := make([]int, len(sorted))
	for place, m := range sorted {
		if place > 0 && sorted[place-1].key == m.key {
			a.doubled = true
			return
		}
		places[m.came] = place
	}
	var text []byte
	for i, place := range places {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(place), 10)
	}
	a.parts[part] = string(text)
}

// Text is what was noted; empty where everything came sorted.
func (a *Arrangement) Text() string {
	if a == nil || a.doubled {
		return ""
	}
	return strings.TrimRight(strings.Join(a.parts, ";"), ";")
}

// sorted tells whether the members came in order, each once.
func sorted(members []member) bool {
	for i := 1; i < len(members); i++ {
		if members[i].key <= members[i-1].key {
			return false
		}
	}
	return true
}
