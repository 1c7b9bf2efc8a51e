package server

import (
	"context"
	"iter"

	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/release"
)

// releaseGate is release.Gate over policies: every change of the preview that touches a node of the release is judged, also one that
// noise rules hide. A roll back has no preview: rules that look at changes say nothing of it, all others and freezes do.
type releaseGate struct{ *parts }

var _ release.Gate = releaseGate{}

// Judge implements release.Gate.
func (g releaseGate) Judge(ctx context.Context, q release.Question) (release.Verdict, error) {
	subject := policy.Subject{Environment: q.Environment, At: q.At, Nodes: len(q.Nodes), Waves: q.Waves}
	changes := iter.Seq2[policy.Change, error](func(func(policy.Change, error) bool) {})
	if q.Preview != 0 {
		p, err := g.previews.Preview(ctx, q.Preview)
		if err != nil {
			return release.Verdict{}, err
		}
		subject = subjectOf(p, len(q.Nodes), q.Waves, q.At)
		if changes, err = judge(g).changes(ctx, q.Preview, q.Nodes); err != nil {
			return release.Verdict{}, err
		}
	}
	verdict, err := g.policies.Judge(ctx, subject, changes)
	return verdictFor(verdict), err
}

// verdictFor says a verdict in the words of releases.
func verdictFor(v policy.Verdict) (verdict release.Verdict) {
	for _, f := range v.Findings {
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
