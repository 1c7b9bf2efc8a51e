package inventory

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Puppet code may iterate over a hash of facts, so the order in which a node tells its
// facts can be visible in its catalog. Facts are compared, kept and named by their canonical
// form, which is sorted; an arrangement says how to bring that form back into the order in
// which the facts came. It is empty for facts that came sorted.
//
// An arrangement has one part for each object of the facts, in the order in which the
// objects begin, joined by semicolons. A part is empty for an object whose members came
// sorted. Otherwise it has a number for each member as it came: the member's place among
// the sorted ones, from 0 on. Empty parts at the end are left out. What servers add to
// facts (TrustedFact) has no place in it.

// arranger notes an arrangement while a value is brought into canonical form.
type arranger struct {
	parts   []string
	doubled bool // an object named a member twice, which no Ruby writes: nothing is noted
}

// begin keeps a place for the object that begins.
func (a *arranger) begin() (part int) {
	if a == nil {
		return 0
	}
	a.parts = append(a.parts, "")
	return len(a.parts) - 1
}

// note says in which order the members of an object came; sorted are the same ones, each
// with its place as it came.
func (a *arranger) note(part int, sorted []member) {
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

func (a *arranger) text() string {
	if a == nil || a.doubled {
		return ""
	}
	return strings.TrimRight(strings.Join(a.parts, ";"), ";")
}

// Arranged gives canonical facts in the order in which the node told them, without what
// servers add (see TrustedFact). Invalid for an arrangement of other facts.
func Arranged(values json.RawMessage, arrangement string) (json.RawMessage, error) {
	own, err := WithoutTrusted(values)
	if err != nil || arrangement == "" {
		return own, err
	}
	r := rearranger{out: make([]byte, 0, len(own)), rest: arrangement, more: true}
	if err := r.object(string(own)); err != nil {
		return nil, err
	}
	if r.more {
		return nil, fault.New(fault.Invalid, "the facts' arrangement has more parts than the facts have objects")
	}
	return r.out, nil
}

// rearranger writes a canonical value in an arranged order.
type rearranger struct {
	out  []byte
	rest string // parts that were not used yet
	more bool   // there are some
}

// next is the part of the object that begins.
func (r *rearranger) next() (part string) {
	part, r.rest, r.more = strings.Cut(r.rest, ";")
	return part
}

func (r *rearranger) value(text string) error {
	switch {
	case !r.more || !strings.Contains(text, "{"): // nothing within is arranged
		r.out = append(r.out, text...)
		return nil
	case text[0] == '{':
		return r.object(text)
	case text[0] == '[':
		return r.array(text)
	}
	r.out = append(r.out, text...)
	return nil
}

func (r *rearranger) object(text string) error {
	var members []string
	var values []string
	c := cursor{scanner: scanner{what: "facts", src: text}}
	for {
		if err := c.next(); err != nil {
			return err
		}
		if !c.ok {
			break
		}
		members, values = append(members, c.member), append(values, c.value)
	}
	places, err := placesOf(r.next(), len(members))
	if err != nil {
		return err
	}
	r.out = append(r.out, '{')
	for i := range members {
		place := i
		if places != nil {
			place = places[i]
		}
		if i > 0 {
			r.out = append(r.out, ',')
		}
		r.out = append(r.out, members[place][:len(members[place])-len(values[place])]...)
		if err := r.value(values[place]); err != nil {
			return err
		}
	}
	r.out = append(r.out, '}')
	return nil
}

func (r *rearranger) array(text string) error {
	s := scanner{what: "facts", src: text}
	r.out = append(r.out, '[')
	first := true
	err := s.array(func() error {
		element, err := s.raw()
		if err != nil {
			return err
		}
		if !first {
			r.out = append(r.out, ',')
		}
		first = false
		return r.value(element)
	})
	r.out = append(r.out, ']')
	return err
}

// placesOf reads one part of an arrangement, of an object with so many members; nil for a
// sorted one.
func placesOf(part string, size int) ([]int, error) {
	if part == "" {
		return nil, nil
	}
	texts := strings.Split(part, ",")
	if len(texts) != size {
		return nil, fault.New(fault.Invalid, "the facts' arrangement is one of other facts: a part has %d places, the object has %d members", len(texts), size)
	}
	places := make([]int, size)
	taken := make([]bool, size)
	for i, text := range texts {
		place, err := strconv.Atoi(text)
		if err != nil || place < 0 || place >= size || taken[place] {
			return nil, fault.New(fault.Invalid, "the facts' arrangement has the place %.20q, not each number below %d once", text, size)
		}
		places[i], taken[place] = place, true
	}
	return places, nil
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
