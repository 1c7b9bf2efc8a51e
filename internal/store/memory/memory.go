// Package memory has what stores in memory are made of: the fakes that tests use in place of a database.
//
// Nothing in here may be used concurrently: the store that holds it has a lock.
package memory

import (
	"maps"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Rows are things with numbers that rise and are never given twice.
type Rows[K any] struct {
	what string
	rows map[int64]*K
	last int64
}

// NewRows returns none. what they are called stands in errors.
func NewRows[K any](what string) *Rows[K] { return &Rows[K]{what: what, rows: map[int64]*K{}} }

// Add stores what row makes of a new number.
func (r *Rows[K]) Add(row func(id int64) *K) *K {
	r.last++
	r.rows[r.last] = row(r.last)
	return r.rows[r.last]
}

// Find is one of them; NotFound.
func (r *Rows[K]) Find(id int64) (*K, error) {
	if k := r.rows[id]; k != nil {
		return k, nil
	}
	return nil, fault.New(fault.NotFound, "there is no %s %d", r.what, id)
}

// Get is one of them, or nil.
func (r *Rows[K]) Get(id int64) *K { return r.rows[id] }

// All is all of them, by number.
func (r *Rows[K]) All() []*K {
	all := make([]*K, 0, len(r.rows))
	for _, id := range slices.Sorted(maps.Keys(r.rows)) {
		all = append(all, r.rows[id])
	}
	return all
}

// Delete forgets those that are old, and counts them.
func (r *Rows[K]) Delete(old func(*K) bool) int {
	n := len(r.rows)
	maps.DeleteFunc(r.rows, func(_ int64, k *K) bool { return old(k) })
	return n - len(r.rows)
}

// Newest is a page of all, which are by number; of says what one of them is.
func Newest[T any, S ~string](all []T, page fleet.Newest[S], of func(T) (id int64, env fleet.Environment, state S)) []T {
	var found []T
	for _, one := range slices.Backward(all) {
		id, env, state := of(one)
		if len(found) < page.Limit && (page.Before == 0 || id < page.Before) && (page.Environment == "" || env == page.Environment) &&
			(len(page.States) == 0 || slices.Contains(page.States, state)) {
			found = append(found, one)
		}
	}
	return found
}

// Versions are things with names, of which every version is kept.
type Versions[R any] struct {
	what  string
	named func(*R) (name string, stamp *fleet.Stamp)
	all   map[string][]R // the oldest first
}

// NewVersions returns none. what they are called stands in errors; named is where one has its name and its stamp.
func NewVersions[R any](what string, named func(*R) (name string, stamp *fleet.Stamp)) *Versions[R] {
	return &Versions[R]{what, named, map[string][]R{}}
}

// Current is the newest version of each, by name, without those that are removed.
func (v *Versions[R]) Current() (rules []R) {
	for _, name := range slices.Sorted(maps.Keys(v.all)) {
		if newest := v.newest(name); !v.removed(newest) {
			rules = append(rules, *newest)
		}
	}
	return rules
}

// newest is the last version of one that there is.
func (v *Versions[R]) newest(name string) *R { return &v.all[name][len(v.all[name])-1] }

func (v *Versions[R]) removed(r *R) bool {
	_, stamp := v.named(r)
	return stamp.Removed
}

// History is every version, the newest first; NotFound.
func (v *Versions[R]) History(name string) ([]R, error) {
	if len(v.all[name]) == 0 {
		return nil, v.missing(name)
	}
	versions := slices.Clone(v.all[name])
	slices.Reverse(versions)
	return versions, nil
}

func (v *Versions[R]) missing(name string) error {
	return fault.New(fault.NotFound, "there is no %s %.80q", v.what, name)
}

// Save stores the next version. keep gives one that is removed what the version before says; NotFound if there is none, or
// it is removed already.
func (v *Versions[R]) Save(r R, keep func(to *R, from R)) (R, error) {
	name, stamp := v.named(&r)
	if stamp.Removed {
		if len(v.all[name]) == 0 || v.removed(v.newest(name)) {
			var none R
			return none, v.missing(name)
		}
		keep(&r, *v.newest(name))
	}
	stamp.Version = 1
	if len(v.all[name]) > 0 {
		_, before := v.named(v.newest(name))
		stamp.Version = before.Version + 1
	}
	v.all[name] = append(v.all[name], r)
	return r, nil
}

// Prune forgets versions from before a time, but the newest keep of each stay, and one at least. It counts them.
func (v *Versions[R]) Prune(before time.Time, keep int) (pruned int) {
	for name, versions := range v.all {
		old := versions[:max(len(versions)-max(keep, 1), 0)]
		kept := slices.DeleteFunc(slices.Clone(old), func(r R) bool {
			_, stamp := v.named(&r)
			return stamp.At.Before(before)
		})
		pruned += len(old) - len(kept)
		v.all[name] = append(kept, versions[len(old):]...)
	}
	return pruned
}
