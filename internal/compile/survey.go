package compile

import (
	"context"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/parallel"
)

// surveyors is how many nodes are judged at the same time by what is not files.
const surveyors = 4

// Survey judges the stored catalogs of many nodes for one version: it says what Reuser.Judge would say of each, and
// costs little for each. Rows are read for many nodes at once, and what differs between two versions meets each group of files
// that nodes read together once. It remembers groups of files, and nothing of nodes. It belongs to one goroutine.
type Survey struct {
	*Reuser
	env     fleet.Environment
	version fleet.Digest
	store   Readings
	prints  *footprints
	judged  map[fleet.Digest]*judgement // by the version that a catalog stood for
}

// Survey begins one for a version of an environment.
func (r *Reuser) Survey(store Readings, env fleet.Environment, version fleet.Digest) *Survey {
	return &Survey{Reuser: r, env: env, version: version, store: store, prints: newFootprints(store), judged: map[fleet.Digest]*judgement{}}
}

// untouched are catalogs of a node that stand as far as rows say: but for facts, what certificates and groups say, and answers.
type untouched struct {
	node       fleet.Certname
	candidates []Compilation // with Inputs, without their files
}

// look finds out whose catalogs do not stand because of the files that were read, or must not be used again at all.
func (s *Survey) look(ctx context.Context, nodes []fleet.Certname) ([]untouched, error) {
	candidates, err := s.Store.Candidates(ctx, s.env, nodes)
	if err != nil {
		return nil, err
	}
	stops, err := s.Store.ReuseStopsOf(ctx, s.env, nodes)
	if err != nil {
		return nil, err
	}
	var inputs []int64
	for _, list := range candidates {
		for _, c := range list {
			inputs = append(inputs, c.Read)
		}
	}
	read, err := s.store.Footprints(ctx, inputs)
	if err != nil {
		return nil, err
	}
	left := make([]untouched, len(nodes))
	for i, node := range nodes {
		left[i].node = node
		for _, c := range candidates[node] {
			trace, known := read[c.Read]
			if !known || s.aged(&trace.Set) != "" || stopped(stops[node], c.Compilation, s.version) != "" {
				continue
			}
			ok, err := s.unread(ctx, c.unchangedSince(), trace.Groups)
			if err != nil {
				return nil, err
			}
			if ok {
				c.Inputs = &trace.Set
				left[i].candidates = append(left[i].candidates, c.Compilation)
			}
		}
	}
	return left, nil
}

// unread says whether none of the groups of files holds something that differs since another version.
func (s *Survey) unread(ctx context.Context, since fleet.Digest, groups []fleet.Digest) (bool, error) {
	if since == s.version {
		return true, nil
	}
	j := s.judged[since]
	if j == nil {
		var err error
		if j, err = newJudgement(ctx, s.Versions, s.prints, s.env, since, s.version); err != nil {
			return false, err
		}
		s.judged[since] = j
	}
	return j.untouched(ctx, s.prints.numbers(groups))
}

// Touched takes nodes apart: those whose catalogs read files that differ, or that have none, and the others, each in order.
func (s *Survey) Touched(ctx context.Context, nodes []fleet.Certname) (touched, others []fleet.Certname, err error) {
	left, err := s.look(ctx, nodes)
	for _, u := range left {
		if len(u.candidates) == 0 {
			touched = append(touched, u.node)
		} else {
			others = append(others, u.node)
		}
	}
	return touched, others, err
}

// Judge says of each node whether a stored catalog stands, in their order. What goes wrong with one node is a reason
// that none does. The inputs in a verdict are without files.
func (s *Survey) Judge(ctx context.Context, nodes []fleet.Certname) ([]Verdict, error) {
	left, err := s.look(ctx, nodes)
	if err != nil {
		return nil, err
	}
	verdicts := make([]Verdict, len(left))
	err = parallel.Each(len(left), surveyors, func(i int) error {
		verdicts[i] = s.judgeRest(ctx, left[i])
		return ctx.Err()
	})
	return verdicts, err
}

// judgeRest judges by all but files, of which is known that they are as they were read.
func (s *Survey) judgeRest(ctx context.Context, u untouched) (v Verdict) {
	wish := Wish{Node: u.node, Environment: s.env, Version: s.version, Staged: true}
	for _, c := range u.candidates {
		c.Stands = s.version
		found, err := s.wholly(ctx, wish, Verdict{From: c}, s.engine(ctx, wish))
		if err == nil && found.Holds {
			return found
		}
	}
	return v
}
