package diff

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// Difference is what leads from one catalog to another. It is whole and may hold
// secrets: a Shower makes of it what may be seen.
type Difference struct {
	name, environment [2]string // old and new
	classes, tags     setChange
	resources         []resourceChange // by type, title, exported last
	edges             []edgeChange     // by source and target
	moved             int              // of the resources that both have, how many come in another order
	secrets           [2]secrets       // of the old and the new side
	sent, uncompared  bool             // the new one was sent; the old one hides something that was left out for that
	engines           bool             // another engine compiled the new one: what differs in form only is its noise
}

// AcrossEngines says that another engine compiled the new catalog than the old one.
func (d *Difference) AcrossEngines() { d.engines = true }

// Empty says that nothing differs, not even in order. Who the catalogs are of is
// none of it.
func (d *Difference) Empty() bool {
	return d.environment[0] == d.environment[1] && d.classes.empty() && d.tags.empty() &&
		len(d.resources) == 0 && len(d.edges) == 0 && d.moved == 0
}

// setChange is what came to a set and what left it.
type setChange struct{ added, removed []string }

func (s setChange) empty() bool { return len(s.added)+len(s.removed) == 0 }

// resourceChange is one resource that differs.
type resourceChange struct {
	identity
	kind       kind
	parameters []parameterChange // by name
	tags       setChange
	files      []fileChange // by path
	file, line string       // where it is declared now, or was
}

// parameterChange is one parameter that differs. Of a resource that was added or
// removed, all are.
type parameterChange struct {
	name     string
	kind     kind
	old, new *value
	steps    []step // of one that was changed: where
	hidden   bool
}

// fileChange is a file of a static catalog that differs.
type fileChange struct {
	path     string // below the resource's; empty: itself
	kind     kind
	old, new file
	hidden   bool
}

// edgeChange is an edge of containment that differs.
type edgeChange struct {
	edge
	kind    kind
	implied bool // one of its ends was added or removed, too
}

// isOrder says that a change is of order only.
func (r *resourceChange) isOrder() bool {
	return r.kind == changed && len(r.files) == 0 && !slices.ContainsFunc(r.parameters, func(p parameterChange) bool { return !p.isOrder() })
}

func (p *parameterChange) isOrder() bool {
	return isOrder(p.name) || p.kind == changed && !slices.ContainsFunc(p.steps, func(s step) bool { return s.kind != reordered })
}

// Compare says what leads from one catalog to another. Invalid for a catalog whose
// resources are not what they should be.
func Compare(old, fresh *Catalog) (*Difference, error) {
	d := &Difference{
		name: [2]string{old.name, fresh.name}, environment: [2]string{old.environment, fresh.environment},
		sent: fresh.sent, classes: compareSets(old.classes, fresh.classes), tags: compareSets(old.tags, fresh.tags),
	}
	before, after := index(old), index(fresh)
	for id, r := range before {
		change, differs, err := compareResource(r, after[id], old.files, fresh.files)
		if err != nil {
			return nil, broken(id, err)
		}
		if differs {
			d.resources = append(d.resources, change)
		}
	}
	for id, r := range after {
		if before[id] != nil {
			continue
		}
		change, _, err := compareResource(nil, r, old.files, fresh.files)
		if err != nil {
			return nil, broken(id, err)
		}
		d.resources = append(d.resources, change)
	}
	slices.SortFunc(d.resources, byIdentity)
	d.edges = compareEdges(old.edges, fresh.edges, d.resources)
	d.moved = moves(old.resources, after)
	if err := d.hide(old, fresh, before); err != nil {
		return nil, err
	}
	return d, nil
}

func broken(id identity, err error) error {
	return fault.Wrap(fault.Invalid, err, "%s[%.200s] is no resource as catalogs have it", id.typ, id.title)
}

func byIdentity(a, b resourceChange) int {
	return cmp.Or(cmp.Compare(a.typ, b.typ), cmp.Compare(a.title, b.title), compareBool(a.exported, b.exported))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// indexed is a resource with its place in the catalog.
type indexed struct {
	resource
	place int
}

func index(c *Catalog) map[identity]*indexed {
	all := make(map[identity]*indexed, len(c.resources))
	store := make([]indexed, len(c.resources))
	for i, r := range c.resources {
		store[i] = indexed{r, i}
		all[r.identity] = &store[i]
	}
	return all
}

type metadata = map[string]map[string]file

// compareResource compares a resource with what became of it; either may be nil.
func compareResource(old, fresh *indexed, oldFiles, newFiles metadata) (resourceChange, bool, error) {
	switch {
	case old == nil:
		change, err := only(fresh.resource, newFiles, added)
		return change, true, err
	case fresh == nil:
		change, err := only(old.resource, oldFiles, removed)
		return change, true, err
	}
	files := compareFiles(filesOf(old.identity, oldFiles), filesOf(fresh.identity, newFiles))
	if len(files) == 0 && bytes.Equal(old.raw, fresh.raw) {
		return resourceChange{}, false, nil
	}
	a, err := declare(old.raw)
	if err != nil {
		return resourceChange{}, false, err
	}
	b, err := declare(fresh.raw)
	if err != nil {
		return resourceChange{}, false, err
	}
	change := resourceChange{identity: fresh.identity, kind: changed, files: files, tags: compareSets(a.tags, b.tags), file: b.file, line: b.line}
	change.parameters, err = compareParameters(a.parameters, b.parameters)
	return change, len(change.parameters)+len(files) > 0 || !change.tags.empty(), err
}

// filesOf are the files of a resource. Only what a node has itself has any.
func filesOf(id identity, files metadata) map[string]file {
	if id.typ != "File" || id.exported {
		return nil
	}
	return files[id.title]
}

// only is a resource that just one catalog has.
func only(r resource, files metadata, k kind) (resourceChange, error) {
	d, err := declare(r.raw)
	if err != nil {
		return resourceChange{}, err
	}
	change := resourceChange{identity: r.identity, kind: k, file: d.file, line: d.line}
	var none map[string]jsontext.Value
	if k == added {
		change.tags.added, change.files = d.tags, compareFiles(nil, filesOf(r.identity, files))
		change.parameters, err = compareParameters(none, d.parameters)
	} else {
		change.tags.removed, change.files = d.tags, compareFiles(filesOf(r.identity, files), nil)
		change.parameters, err = compareParameters(d.parameters, none)
	}
	return change, err
}

func compareParameters(old, fresh map[string]jsontext.Value) ([]parameterChange, error) {
	var changes []parameterChange
	for _, name := range union(old, fresh) {
		a, b := old[name], fresh[name]
		if bytes.Equal(a, b) {
			continue
		}
		change := parameterChange{name: name, kind: changed}
		var err error
		if a == nil {
			change.kind = added
		} else if change.old, err = decode(a); err != nil {
			return nil, err
		}
		if b == nil {
			change.kind = removed
		} else if change.new, err = decode(b); err != nil {
			return nil, err
		}
		if change.kind == changed {
			if change.steps = compareValues(change.old, change.new); len(change.steps) == 0 {
				continue
			}
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// union lists the keys of two maps, sorted.
func union[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	return setOf(keys)
}

func compareFiles(old, fresh map[string]file) []fileChange {
	var changes []fileChange
	for _, path := range union(old, fresh) {
		a, had := old[path]
		b, has := fresh[path]
		switch {
		case !had:
			changes = append(changes, fileChange{path: path, kind: added, new: b})
		case !has:
			changes = append(changes, fileChange{path: path, kind: removed, old: a})
		case a != b:
			changes = append(changes, fileChange{path: path, kind: changed, old: a, new: b})
		}
	}
	return changes
}

// compareSets compares sorted lists.
func compareSets(old, fresh []string) setChange {
	var s setChange
	for _, item := range old {
		if _, there := slices.BinarySearch(fresh, item); !there {
			s.removed = append(s.removed, item)
		}
	}
	for _, item := range fresh {
		if _, there := slices.BinarySearch(old, item); !there {
			s.added = append(s.added, item)
		}
	}
	return s
}

func compareEdges(old, fresh []edge, changes []resourceChange) []edgeChange {
	if slices.Equal(old, fresh) {
		return nil
	}
	had, has, came := edgeSet(old), edgeSet(fresh), map[string]bool{}
	for _, r := range changes {
		if r.kind != changed && !r.exported {
			came[r.typ+"["+r.title+"]"] = true
		}
	}
	var edges []edgeChange
	add := func(e edge, k kind) { edges = append(edges, edgeChange{e, k, came[e.source] || came[e.target]}) }
	for e := range had {
		if !has[e] {
			add(e, removed)
		}
	}
	for e := range has {
		if !had[e] {
			add(e, added)
		}
	}
	slices.SortFunc(edges, func(a, b edgeChange) int {
		return cmp.Or(strings.Compare(a.source, b.source), strings.Compare(a.target, b.target))
	})
	return edges
}

func edgeSet(edges []edge) map[edge]bool {
	set := make(map[edge]bool, len(edges))
	for _, e := range edges {
		set[e] = true
	}
	return set
}

// moves is how many resources must be moved to bring those that both catalogs have
// from their old order into the new one.
func moves(old []resource, after map[identity]*indexed) int {
	var tails []int // tails[n]: the smallest place that n+1 resources in order can end with
	common := 0
	for _, r := range old {
		now := after[r.identity]
		if now == nil {
			continue
		}
		common++
		n, _ := slices.BinarySearch(tails, now.place)
		if n == len(tails) {
			tails = append(tails, now.place)
		} else {
			tails[n] = now.place
		}
	}
	return common - len(tails)
}
