package facts

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fault"
)

// Patch is how one set of facts becomes another one. Objects are compared member by
// member, all other values as a whole. Paths are JSON pointers (RFC 6901) below the
// facts: /os/release/full.
type Patch struct {
	Changed map[string]json.RawMessage `json:"changed,omitempty"` // the new value at each path
	Removed []string                   `json:"removed,omitempty"` // paths that are gone
}

// Empty says that nothing differs.
func (p Patch) Empty() bool { return len(p.Changed)+len(p.Removed) == 0 }

// Difference is the patch that makes after of before; both are canonical objects.
func Difference(before, after json.RawMessage) (Patch, error) {
	p := patcher{Patch: Patch{Changed: map[string]json.RawMessage{}}}
	if !isObject(string(before)) || !isObject(string(after)) {
		return p.Patch, fault.New(fault.Invalid, "facts are compared that are no objects")
	}
	err := p.compare("", string(before), string(after))
	return p.Patch, err
}

func isObject(text string) bool { return text != "" && text[0] == '{' }

type patcher struct{ Patch }

func (p *patcher) compare(path, before, after string) error {
	if before == after {
		return nil
	}
	if !isObject(before) || !isObject(after) {
		p.Changed[path] = json.RawMessage(after)
		return nil
	}
	a, b := cursor{Scanner: scan.Scanner{What: "facts", Src: before}}, cursor{Scanner: scan.Scanner{What: "facts", Src: after}}
	if err := a.next(); err != nil {
		return err
	}
	if err := b.next(); err != nil {
		return err
	}
	for a.ok || b.ok {
		step := a.step(&b)
		if err := p.member(path, step, &a, &b); err != nil {
			return err
		}
		if err := advance(step, &a, &b); err != nil {
			return err
		}
	}
	return nil
}

// member compares one member, as differ.member does.
func (p *patcher) member(path string, step int, a, b *cursor) error {
	switch {
	case step < 0:
		p.Removed = append(p.Removed, below(path, a.name))
	case step > 0:
		p.Changed[below(path, b.name)] = json.RawMessage(b.value)
	case a.value != b.value:
		return p.compare(below(path, a.name), a.value, b.value)
	}
	return nil
}

// Apply makes the set that p leads to, in canonical form and within the bounds of a
// set. Invalid for a patch that is none of before.
func (p Patch) Apply(before json.RawMessage) (json.RawMessage, error) {
	root := new(edit)
	for _, path := range slices.Sorted(maps.Keys(p.Changed)) {
		if err := root.add(path, edit{set: true, value: p.Changed[path]}); err != nil {
			return nil, err
		}
	}
	for _, path := range p.Removed {
		if err := root.add(path, edit{gone: true}); err != nil {
			return nil, err
		}
	}
	out, err := root.write(make([]byte, 0, len(before)+len(before)/8), "", string(before))
	if err != nil {
		return nil, err
	}
	canonical, _, err := Canonical(out)
	return canonical, err
}

// edit is what happens to one value: it is set, goes, or has edits below it.
type edit struct {
	set, gone bool
	value     json.RawMessage
	below     map[string]*edit
}

func (e *edit) add(path string, leaf edit) error {
	steps, err := pointerSteps(path)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if e.set || e.gone {
			return fault.New(fault.Invalid, "the difference names %.200q and also a path above it", path)
		}
		if e.below == nil {
			e.below = map[string]*edit{}
		}
		if e.below[step] == nil {
			e.below[step] = new(edit)
		}
		e = e.below[step]
	}
	if e.set || e.gone || e.below != nil {
		return fault.New(fault.Invalid, "the difference names %.200q twice, or also a path below it", path)
	}
	*e = leaf
	return nil
}

// write appends what e makes of the object before, which is at path.
func (e *edit) write(dst []byte, path, before string) ([]byte, error) {
	if e.set {
		return append(dst, e.value...), nil
	}
	if !isObject(before) {
		return nil, fault.New(fault.Invalid, "the difference changes something below %.200q, which is no object in its base", path)
	}
	names := slices.Sorted(maps.Keys(e.below))
	c := cursor{Scanner: scan.Scanner{What: "facts", Src: before}}
	if err := c.next(); err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	first := true
	put := func(name string) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(scan.AppendQuoted(dst, name), ':')
	}
	for c.ok || len(names) > 0 {
		if len(names) == 0 || c.ok && c.name < names[0] {
			put(c.name)
			dst = append(dst, c.value...)
		} else {
			name, old := names[0], ""
			names = names[1:]
			there := c.ok && c.name == name
			if there {
				old = c.value
			}
			step := e.below[name]
			switch {
			case step.gone && !there:
				return nil, fault.New(fault.Invalid, "the difference removes %.200q, which is not in its base", below(path, name))
			case !step.gone:
				put(name)
				var err error
				if dst, err = step.write(dst, below(path, name), old); err != nil {
					return nil, err
				}
			}
			if !there {
				continue
			}
		}
		if err := c.next(); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}
