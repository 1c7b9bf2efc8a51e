package sqlstore

import (
	"context"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// SaveAccessToken implements rbac.TokenStore.
func (s *Store) SaveAccessToken(ctx context.Context, t rbac.Token) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO access_tokens (label, hash, admin, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (label) DO UPDATE SET hash = excluded.hash, admin = excluded.admin, created_at = excluded.created_at,
			expires_at = excluded.expires_at`, t.Label, t.Hash, bit(t.Admin), micros(t.CreatedAt), micros(t.ExpiresAt))
		return err
	})
	return explain(err, "save token %s", t.Label)
}

// AccessToken implements rbac.TokenStore.
func (s *Store) AccessToken(ctx context.Context, hash fleet.Digest) (t rbac.Token, err error) {
	err = s.reads.row(ctx, "SELECT hash, label, admin, created_at, expires_at FROM access_tokens WHERE hash = $1", hash).
		Scan(&t.Hash, &t.Label, &t.Admin, at(&t.CreatedAt), at(&t.ExpiresAt))
	return t, explain(missing(err, "there is no such token"), "find a token")
}
