package release

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/policy"
)

// Policies is Gate over policies: every change of the preview that touches a node of the release is judged, also one that
// noise rules hide. A roll back has no preview: rules that look at changes say nothing of it, all others and freezes do.
type Policies struct {
	Previews Judged
	Policies *policy.Service
}

// Judged is what policies see of previews.
type Judged interface {
	// Subject is a preview of which some nodes are released.
	Subject(ctx context.Context, id int64, nodes int, waves []int, at time.Time) (policy.Subject, error)
	// Changes are those of a ready preview, of some of its nodes.
	Changes(ctx context.Context, id int64, nodes []fleet.Certname) (iter.Seq2[policy.Change, error], error)
}

var _ Gate = Policies{}

// Judge implements Gate.
func (g Policies) Judge(ctx context.Context, q Question) (Verdict, error) {
	if q.Preview == 0 {
		return g.rollBack(ctx, q)
	}
	subject, err := g.Previews.Subject(ctx, q.Preview, len(q.Nodes), q.Waves, q.At)
	if err != nil {
		return Verdict{}, err
	}
	changes, err := g.Previews.Changes(ctx, q.Preview, q.Nodes)
	if err != nil {
		return Verdict{}, err
	}
	verdict, err := g.Policies.Judge(ctx, subject, changes)
	return verdictFor(verdict), err
}

// rollBack judges a roll back for each environment that nodes go back to: what one of them forbids is forbidden, and it is frozen until
// none is.
func (g Policies) rollBack(ctx context.Context, q Question) (all Verdict, err error) {
	nothing := iter.Seq2[policy.Change, error](func(func(policy.Change, error) bool) {})
	for _, env := range q.Environments {
		verdict, err := g.Policies.Judge(ctx, policy.Subject{Environment: env, At: q.At, Nodes: len(q.Nodes), Waves: q.Waves}, nothing)
		if err != nil {
			return all, err
		}
		said := verdictFor(verdict)
		for _, f := range said.Findings {
			if !slices.ContainsFunc(all.Findings, func(g Finding) bool { return g.Rule == f.Rule }) {
				all.Findings = append(all.Findings, f)
			}
		}
		if said.Frozen != nil && (all.Frozen == nil || said.Frozen.Until.After(all.Frozen.Until)) {
			all.Frozen = said.Frozen
		}
	}
	return all, nil
}

// verdictFor says a verdict in the words of releases.
func verdictFor(v policy.Verdict) (verdict Verdict) {
	for _, f := range slices.Concat(v.Losses, v.Findings) {
		message := f.Message
		if f.Broken != "" {
			message += " (the policy could not be judged, and so counts as found: " + f.Broken + ")"
		}
		verdict.Findings = append(verdict.Findings, Finding{
			Rule: f.Rule, Effect: Effect(f.Effect), Role: f.Role, AuthorMay: f.AuthorMay, Message: message, Nodes: f.Nodes, Groups: f.Changes,
		})
	}
	if v.Frozen != nil {
		verdict.Frozen = &Freeze{Until: v.Frozen.Until, Why: v.Frozen.Why}
	}
	return verdict
}
