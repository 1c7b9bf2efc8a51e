package preview

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/policy"
)

// Judge asks policies about previews.
type Judge struct {
	Previews *Service
	Policies *policy.Service
}

// JudgePreview says what rules make of a ready preview; Conflict for another one.
func (j Judge) JudgePreview(ctx context.Context, p Preview, rules []policy.Rule, at time.Time) (policy.Verdict, error) {
	if p.State != Ready {
		return policy.Verdict{}, fault.New(fault.Conflict, "preview %d is %s: its changes are all known when it is ready", p.ID, p.State)
	}
	changes, err := j.Changes(ctx, p.ID, nil)
	if err != nil {
		return policy.Verdict{}, err
	}
	return j.Policies.JudgeBy(ctx, rules, subjectOf(p, p.Counts.Total(), nil, at), changes)
}

// subjectOf is what rules see of a preview of which some nodes are released.
func subjectOf(p Preview, nodes int, waves []int, at time.Time) policy.Subject {
	unseen := 0
	for _, u := range p.Unseen {
		unseen += u.Nodes
	}
	return policy.Subject{
		Environment: p.Environment, At: at, Nodes: nodes, Waves: waves,
		Preview: policy.Totals{
			Nodes: p.Counts.Total(), Changed: p.Counts[Changed], Same: p.Counts[Same] + p.Counts[Reordered],
			Failed: p.Counts[Failed], Unseen: unseen,
		},
	}
}

// Subject is what rules see of a preview of which some nodes are released.
func (j Judge) Subject(ctx context.Context, id int64, nodes int, waves []int, at time.Time) (policy.Subject, error) {
	p, err := j.Previews.Preview(ctx, id)
	return subjectOf(p, nodes, waves, at), err
}

// Changes are those of a ready preview, with the nodes that have them; nodes nil: all of the preview's.
func (j Judge) Changes(ctx context.Context, id int64, nodes []fleet.Certname) (iter.Seq2[policy.Change, error], error) {
	wanted, err := j.numbers(ctx, id, nodes)
	if err != nil {
		return nil, err
	}
	acknowledged, err := j.acknowledged(ctx, id)
	if err != nil {
		return nil, err
	}
	return func(yield func(policy.Change, error) bool) {
		err := j.Previews.EachGroup(ctx, id, func(g Group) error {
			if !yield(changeOf(g.Change, among(g.Nodes, wanted), acknowledged[g.Change.Key]), nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(policy.Change{}, err)
		}
	}, nil
}

// errEnough ends a walk whose caller has seen enough.
var errEnough = errors.New("enough")

// numbers are those of some nodes in a preview; nil: every one.
func (j Judge) numbers(ctx context.Context, id int64, nodes []fleet.Certname) (map[uint32]bool, error) {
	if nodes == nil {
		return nil, nil //nolint:nilnil // every one
	}
	named := make(map[fleet.Certname]bool, len(nodes))
	for _, node := range nodes {
		named[node] = true
	}
	wanted := make(map[uint32]bool, len(nodes))
	return wanted, j.Previews.EachShare(ctx, id, func(s Share) error {
		if named[s.Node] {
			wanted[s.Number] = true
		}
		return nil
	})
}

func among(numbers []uint32, wanted map[uint32]bool) []uint32 {
	if wanted == nil {
		return numbers
	}
	var found []uint32
	for _, n := range numbers {
		if wanted[n] {
			found = append(found, n)
		}
	}
	return found
}

// acknowledged are the keys of the changes that somebody acknowledged.
func (j Judge) acknowledged(ctx context.Context, id int64) (map[string]bool, error) {
	remarks, err := j.Previews.Remarks(ctx, id)
	keys := map[string]bool{}
	for _, r := range remarks {
		switch r.Kind {
		case Acknowledged:
			keys[r.Group] = true
		case Withdrawn:
			delete(keys, r.Group)
		case Comment:
		}
	}
	return keys, err
}

func changeOf(g api.ChangeGroup, nodes []uint32, acknowledged bool) policy.Change {
	return policy.Change{
		Key: g.Key, Kind: g.Change, Type: g.Type, Title: g.Title, Parameters: g.Parameters, Exported: g.Exported, OrderOnly: g.OrderOnly,
		Acknowledged: acknowledged, File: g.File, Message: g.Message, Nodes: nodes,
	}
}
