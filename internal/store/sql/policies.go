package sql

import (
	"context"

	"github.com/tutti-project/tutti/internal/policy"
)

// Policies is rules that forbid or hold changes.
type Policies struct{ *base }

func policyOf(row ruleRow, rule *policy.Rule) any {
	rule.Name, rule.Stamp = row.name, row.Stamp
	return &rule.Definition
}

func freezeOf(row ruleRow, freeze *policy.Freeze) any {
	freeze.Name, freeze.Stamp = row.name, row.Stamp
	return &freeze.Freezing
}

// Policies implements policy.Store.
func (s *Policies) Policies(ctx context.Context) ([]policy.Rule, error) {
	rows, err := s.rules(ctx, policyRules)
	return readRules(rows, err, policyOf)
}

// PolicyHistory implements policy.Store.
func (s *Policies) PolicyHistory(ctx context.Context, name string) ([]policy.Rule, error) {
	rows, err := s.ruleHistory(ctx, policyRules, name)
	return readRules(rows, err, policyOf)
}

// SavePolicy implements policy.Store.
func (s *Policies) SavePolicy(ctx context.Context, r policy.Rule) (policy.Rule, error) {
	return storeRule(ctx, s.base, policyRules, ruleRow{name: r.Name, Stamp: r.Stamp}, r.Definition, policyOf)
}

// Freezes implements policy.Store.
func (s *Policies) Freezes(ctx context.Context) ([]policy.Freeze, error) {
	rows, err := s.rules(ctx, freezeRules)
	return readRules(rows, err, freezeOf)
}

// FreezeHistory implements policy.Store.
func (s *Policies) FreezeHistory(ctx context.Context, name string) ([]policy.Freeze, error) {
	rows, err := s.ruleHistory(ctx, freezeRules, name)
	return readRules(rows, err, freezeOf)
}

// SaveFreeze implements policy.Store.
func (s *Policies) SaveFreeze(ctx context.Context, f policy.Freeze) (policy.Freeze, error) {
	return storeRule(ctx, s.base, freezeRules, ruleRow{name: f.Name, Stamp: f.Stamp}, f.Freezing, freezeOf)
}
