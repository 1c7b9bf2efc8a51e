package sql

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

const tokenColumns = "id, hash, owner, label, roles, narrowed, created_at, expires_at, used_at" //nolint:gosec // names of columns

func scanToken(row scanner) (t rbac.Token, err error) {
	err = row.Scan(&t.ID, &t.Hash, &t.Owner, &t.Label, list(&t.Roles), &t.Narrowed, at(&t.CreatedAt), at(&t.ExpiresAt), at(&t.UsedAt))
	return t, err
}

// SaveAccessToken implements rbac.TokenStore.
func (s *Access) SaveAccessToken(ctx context.Context, t rbac.Token) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := one[string](q.row(ctx, "SELECT name FROM users WHERE name = $1"+s.dialect.forUpdate, t.Owner)); err != nil {
			return missing(err, "there is no user %.80q", t.Owner)
		}
		n, err := q.exec(ctx, "INSERT INTO access_tokens ("+tokenColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING",
			t.ID, t.Hash, t.Owner, t.Label, listText(t.Roles), bit(t.Narrowed), micros(t.CreatedAt), micros(t.ExpiresAt), micros(t.UsedAt))
		if err == nil && n == 0 {
			return fault.New(fault.Conflict, "user %s has a token called %s already; revoke it first, or choose another label", t.Owner, t.Label)
		}
		return err
	})
	return explain(err, "save a token of %s", t.Owner)
}

// Bearer implements rbac.TokenStore.
func (s *Access) Bearer(ctx context.Context, hash fleet.Digest) (b rbac.Bearer, err error) {
	err = s.snapshot(ctx, func(ctx context.Context, q querier) error {
		var err error
		if b.Token, err = scanToken(q.row(ctx, "SELECT "+tokenColumns+" FROM access_tokens WHERE hash = $1", hash)); err != nil {
			return missing(err, "there is no such token")
		}
		if b.User, err = scanUser(q.row(ctx, "SELECT "+userColumns+" FROM users WHERE name = $1", b.Token.Owner)); err != nil {
			return missing(err, "there is no such token")
		}
		for _, name := range named(b.User.Roles, b.Token.Roles) {
			role, err := scanRole(q.row(ctx, "SELECT "+roleColumns+" FROM roles WHERE name = $1", name))
			if errors.Is(err, sql.ErrNoRows) { // built in
				continue
			}
			if err != nil {
				return err
			}
			b.Roles = append(b.Roles, role)
		}
		return nil
	})
	return b, explain(err, "find a token")
}

// named joins names in order, each once.
func named(lists ...[]string) []string {
	names := slices.Concat(lists...)
	slices.Sort(names)
	return slices.Compact(names)
}

// Tokens implements rbac.TokenStore.
func (s *Access) Tokens(ctx context.Context, owner string, page rbac.Page) ([]rbac.Token, error) {
	tokens, err := collect(ctx, s.reads, scanToken, "SELECT "+tokenColumns+` FROM access_tokens
		WHERE id > $1 AND (owner = $2 OR $2 = '') ORDER BY id LIMIT $3`, page.After, owner, page.Limit)
	return tokens, explain(err, "list tokens")
}

// RevokeToken implements rbac.TokenStore.
func (s *Access) RevokeToken(ctx context.Context, owner, idOrLabel string) (revoked rbac.Token, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		t, err := scanToken(q.row(ctx, "SELECT "+tokenColumns+` FROM access_tokens WHERE owner = $1 AND (id = $2 OR label = $2) AND $2 <> ''
			ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1`, owner, idOrLabel))
		if err != nil {
			return missing(err, "user %s has no token %.80q", owner, idOrLabel)
		}
		_, err = q.exec(ctx, "DELETE FROM access_tokens WHERE id = $1", t.ID)
		revoked = t
		return err
	})
	return revoked, explain(err, "revoke a token of %s", owner)
}

// RevokeTokens implements rbac.TokenStore.
func (s *Access) RevokeTokens(ctx context.Context, owner, exceptID string, keepLabelled bool) (revoked int, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, "DELETE FROM access_tokens WHERE owner = $1 AND id <> $2 AND (label = '' OR $3 = 0)", owner, exceptID, bit(keepLabelled))
		revoked = int(n)
		return err
	})
	return revoked, explain(err, "revoke the tokens of %s", owner)
}

// SeeAdminSecret implements rbac.TokenStore.
func (s *Access) SeeAdminSecret(ctx context.Context, hash fleet.Digest, seen time.Time) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "INSERT INTO admin_secrets (hash, seen_at) VALUES ($1, $2) ON CONFLICT DO NOTHING", hash, micros(seen))
		return err
	})
	return explain(err, "remember the administrator's token")
}

// AdminSecretSeen implements rbac.TokenStore.
func (s *Access) AdminSecretSeen(ctx context.Context, hash fleet.Digest) (bool, error) {
	n, err := one[int64](s.reads.row(ctx, "SELECT COUNT(*) FROM admin_secrets WHERE hash = $1", hash))
	return n > 0, explain(err, "look for the administrator's token")
}

// TouchTokens implements rbac.TokenStore.
func (s *Access) TouchTokens(ctx context.Context, used map[string]time.Time) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		for id, when := range used {
			if _, err := q.exec(ctx, "UPDATE access_tokens SET used_at = $2 WHERE id = $1 AND used_at < $2", id, micros(when)); err != nil {
				return err
			}
		}
		return nil
	})
	return explain(err, "note the last use of tokens")
}

// PruneTokens implements rbac.TokenStore.
func (s *Access) PruneTokens(ctx context.Context, before time.Time) (pruned int, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, "DELETE FROM access_tokens WHERE expires_at <> 0 AND expires_at < $1", micros(before))
		pruned = int(n)
		return err
	})
	return pruned, explain(err, "prune tokens")
}
