package compile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// footprint is a Footprint in little memory: there is one for each node.
type footprint struct {
	groups []int32  // of sources, as footprints counts them
	facts  []string // top-level facts that were read, sorted
	every  bool     // all facts were
	given  fleet.Digest
	asked  []Question
}

// reads says whether one of the named facts was read.
func (p *footprint) reads(names []string) bool {
	if p.every {
		return len(names) > 0
	}
	return slices.ContainsFunc(names, func(name string) bool {
		_, found := slices.BinarySearch(p.facts, name)
		return found || name == Anything
	})
}

// footprints keeps those of nodes' bases in memory. Groups of sources and lists of
// facts, which many share, are there once. It belongs to one goroutine.
type footprints struct {
	store  Readings
	known  map[int64]*footprint
	number map[fleet.Digest]int32
	groups []sourceGroup
	lists  map[string][]string
}

// sourceGroup is a group of sources, read when it is first judged.
type sourceGroup struct {
	digest  fleet.Digest
	sources *Sources
}

func newFootprints(store Readings) *footprints {
	return &footprints{store: store, known: map[int64]*footprint{}, number: map[fleet.Digest]int32{}, lists: map[string][]string{}}
}

// load reads what is not known yet of the bases of standings.
func (f *footprints) load(ctx context.Context, standings []Standing) error {
	var missing []int64
	for _, s := range standings {
		for _, id := range [2]int64{s.Plain.Inputs, s.Staged.Inputs} {
			if _, known := f.known[id]; id != 0 && !known {
				missing = append(missing, id)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	found, err := f.store.Footprints(ctx, missing)
	if err != nil {
		return err
	}
	for id, left := range found {
		f.known[id] = f.compact(left)
	}
	return nil
}

// forget drops what none of all standings has for its base, once that is more than
// is in use.
func (f *footprints) forget(all []Standing) {
	if len(f.known) <= 4*len(all)+1000 {
		return
	}
	old := f.known
	*f = *newFootprints(f.store)
	for _, s := range all {
		for _, id := range [2]int64{s.Plain.Inputs, s.Staged.Inputs} {
			delete(old, id)
		}
	}
}

func (f *footprints) compact(left Footprint) *footprint {
	out := &footprint{given: left.Set.Given, asked: left.Set.Asked, groups: f.numbers(left.Groups)}
	var names []string
	for _, v := range left.Set.Values {
		below, ok := strings.CutPrefix(v.Pointer, "/facts")
		name, _, _ := strings.Cut(strings.TrimPrefix(below, "/"), "/")
		switch {
		case !ok:
		case name == "":
			out.every = true
		default:
			names = append(names, unescape(name))
		}
	}
	out.facts = f.shared(slices.Compact(slices.Sorted(slices.Values(names))))
	return out
}

// numbers counts groups.
func (f *footprints) numbers(groups []fleet.Digest) []int32 {
	numbers := make([]int32, len(groups))
	for i, digest := range groups {
		n, known := f.number[digest]
		if !known {
			n = int32(len(f.groups)) //nolint:gosec // there are a few thousand
			f.number[digest] = n
			f.groups = append(f.groups, sourceGroup{digest: digest})
		}
		numbers[i] = n
	}
	return numbers
}

// shared is a list that is kept once.
func (f *footprints) shared(names []string) []string {
	key := strings.Join(names, "\n")
	if list, known := f.lists[key]; known {
		return list
	}
	f.lists[key] = names
	return names
}

// sources reads a group; nil if it is gone, as after somebody tidied by hand.
func (f *footprints) sources(ctx context.Context, n int32) (*Sources, error) {
	group := &f.groups[n]
	if group.sources != nil {
		return group.sources, nil
	}
	text, err := f.store.SourceGroup(ctx, group.digest)
	if err != nil {
		if fault.Of(err) == fault.NotFound {
			err = nil
		}
		return nil, err
	}
	read := new(Sources)
	if err := read.AddGroup(text); err != nil {
		return nil, err
	}
	group.sources = read
	return read, nil
}

// judgement is how one difference of versions meets groups: each is judged once.
type judgement struct {
	changes *Changes
	prints  *footprints
	groups  map[int32]bool // whether the difference touches it
	// readings is by the touched groups that were read together.
	readings map[string]*Reading
}

func newJudgement(ctx context.Context, versions Differ, prints *footprints, env fleet.Environment, from, to fleet.Digest) (*judgement, error) {
	changes, err := versions.Changes(ctx, env, from, to)
	if err != nil && fault.Of(err) != fault.NotFound {
		return nil, err
	}
	if err != nil { // that version is gone
		changes = &Changes{All: true}
	}
	return &judgement{changes: changes, prints: prints, groups: map[int32]bool{}, readings: map[string]*Reading{}}, nil
}

// stands says whether nothing differs that a base's compilation read of files.
func (j *judgement) stands(ctx context.Context, base Base) (bool, error) {
	left := j.prints.known[base.Inputs]
	if left == nil {
		return false, nil
	}
	return j.untouched(ctx, left.groups)
}

// untouched says whether nothing differs in groups.
func (j *judgement) untouched(ctx context.Context, groups []int32) (bool, error) {
	if j.changes.All {
		return false, nil
	}
	for _, n := range groups {
		if touched, err := j.touches(ctx, n); touched || err != nil {
			return false, err
		}
	}
	return true, nil
}

// touches says whether something differs in a group.
func (j *judgement) touches(ctx context.Context, n int32) (bool, error) {
	touched, judged := j.groups[n]
	if judged {
		return touched, nil
	}
	sources, err := j.prints.sources(ctx, n)
	if err != nil {
		return false, err
	}
	touched = sources == nil
	if !touched {
		_, ok := j.changes.Touch(sources)
		touched = !ok
	}
	j.groups[n] = touched
	return touched, nil
}

// reading is which changed files were read with groups. Nodes that read the same groups of those that are touched share one.
func (j *judgement) reading(ctx context.Context, groups []int32) (*Reading, error) {
	if j.changes.All {
		return nil, nil //nolint:nilnil // what differs is not known by file
	}
	var touched []int32
	for _, n := range groups {
		is, err := j.touches(ctx, n)
		if err != nil {
			return nil, err
		}
		if is {
			touched = append(touched, n)
		}
	}
	slices.Sort(touched)
	key := fmt.Sprint(touched)
	if known := j.readings[key]; known != nil {
		return known, nil
	}
	read := &Reading{}
	for _, n := range touched {
		sources, err := j.prints.sources(ctx, n)
		if err != nil {
			return nil, err
		}
		if sources != nil {
			read.Files = append(read.Files, j.changes.Which(sources)...)
		}
	}
	slices.Sort(read.Files)
	read.Files = slices.Compact(read.Files)
	j.readings[key] = read
	return read, nil
}
