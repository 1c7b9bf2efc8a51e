package compiletest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Wants is how nodes stand, what changed and what is wanted ahead.
type Wants struct{ *records }

// ahead is what a Queue keeps as compile.Wants.
type ahead struct {
	homes   map[fleet.Certname]fleet.Environment // of active nodes
	bases   map[baseKey]*base
	groups  map[fleet.Digest][]byte
	changes []compile.Change // those noted first first
	marks   map[fleet.Environment]compile.Mark
	chains  []compile.Chain
	held    map[fleet.Certname]bool
}

type baseKey struct {
	node   fleet.Certname
	env    fleet.Environment
	staged bool
}

type base struct {
	compile.Base
	volatile          bool
	compiled, triedAt time.Time
}

func newAhead() ahead {
	return ahead{
		homes: map[fleet.Certname]fleet.Environment{}, bases: map[baseKey]*base{}, groups: map[fleet.Digest][]byte{},
		marks: map[fleet.Environment]compile.Mark{}, held: map[fleet.Certname]bool{},
	}
}

// SetHome makes env the environment of an active node; with an empty one it is not
// active.
func (q *Queue) SetHome(node fleet.Certname, env fleet.Environment) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.homes[node] = env
}

// SetHeld says whether the brake keeps the newest catalog from a node.
func (q *Queue) SetHeld(node fleet.Certname, held bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held[node] = held
}

// Note notes a change, as a store does that makes one.
func (q *Queue) Note(kind compile.ChangeKind, node fleet.Certname, details ...string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.note(kind, node, details...)
}

func (q *records) note(kind compile.ChangeKind, node fleet.Certname, details ...string) {
	i := slices.IndexFunc(q.changes, func(c compile.Change) bool { return c.Kind == kind && c.Node == node })
	if i < 0 {
		q.changes = append(q.changes, compile.Change{Kind: kind, Node: node})
		i = len(q.changes) - 1
	}
	c := &q.changes[i]
	c.Count++
	c.Details = slices.Compact(slices.Sorted(slices.Values(append(slices.Clip(c.Details), details...))))
}

// stand makes a finished compilation the one from which its node is judged.
func (q *records) stand(c *compile.Compilation) {
	for _, g := range q.inputs[c.ID].Sources.Groups() {
		q.groups[g.Digest] = g.Text
	}
	key := baseKey{c.Node, c.Environment, c.Staged}
	if was := q.bases[key]; c.Priority == compile.Previewing || was != nil && was.Compilation > c.ID {
		return
	}
	set := q.inputs[c.ID]
	q.bases[key] = &base{
		Base: compile.Base{Compilation: c.ID, Inputs: c.ID, Version: c.Version}, volatile: len(set.Volatile) > 0, compiled: set.At,
	}
	q.note(compile.LateFinish, c.Node)
}

// base is the one that a compilation is.
func (q *records) base(c *compile.Compilation) compile.Base {
	if b := q.bases[baseKey{c.Node, c.Environment, c.Staged}]; b != nil && b.Compilation == c.ID {
		return b.Base
	}
	return compile.Base{Compilation: c.ID, Inputs: c.ID, Version: c.Version}
}

func (q *records) standing(node fleet.Certname) compile.Standing {
	env := q.homes[node]
	s := compile.Standing{Node: node, Environment: env, FactsSeq: q.facts[node]}
	if plain := q.bases[baseKey{node, env, false}]; plain != nil && q.given[node] == plain.Compilation {
		s.Plain, s.CompiledAt, s.Volatile = plain.Base, plain.compiled, plain.volatile
	}
	if staged := q.bases[baseKey{node, env, true}]; staged != nil {
		s.Staged = staged.Base
	}
	s.Held = q.held[node]
	return s
}

func (q *records) all(fits func(fleet.Certname) bool) (list []compile.Standing) {
	for _, node := range slices.Sorted(maps.Keys(q.homes)) {
		if q.homes[node] != "" && fits(node) {
			list = append(list, q.standing(node))
		}
	}
	return list
}

// Standings implements compile.Wants.
func (q *Wants) Standings(_ context.Context, env fleet.Environment) ([]compile.Standing, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all(func(node fleet.Certname) bool { return env == "" || q.homes[node] == env }), q.fail
}

// StandingsNamed implements compile.Wants.
func (q *Wants) StandingsNamed(_ context.Context, nodes []fleet.Certname) ([]compile.Standing, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all(func(node fleet.Certname) bool { return slices.Contains(nodes, node) }), q.fail
}

// Footprints implements compile.Wants.
func (q *Wants) Footprints(_ context.Context, inputs []int64) (map[int64]compile.Footprint, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	found := map[int64]compile.Footprint{}
	for _, id := range inputs {
		if set := q.inputs[id]; set != nil {
			left := compile.Footprint{Set: *set}
			left.Set.Sources = compile.Sources{}
			for _, g := range set.Sources.Groups() {
				left.Groups = append(left.Groups, g.Digest)
			}
			found[id] = left
		}
	}
	return found, q.fail
}

// SourceGroup implements compile.Wants.
func (q *Wants) SourceGroup(_ context.Context, group fleet.Digest) ([]byte, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if text, known := q.groups[group]; known {
		return text, q.fail
	}
	return nil, fault.New(fault.NotFound, "the group %s of source files is gone", group.Short())
}

// Marks implements compile.Wants.
func (q *Wants) Marks(context.Context) ([]compile.Mark, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var list []compile.Mark
	for _, env := range slices.Sorted(maps.Keys(q.marks)) {
		list = append(list, q.marks[env])
	}
	return list, q.fail
}

// Consider implements compile.Wants.
func (q *Wants) Consider(_ context.Context, s compile.Step) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return q.fail
	}
	if was := q.marks[s.To.Environment]; was.Version != s.From.Version || was.Upto != s.From.Upto || was.Done != s.From.Done {
		return fault.New(fault.Conflict, "another server considers %s", s.To.Environment)
	}
	q.marks[s.To.Environment] = s.To
	if s.To.Environment != "" && s.From.Version != s.To.Version {
		q.moveAhead(s.To)
	}
	for _, stands := range s.Stands {
		for staged, judged := range map[bool]compile.Base{false: stands.Plain, true: stands.Staged} {
			if b := q.bases[baseKey{stands.Node, s.To.Environment, staged}]; b != nil && judged.Compilation != 0 && b.Compilation == judged.Compilation {
				b.Version = s.To.Version
			}
		}
	}
	q.wantAhead(s.Wants, nil)
	return nil
}

// moveAhead makes what is wanted ahead of older versions wanted of the new one.
func (q *records) moveAhead(to compile.Mark) {
	if key := (slowKey{to.Environment, false}); q.slow[key].Version != to.Version {
		delete(q.slow, key)
	}
	rows := q.find(func(c *compile.Compilation) bool {
		return c.State == compile.Wanted && c.Environment == to.Environment && c.Version != to.Version && c.Transaction == "" &&
			c.Priority >= compile.Signed && c.Priority <= compile.NewCode
	})
	slices.SortFunc(rows, newestFirst)
	twins := func(c *compile.Compilation) bool {
		return len(q.find(func(o *compile.Compilation) bool {
			return o.State == compile.Wanted && o.Node == c.Node && o.Environment == to.Environment && o.Version == to.Version && o.Reach == ""
		})) > 0
	}
	var folded []*compile.Compilation
	for _, c := range rows {
		if twins(c) {
			folded = append(folded, c)
		}
	}
	for _, c := range rows {
		if twins(c) {
			delete(q.rows, c.ID)
		} else {
			c.Version = to.Version
		}
	}
	for _, c := range slices.Backward(folded) {
		q.want(compile.Moved(*c, to.Version))
	}
	ahead := q.find(func(c *compile.Compilation) bool {
		return c.State == compile.Wanted && c.Environment == to.Environment && c.Version == to.Version && c.Transaction == "" && !c.Staged &&
			c.Priority >= compile.Signed && c.Priority <= compile.NewCode
	})
	slices.SortFunc(ahead, func(a, b *compile.Compilation) int { return cmp.Compare(a.ID, b.ID) })
	for _, c := range ahead {
		if c.Overtakes() && q.plain(c.Node) > c.ID {
			q.renumber(c)
		}
	}
}

func (q *records) wantAhead(wants []compile.Want, chains []compile.Chain) {
	for _, w := range wants {
		q.putChain(compile.Chain{Node: w.Node, Environment: w.Environment})
		for _, c := range chains {
			if c.Node == w.Node {
				q.putChain(c)
			}
		}
		q.want(w)
	}
}

func (q *records) putChain(c compile.Chain) {
	q.chains = slices.DeleteFunc(q.chains, func(o compile.Chain) bool { return o.Node == c.Node && o.Environment == c.Environment })
	if c.Rounds > 0 {
		q.chains = append(q.chains, c)
	}
}

// NotedChanges implements compile.Wants.
func (q *Wants) NotedChanges(_ context.Context, n int) ([]compile.Change, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.changes[:min(n, len(q.changes))]), q.fail
}

// Settle implements compile.Wants.
func (q *Wants) Settle(_ context.Context, changes []compile.Change, wants []compile.Want, chains []compile.Chain) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return q.fail
	}
	q.wantAhead(wants, chains)
	q.changes = slices.DeleteFunc(q.changes, func(c compile.Change) bool {
		return slices.ContainsFunc(changes, func(o compile.Change) bool { return o.Kind == c.Kind && o.Node == c.Node && o.Count == c.Count })
	})
	return nil
}

// Chains implements compile.Wants.
func (q *Wants) Chains(context.Context) ([]compile.Chain, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := slices.Clone(q.chains)
	slices.SortFunc(list, func(a, b compile.Chain) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Environment, b.Environment))
	})
	return list, q.fail
}

// SaveChains implements compile.Wants.
func (q *Wants) SaveChains(_ context.Context, chains []compile.Chain) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return q.fail
	}
	for _, c := range chains {
		q.putChain(c)
	}
	return nil
}

// Oldest implements compile.Wants.
func (q *Wants) Oldest(_ context.Context, old, volatile time.Time, n int) ([]compile.Standing, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.all(func(node fleet.Certname) bool {
		s := q.standing(node)
		b := q.bases[baseKey{node, s.Environment, false}]
		before := func(limit time.Time) bool { return b.compiled.Before(limit) && b.triedAt.Before(limit) }
		return s.Plain.Compilation != 0 && (before(old) || s.Volatile && before(volatile))
	})
	slices.SortStableFunc(list, func(a, b compile.Standing) int { return a.CompiledAt.Compare(b.CompiledAt) })
	return list[:min(n, len(list))], q.fail
}

// Refresh implements compile.Wants.
func (q *Wants) Refresh(_ context.Context, wants []compile.Want) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return q.fail
	}
	for _, w := range wants {
		q.want(w)
		if b := q.bases[baseKey{w.Node, w.Environment, false}]; b != nil {
			b.triedAt = w.At
		}
	}
	return nil
}

// Backgrounds implements compile.Wants.
func (q *Wants) Backgrounds(context.Context) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.find(func(c *compile.Compilation) bool { return !finished(c) && c.Priority == compile.Background })), q.fail
}

// Failures implements compile.Wants.
func (q *Wants) Failures(_ context.Context, env fleet.Environment, version fleet.Digest) ([]compile.Compilation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed(env, func(c *compile.Compilation) bool { return c.Version == version }), q.fail
}

// Failing implements compile.Wants.
func (q *Wants) Failing(_ context.Context, env fleet.Environment) (names []fleet.Certname, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.failed(env, func(*compile.Compilation) bool { return true }) {
		names = append(names, c.Node)
	}
	return names, q.fail
}

// Broken implements compile.Breakages.
func (q *Queue) Broken(_ context.Context, nodes []fleet.Certname) (map[fleet.Certname]compile.Compilation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	broken := map[fleet.Certname]compile.Compilation{}
	for _, node := range nodes {
		for _, c := range q.failed(q.homes[node], func(c *compile.Compilation) bool { return c.Node == node && !c.Staged }) {
			broken[node] = c
		}
	}
	return broken, q.fail
}

// BrokenNodes implements compile.Breakages.
func (q *Queue) BrokenNodes(context.Context) (nodes []fleet.Certname, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for node, env := range q.homes {
		if len(q.failed(env, func(c *compile.Compilation) bool { return c.Node == node && !c.Staged })) > 0 {
			nodes = append(nodes, node)
		}
	}
	return nodes, q.fail
}

// failed lists the last finished compilations of env's nodes, of those that fit,
// that failed.
func (q *records) failed(env fleet.Environment, fits func(*compile.Compilation) bool) []compile.Compilation {
	rows := q.find(func(c *compile.Compilation) bool {
		return finished(c) && c.Environment == env && q.homes[c.Node] == env && fits(c)
	})
	slices.SortFunc(rows, func(a, b *compile.Compilation) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(b.ID, a.ID))
	})
	rows = slices.CompactFunc(rows, func(a, b *compile.Compilation) bool { return a.Node == b.Node })
	return values(slices.DeleteFunc(rows, func(c *compile.Compilation) bool { return c.State != compile.Failed }))
}

// Waiting implements compile.Wants.
func (q *Wants) Waiting(_ context.Context, env fleet.Environment, version fleet.Digest) (names []fleet.Certname, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.find(func(c *compile.Compilation) bool { return !finished(c) && c.Environment == env && c.Version == version }) {
		names = append(names, c.Node)
	}
	slices.Sort(names)
	return slices.Compact(names), q.fail
}
