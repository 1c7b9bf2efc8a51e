package server

import (
	"context"
	"iter"
	"slices"

	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/release"
)

// releaseGate is release.Gate over policies: every change of the preview that touches a node of the release is judged, also one that
// noise rules hide. A roll back has no preview: rules that look at changes say nothing of it, all others and freezes do.
type releaseGate struct{ *parts }

var _ release.Gate = releaseGate{}

// Judge implements release.Gate.
func (g releaseGate) Judge(ctx context.Context, q release.Question) (release.Verdict, error) {
	if q.Preview == 0 {
		return g.rollBack(ctx, q)
	}
	p, err := g.previews.Preview(ctx, q.Preview)
	if err != nil {
		return release.Verdict{}, err
	}
	changes, err := judge(g).changes(ctx, q.Preview, q.Nodes)
	if err != nil {
		return release.Verdict{}, err
	}
	verdict, err := g.policies.Judge(ctx, subjectOf(p, len(q.Nodes), q.Waves, q.At), changes)
	return verdictFor(verdict), err
}

// rollBack judges a roll back for each environment that nodes go back to: what one of them forbids is forbidden, and it is frozen until
// none is.
func (g releaseGate) rollBack(ctx context.Context, q release.Question) (all release.Verdict, err error) {
	nothing := iter.Seq2[policy.Change, error](func(func(policy.Change, error) bool) {})
	for _, env := range q.Environments {
		verdict, err := g.policies.Judge(ctx, policy.Subject{Environment: env, At: q.At, Nodes: len(q.Nodes), Waves: q.Waves}, nothing)
		if err != nil {
			return all, err
		}
		said := verdictFor(verdict)
		for _, f := range said.Findings {
			if !slices.ContainsFunc(all.Findings, func(g release.Finding) bool { return g.Rule == f.Rule }) {
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
func verdictFor(v policy.Verdict) (verdict release.Verdict) {
	for _, f := range slices.Concat(v.Losses, v.Findings) {
		message := f.Message
		if f.Broken != "" {
			message += " (the policy could not be judged, and so counts as found: " + f.Broken + ")"
		}
		verdict.Findings = append(verdict.Findings, release.Finding{
			Rule: f.Rule, Effect: release.Effect(f.Effect), Role: f.Role, AuthorMay: f.AuthorMay, Message: message, Nodes: f.Nodes, Groups: f.Changes,
		})
	}
	if v.Frozen != nil {
		verdict.Frozen = &release.Freeze{Until: v.Frozen.Until, Why: v.Frozen.Why}
	}
	return verdict
}
