package sql

import (
	"context"

	"github.com/tutti-project/tutti/internal/policy"
)

var _ policy.Store = (*Store)(nil)

func policyOf(row ruleRow, rule *policy.Rule) any {
	rule.Name, rule.Stamp = row.name, row.Stamp
	return &rule.Definition
}

func freezeOf(row ruleRow, freeze *policy.Freeze) any {
	freeze.Name, freeze.Stamp = row.name, row.Stamp
	return &freeze.Freezing
}

// Policies implements policy.Store.
func (s *Store) Policies(ctx context.Context) ([]policy.Rule, error) {
	rows, err := s.rules(ctx, policyRules)
	return readRules(rows, err, policyOf)
}

// PolicyHistory implements policy.Store.
func (s *Store) PolicyHistory(ctx context.Context, name string) ([]policy.Rule, error) {
	rows, err := s.ruleHistory(ctx, policyRules, name)
	return readRules(rows, err, policyOf)
}

// SavePolicy implements policy.Store.
func (s *Store) SavePolicy(ctx context.Context, r policy.Rule) (policy.Rule, error) {
	return storeRule(ctx, s, policyRules, ruleRow{name: r.Name, Stamp: r.Stamp}, r.Definition, policyOf)
}

// Freezes implements policy.Store.
func (s *Store) Freezes(ctx context.Context) ([]policy.Freeze, error) {
	rows, err := s.rules(ctx, freezeRules)
	return readRules(rows, err, freezeOf)
}

// FreezeHistory implements policy.Store.
func (s *Store) FreezeHistory(ctx context.Context, name string) ([]policy.Freeze, error) {
	rows, err := s.ruleHistory(ctx, freezeRules, name)
	return readRules(rows, err, freezeOf)
}

// SaveFreeze implements policy.Store.
func (s *Store) SaveFreeze(ctx context.Context, f policy.Freeze) (policy.Freeze, error) {
	return storeRule(ctx, s, freezeRules, ruleRow{name: f.Name, Stamp: f.Stamp}, f.Freezing, freezeOf)
}
