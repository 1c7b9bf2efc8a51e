package server

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/preview"
)

// judge asks policies about previews.
type judge struct{ *parts }

// JudgePreview implements httpapi.PreviewJudge.
func (j judge) JudgePreview(ctx context.Context, p preview.Preview, rules []policy.Rule, at time.Time) (policy.Verdict, error) {
	if p.State != preview.Ready {
		return policy.Verdict{}, fault.New(fault.Conflict, "preview %d is %s: its changes are all known when it is ready", p.ID, p.State)
	}
	changes, err := j.changes(ctx, p.ID, nil)
	if err != nil {
		return policy.Verdict{}, err
	}
	return j.policies.JudgeBy(ctx, rules, subjectOf(p, p.Counts.Total(), nil, at), changes)
}

// subjectOf is what rules see of a preview of which some nodes are released.
func subjectOf(p preview.Preview, nodes int, waves []int, at time.Time) policy.Subject {
	unseen := 0
	for _, u := range p.Unseen {
		unseen += u.Nodes
	}
	return policy.Subject{
		Environment: p.Environment, At: at, Nodes: nodes, Waves: waves,
		Preview: policy.Totals{
			Nodes: p.Counts.Total(), Changed: p.Counts[preview.Changed], Same: p.Counts[preview.Same] + p.Counts[preview.Reordered],
			Failed: p.Counts[preview.Failed], Unseen: unseen,
		},
	}
}

// changes are those of a ready preview, with the nodes that have them; nodes nil: all of the preview's.
func (j judge) changes(ctx context.Context, id int64, nodes []fleet.Certname) (iter.Seq2[policy.Change, error], error) {
	wanted, err := j.numbers(ctx, id, nodes)
	if err != nil {
		return nil, err
	}
	acknowledged, err := j.acknowledged(ctx, id)
	if err != nil {
		return nil, err
	}
	return func(yield func(policy.Change, error) bool) {
		err := j.previews.EachGroup(ctx, id, func(g preview.Group) error {
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
func (j judge) numbers(ctx context.Context, id int64, nodes []fleet.Certname) (map[uint32]bool, error) {
	if nodes == nil {
		return nil, nil //nolint:nilnil // every one
	}
	named := make(map[fleet.Certname]bool, len(nodes))
	for _, node := range nodes {
		named[node] = true
	}
	wanted := make(map[uint32]bool, len(nodes))
	return wanted, j.previews.EachShare(ctx, id, func(s preview.Share) error {
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
func (j judge) acknowledged(ctx context.Context, id int64) (map[string]bool, error) {
	remarks, err := j.previews.Remarks(ctx, id)
	keys := map[string]bool{}
	for _, r := range remarks {
		switch r.Kind {
		case preview.Acknowledged:
			keys[r.Group] = true
		case preview.Withdrawn:
			delete(keys, r.Group)
		case preview.Comment:
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
