package sql

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// CodeSources is repositories whose branches are environments.
type CodeSources struct{ *base }

// Sources implements source.Store.
func (s *CodeSources) Sources(ctx context.Context) ([]source.Row, error) {
	rows, err := collect(ctx, s.reads, func(row scanner) (r source.Row, err error) {
		var text string
		if err = row.Scan(&text, &r.Sealed); err == nil {
			err = json.Unmarshal([]byte(text), &r.Source)
		}
		return r, err
	}, "SELECT document, sealed FROM code_sources ORDER BY name")
	return rows, explain(err, "read the sources of code")
}

// SaveSource implements source.Store.
func (s *CodeSources) SaveSource(ctx context.Context, r source.Row) error {
	text, err := json.Marshal(r.Source)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO code_sources (name, document, sealed) VALUES ($1, $2, $3)
			ON CONFLICT (name) DO UPDATE SET document = excluded.document, sealed = excluded.sealed`, r.Name, query.Clean(string(text)), r.Sealed)
		return err
	})
	return explain(err, "keep the source %s", r.Name)
}

// RemoveSource implements source.Store. Its branches go with it.
func (s *CodeSources) RemoveSource(ctx context.Context, name string) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, "DELETE FROM code_sources WHERE name = $1", name)
		if err == nil && n == 0 {
			err = fault.New(fault.NotFound, "there is no source %.80s", name)
		}
		return err
	})
	return explain(err, "remove the source %.80s", name)
}

// Branches implements source.Store.
func (s *CodeSources) Branches(ctx context.Context) ([]source.Branch, error) {
	rows, err := collect(ctx, s.reads, func(row scanner) (b source.Branch, err error) {
		var text string
		if err = row.Scan(&text); err == nil {
			err = json.Unmarshal([]byte(text), &b)
		}
		return b, err
	}, "SELECT document FROM code_branches ORDER BY environment")
	return rows, explain(err, "read the branches of sources")
}

// SaveBranch implements source.Store.
func (s *CodeSources) SaveBranch(ctx context.Context, b source.Branch) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO code_branches (environment, source, document) VALUES ($1, $2, $3)
			ON CONFLICT (environment) DO UPDATE SET source = excluded.source, document = excluded.document`, b.Environment, b.Source, query.Clean(string(text)))
		return err
	})
	return explain(err, "keep the branch of %s", b.Environment)
}

// RemoveBranch implements source.Store.
func (s *CodeSources) RemoveBranch(ctx context.Context, env fleet.Environment) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "DELETE FROM code_branches WHERE environment = $1", env)
		return err
	})
	return explain(err, "forget the branch of %s", env)
}
