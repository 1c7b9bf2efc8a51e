package sql

import (
	"context"
	"database/sql"
	"errors"
)

// Secrets are what servers that use the same records must have alike. They are sealed before they come here.
type Secrets struct{ *base }

// Secret returns what is kept by a name; nil if there is nothing.
func (s *Secrets) Secret(ctx context.Context, name string) ([]byte, error) {
	sealed, err := one[[]byte](s.reads.row(ctx, "SELECT sealed FROM cluster_secrets WHERE name = $1", name))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return sealed, explain(err, "read a secret of the servers")
}

// KeepSecret keeps it in place of what there was.
func (s *Secrets) KeepSecret(ctx context.Context, name string, sealed []byte) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO cluster_secrets (name, sealed) VALUES ($1, $2)
			ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed`, name, sealed)
		return err
	})
	return explain(err, "keep a secret of the servers")
}

// AddSecret keeps it if nothing is kept by its name, and returns what is kept then: that of whoever was first.
func (s *Secrets) AddSecret(ctx context.Context, name string, sealed []byte) (kept []byte, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := q.exec(ctx, "INSERT INTO cluster_secrets (name, sealed) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", name, sealed); err != nil {
			return err
		}
		var err error
		kept, err = one[[]byte](q.row(ctx, "SELECT sealed FROM cluster_secrets WHERE name = $1", name))
		return err
	})
	return kept, explain(err, "add a secret of the servers")
}
