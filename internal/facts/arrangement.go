package facts

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/facts/scan"
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
// facts (Trusted) has no place in it.

// Arranged gives canonical facts in the order in which the node told them, without what
// servers add (see Trusted). Invalid for an arrangement of other facts.
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
	c := cursor{Scanner: scan.Scanner{What: "facts", Src: text}}
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
	s := scan.Scanner{What: "facts", Src: text}
	r.out = append(r.out, '[')
	first := true
	err := s.Array(func() error {
		element, err := s.Raw()
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
		return nil,
			fault.New(fault.Invalid, "the facts' arrangement is one of other facts: a part has %s, the object has %d", fault.Count(len(texts), "member"), size)
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
