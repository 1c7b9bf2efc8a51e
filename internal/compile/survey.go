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
	nothing *Reading                    // of catalogs of the version itself
}

// Survey begins one for a version of an environment.
func (r *Reuser) Survey(store Readings, env fleet.Environment, version fleet.Digest) *Survey {
	return &Survey{Reuser: r, env: env, version: version, store: store, prints: newFootprints(store), judged: map[fleet.Digest]*judgement{}, nothing: &Reading{}}
}

// untouched are catalogs of a node that stand as far as rows say: but for facts, what certificates and groups say, and answers.
type untouched struct {
	node       fleet.Certname
	candidates []Compilation // with Inputs, without their files
	last       *trace        // of the first of all of which is known what they read
}

// trace is the files that a catalog read, and the version in which they are as they were read.
type trace struct {
	since  fleet.Digest
	groups []fleet.Digest
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
			footprint, known := read[c.Read]
			if known && left[i].last == nil {
				left[i].last = &trace{c.unchangedSince(), footprint.Groups}
			}
			if !known || s.aged(&footprint.Set) != "" || stopped(stops[node], c.Compilation, s.version) != "" {
				continue
			}
			ok, err := s.unread(ctx, c.unchangedSince(), footprint.Groups)
			if err != nil {
				return nil, err
			}
			if ok {
				c.Inputs = &footprint.Set
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
	j, err := s.judgement(ctx, since)
	if err != nil {
		return false, err
	}
	return j.untouched(ctx, s.prints.numbers(groups))
}

// judgement is how what differs since another version meets groups.
func (s *Survey) judgement(ctx context.Context, since fleet.Digest) (*judgement, error) {
	j := s.judged[since]
	if j == nil {
		var err error
		if j, err = newJudgement(ctx, s.Versions, s.prints, s.env, since, s.version); err != nil {
			return nil, err
		}
		s.judged[since] = j
	}
	return j, nil
}

// Reading is the changed files that a catalog read, in order.
type Reading struct{ Files []string }

// Reader is a node whose catalog may change, and what its last catalog read of what differs since then.
type Reader struct {
	Node fleet.Certname
	// Read is nil where nobody knows, and one for all nodes of a survey that are known to have read the same in the same way.
	Read *Reading
}

// Readers is those of the nodes that Touched has first, with what their last catalogs read of what differs. With all, the others are
// among them, too.
func (s *Survey) Readers(ctx context.Context, nodes []fleet.Certname, all bool) ([]Reader, error) {
	left, err := s.look(ctx, nodes)
	if err != nil {
		return nil, err
	}
	var readers []Reader
	for _, u := range left {
		if len(u.candidates) > 0 && !all {
			continue
		}
		reader := Reader{Node: u.node}
		if u.last != nil && u.last.since == s.version {
			reader.Read = s.nothing
		} else if u.last != nil {
			j, err := s.judgement(ctx, u.last.since)
			if err != nil {
				return nil, err
			}
			if reader.Read, err = j.reading(ctx, s.prints.numbers(u.last.groups)); err != nil {
				return nil, err
			}
		}
		readers = append(readers, reader)
	}
	return readers, nil
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
		found, err := s.wholly(ctx, wish, Verdict{From: c}, s.awaited(ctx, wish))
		if err == nil && found.Holds {
			return found
		}
	}
	return v
}
