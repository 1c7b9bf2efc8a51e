package sql

import (
	"context"
	"time"
)

// PruneCertificates implements pki.Store.
func (s *Authority) PruneCertificates(ctx context.Context, before time.Time) (int, error) {
	return s.prune(ctx, "certificates", "DELETE FROM certificates WHERE current = 0 AND server = 0 AND length(pem) > 0 AND not_after < $1", micros(before))
}

// PruneJoinTokens implements pki.Store.
func (s *Authority) PruneJoinTokens(ctx context.Context, before time.Time) (int, error) {
	return s.prune(ctx, "join tokens", "DELETE FROM join_tokens WHERE expires_at < $1", micros(before))
}

// PruneRules implements policy.Store.
func (s *Policies) PruneRules(ctx context.Context, before time.Time, keep int) (int, error) {
	return s.pruneRules(ctx, before, keep, policyRules, freezeRules)
}

// PruneNoise implements preview.NoiseStore.
func (s *Previews) PruneNoise(ctx context.Context, before time.Time, keep int) (int, error) {
	return s.pruneRules(ctx, before, keep, noiseRules)
}

func (s *base) pruneRules(ctx context.Context, before time.Time, keep int, kinds ...ruleKind) (pruned int, err error) {
	for _, k := range kinds {
		n, err := s.prune(ctx, "rules", `DELETE FROM rule_versions WHERE kind = $1 AND changed_at < $2 AND version <=
			(SELECT MAX(n.version) FROM rule_versions n WHERE n.kind = rule_versions.kind AND n.name = rule_versions.name) - $3`,
			k.kind, micros(before), max(keep, 1))
		if err != nil {
			return pruned, err
		}
		pruned += n
	}
	return pruned, nil
}

// prune deletes rows and counts them.
func (s *base) prune(ctx context.Context, what, statement string, args ...any) (int, error) {
	var count int64
	err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
		count, err = q.exec(ctx, statement, args...)
		return err
	})
	return int(count), explain(err, "prune %s", what)
}
