package sql

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/rbac"
)

// Access is users, roles and tokens.
type Access struct{ *base }

// listText is how a list of words is stored.
func listText(words []string) string {
	text, _ := json.Marshal(words) // strings always can
	return string(text)
}

// list scans a stored list of words into words; null becomes nil.
func list(words *[]string) jsonScanner { return jsonScanner{words} }

// jsonScanner scans a text of JSON.
type jsonScanner struct{ to any }

func (s jsonScanner) Scan(v any) error {
	switch v := v.(type) {
	case string:
		return json.Unmarshal([]byte(v), s.to)
	case []byte:
		return json.Unmarshal(v, s.to)
	}
	return fault.New(fault.Internal, "JSON is stored as %T", v)
}

const userColumns = "name, kind, roles, password, disabled, created_at, changed_at, changed_by, login_at, failures, locked_until"

func scanUser(row scanner) (u rbac.User, err error) {
	err = row.Scan(&u.Name, &u.Kind, list(&u.Roles), &u.Password, &u.Disabled, at(&u.CreatedAt), at(&u.ChangedAt), &u.ChangedBy,
		at(&u.LoginAt), &u.Failures, at(&u.LockedUntil))
	return u, err
}

// CreateUser implements rbac.UserStore.
func (s *Access) CreateUser(ctx context.Context, u rbac.User) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, "INSERT INTO users ("+userColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
			ON CONFLICT DO NOTHING`, u.Name, u.Kind, listText(u.Roles), u.Password, bit(u.Disabled), micros(u.CreatedAt), micros(u.ChangedAt),
			u.ChangedBy, micros(u.LoginAt), u.Failures, micros(u.LockedUntil))
		if err == nil && n == 0 {
			return fault.New(fault.Conflict, "there is a user %s already", u.Name)
		}
		return err
	})
	return explain(err, "create user %s", u.Name)
}

// ChangeUser implements rbac.UserStore.
func (s *Access) ChangeUser(ctx context.Context, name string, change func(*rbac.User) error) (changed rbac.User, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		u, err := scanUser(q.row(ctx, "SELECT "+userColumns+" FROM users WHERE name = $1"+s.dialect.forUpdate, name))
		if err != nil {
			return missing(err, "there is no user %.80q", name)
		}
		if err := change(&u); err != nil {
			return err
		}
		_, err = q.exec(ctx, `UPDATE users SET kind = $2, roles = $3, password = $4, disabled = $5, created_at = $6, changed_at = $7,
			changed_by = $8, login_at = $9, failures = $10, locked_until = $11 WHERE name = $1`,
			name, u.Kind, listText(u.Roles), u.Password, bit(u.Disabled), micros(u.CreatedAt), micros(u.ChangedAt),
			u.ChangedBy, micros(u.LoginAt), u.Failures, micros(u.LockedUntil))
		changed = u
		return err
	})
	return changed, explain(err, "change user %s", name)
}

// DeleteUser implements rbac.UserStore.
func (s *Access) DeleteUser(ctx context.Context, name string) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, "DELETE FROM users WHERE name = $1", name)
		if err == nil && n == 0 {
			return fault.New(fault.NotFound, "there is no user %.80q", name)
		}
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, "DELETE FROM access_tokens WHERE owner = $1", name)
		return err
	})
	return explain(err, "delete user %s", name)
}

// User implements rbac.UserStore.
func (s *Access) User(ctx context.Context, name string) (rbac.User, error) {
	u, err := scanUser(s.reads.row(ctx, "SELECT "+userColumns+" FROM users WHERE name = $1", name))
	return u, explain(missing(err, "there is no user %.80q", name), "read user %s", name)
}

// Users implements rbac.UserStore.
func (s *Access) Users(ctx context.Context, page rbac.Page) ([]rbac.User, error) {
	users, err := collect(ctx, s.reads, scanUser, "SELECT "+userColumns+" FROM users WHERE name > $1 ORDER BY name LIMIT $2", page.After, page.Limit)
	return users, explain(err, "list users")
}
