package compiletest

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Verified is what a second opinion said.
type Verified struct{ *records }

// verified is a Queue's compile.Verifications.
type verified struct {
	verifications []compile.Verification
	sets          []compile.ClassSet
}

// SetClassSets makes sets what ClassSets gives.
func (q *Queue) SetClassSets(sets ...compile.ClassSet) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sets = sets
}

// SaveVerification implements compile.Verifications.
func (q *Verified) SaveVerification(_ context.Context, v compile.Verification) (compile.Verification, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		return v, q.fail
	}
	v.ID = int64(len(q.verifications) + 1)
	q.verifications = append(q.verifications, v)
	return v, nil
}

// Verifications implements compile.Verifications.
func (q *Verified) Verifications(_ context.Context, f compile.VerificationFilter) ([]compile.Verification, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var found []compile.Verification
	for _, v := range slices.Backward(q.verifications) {
		if (f.Node == "" || v.Node == f.Node) && (f.Environment == "" || v.Environment == f.Environment) && (f.Version == "" || v.Version == f.Version) &&
			(f.Outcome == "" || v.Outcome == f.Outcome) && (f.Before == 0 || v.ID < f.Before) && len(found) < f.Limit {
			found = append(found, v)
		}
	}
	return found, q.fail
}

// CountVerifications implements compile.Verifications.
func (q *Verified) CountVerifications(_ context.Context, env fleet.Environment, version fleet.Digest) (map[compile.VerifyOutcome]int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	counts := map[compile.VerifyOutcome]int{}
	for _, v := range q.verifications {
		if v.Environment == env && v.Version == version {
			counts[v.Outcome]++
		}
	}
	return counts, q.fail
}

// PruneVerifications implements compile.Verifications.
func (q *Verified) PruneVerifications(_ context.Context, before time.Time) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	had := len(q.verifications)
	q.verifications = slices.DeleteFunc(q.verifications, func(v compile.Verification) bool { return v.At.Before(before) })
	return had - len(q.verifications), q.fail
}

// Answers implements compile.Verifications.
func (q *Verified) Answers(_ context.Context, digests []fleet.Digest) (map[fleet.Digest]json.RawMessage, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	found := map[fleet.Digest]json.RawMessage{}
	for _, set := range q.inputs {
		for _, digest := range digests {
			if rows, kept := set.Answers[digest]; kept {
				found[digest] = rows
			}
		}
	}
	return found, q.fail
}

// DoneOf implements compile.Verifications.
func (q *Verified) DoneOf(_ context.Context, node fleet.Certname, env fleet.Environment, version fleet.Digest) (compile.Compilation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var newest *compile.Compilation
	for _, c := range q.rows {
		if c.Node == node && c.Environment == env && c.Version == version && c.State == compile.Done && c.Reach == "" && q.inputs[c.ID] != nil &&
			(newest == nil || c.ID > newest.ID) {
			newest = c
		}
	}
	if newest == nil || q.fail != nil {
		return compile.Compilation{}, fault.Wrap(fault.NotFound, q.fail, "%s has no catalog of version %s in %s whose inputs are known", node, version.Short(), env)
	}
	found := *newest
	found.Inputs = q.inputs[found.ID]
	return found, nil
}

// ClassSets implements compile.Verifications.
func (q *Verified) ClassSets(context.Context, fleet.Environment) ([]compile.ClassSet, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.sets), q.fail
}
