package sql

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/inventory/saved"
)

// SavedQueries is questions to the inventory that have names.
type SavedQueries struct{ *base }

func savedOf(row ruleRow, q *saved.Query) any {
	q.Name, q.Stamp = row.name, row.Stamp
	return &q.Definition
}

// Saved implements saved.Store.
func (s *SavedQueries) Saved(ctx context.Context) ([]saved.Query, error) {
	rows, err := s.rules(ctx, queryRules)
	return readRules(rows, err, savedOf)
}

// SavedHistory implements saved.Store.
func (s *SavedQueries) SavedHistory(ctx context.Context, name string) ([]saved.Query, error) {
	rows, err := s.ruleHistory(ctx, queryRules, name)
	return readRules(rows, err, savedOf)
}

// SaveQuery implements saved.Store.
func (s *SavedQueries) SaveQuery(ctx context.Context, q saved.Query) (saved.Query, error) {
	return storeRule(ctx, s.base, queryRules, ruleRow{name: q.Name, Stamp: q.Stamp}, q.Definition, savedOf)
}

// PruneSaved implements saved.Store.
func (s *SavedQueries) PruneSaved(ctx context.Context, before time.Time, keep int) (int, error) {
	return s.pruneRules(ctx, before, keep, queryRules)
}
