package compiletest

import (
	"cmp"
	"context"
	"slices"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Reusables is what compilations read.
type Reusables struct{ *records }

// Newest implements compile.Reusables. A done compilation gave its node's newest
// catalog.
func (q *Reusables) Newest(_ context.Context, node fleet.Certname, env fleet.Environment) (compile.Compilation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return compile.Compilation{}, q.fail
	}
	return q.newest(node, env)
}

func (q *records) newest(node fleet.Certname, env fleet.Environment) (compile.Compilation, error) {
	c := q.rows[q.given[node]]
	if c == nil || c.Environment != env || q.inputs[c.ID] == nil {
		return compile.Compilation{}, fault.New(fault.NotFound, "%s has no catalog in %s that could be used again", node, env)
	}
	found := *c
	found.Inputs, found.Stands = q.inputs[c.ID], q.base(c).Version
	return found, nil
}

// NewestStaged implements compile.Reusables.
func (q *Reusables) NewestStaged(_ context.Context, node fleet.Certname, env fleet.Environment) (compile.Compilation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return compile.Compilation{}, q.fail
	}
	return q.newestStaged(node, env)
}

func (q *records) newestStaged(node fleet.Certname, env fleet.Environment) (compile.Compilation, error) {
	base := q.bases[baseKey{node, env, true}]
	if base == nil {
		return compile.Compilation{}, fault.New(fault.NotFound, "%s has no staged catalog in %s", node, env)
	}
	found := *q.rows[base.Compilation]
	found.Inputs, found.Stands = q.inputs[base.Inputs], base.Version
	return found, nil
}

// Candidates implements compile.Reusables.
func (q *Reusables) Candidates(_ context.Context, env fleet.Environment, nodes []fleet.Certname) (map[fleet.Certname][]compile.Candidate, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	found := map[fleet.Certname][]compile.Candidate{}
	for _, node := range nodes {
		for staged, newest := range []func(fleet.Certname, fleet.Environment) (compile.Compilation, error){q.newest, q.newestStaged} {
			if c, err := newest(node, env); err == nil {
				c.Inputs = nil
				found[node] = append(found[node], compile.Candidate{Compilation: c, Read: q.bases[baseKey{node, env, staged == 1}].Inputs})
			}
		}
	}
	return found, q.fail
}

// Restate implements compile.Reusables.
func (q *Reusables) Restate(_ context.Context, from int64, c compile.Compilation) (compile.Compilation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return compile.Compilation{}, q.fail
	}
	was, err := q.newest(c.Node, c.Environment)
	staged := err != nil || was.ID != from
	if staged {
		was, err = q.newestStaged(c.Node, c.Environment)
	}
	if err != nil || was.ID != from {
		return compile.Compilation{}, fault.New(fault.NotFound, "%s has a newer catalog than that of compilation %d", c.Node, from)
	}
	q.last++
	made := c
	made.ID, made.State, made.Catalog, made.Inputs = q.last, compile.Done, was.Catalog, nil
	q.rows[made.ID], q.inputs[made.ID], q.given[c.Node] = &made, was.Inputs, made.ID
	base := *q.bases[baseKey{c.Node, c.Environment, staged}]
	base.Compilation, base.Version = made.ID, c.Version
	q.bases[baseKey{c.Node, c.Environment, false}] = &base
	return made, nil
}

// StopReuse implements compile.Reusables.
func (q *Reusables) StopReuse(_ context.Context, s compile.ReuseStop) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return q.fail
	}
	q.stops = slices.DeleteFunc(q.stops, func(o compile.ReuseStop) bool {
		return o.Node == s.Node && o.Environment == s.Environment && o.Version == s.Version
	})
	q.stops = append(q.stops, s)
	return nil
}

// ReuseStops implements compile.Reusables.
func (q *Reusables) ReuseStops(_ context.Context, node fleet.Certname, env fleet.Environment) ([]compile.ReuseStop, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return nil, q.fail
	}
	return q.stopsOf(node, env), nil
}

func (q *records) stopsOf(node fleet.Certname, env fleet.Environment) []compile.ReuseStop {
	var found []compile.ReuseStop
	for _, s := range q.stops {
		if (s.Node == node || s.Node == "") && s.Environment == env {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b compile.ReuseStop) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Version, b.Version))
	})
	return found
}

// ReuseStopsOf implements compile.Reusables.
func (q *Reusables) ReuseStopsOf(_ context.Context, env fleet.Environment, nodes []fleet.Certname) (map[fleet.Certname][]compile.ReuseStop, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	found := map[fleet.Certname][]compile.ReuseStop{}
	for _, node := range nodes {
		if stops := q.stopsOf(node, env); len(stops) > 0 {
			found[node] = stops
		}
	}
	return found, q.fail
}
