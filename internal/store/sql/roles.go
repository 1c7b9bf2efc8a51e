package sql

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/rbac"
)

const roleColumns = "name, description, grants, changed_at, changed_by"

func scanRole(row scanner) (r rbac.Role, err error) {
	err = row.Scan(&r.Name, &r.Description, jsonScanner{&r.Grants}, at(&r.ChangedAt), &r.ChangedBy)
	return r, err
}

// CreateRole implements rbac.RoleStore.
func (s *Access) CreateRole(ctx context.Context, r rbac.Role) error {
	return s.putRole(ctx, r, fault.Conflict, "there is a role %s already",
		"INSERT INTO roles ("+roleColumns+") VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING")
}

// ReplaceRole implements rbac.RoleStore.
func (s *Access) ReplaceRole(ctx context.Context, r rbac.Role) error {
	return s.putRole(ctx, r, fault.NotFound, "there is no role %.80q",
		"UPDATE roles SET description = $2, grants = $3, changed_at = $4, changed_by = $5 WHERE name = $1")
}

// putRole runs a statement that writes r; none means a fault of that kind.
func (s *Access) putRole(ctx context.Context, r rbac.Role, none fault.Kind, why, statement string) error {
	grants, err := json.Marshal(r.Grants)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, statement, r.Name, r.Description, string(grants), micros(r.ChangedAt), r.ChangedBy)
		if err == nil && n == 0 {
			return fault.New(none, why, r.Name)
		}
		return err
	})
	return explain(err, "save role %s", r.Name)
}

// DeleteRole implements rbac.RoleStore.
func (s *Access) DeleteRole(ctx context.Context, name string) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if err := unusedRole(ctx, q, name); err != nil {
			return err
		}
		n, err := q.exec(ctx, "DELETE FROM roles WHERE name = $1", name)
		if err == nil && n == 0 {
			return fault.New(fault.NotFound, "there is no role %.80q", name)
		}
		return err
	})
	return explain(err, "delete role %s", name)
}

// unusedRole looks at everybody: there are few users, and roles are seldom deleted.
func unusedRole(ctx context.Context, q querier, name string) error {
	users, err := collect(ctx, q, scanUser, "SELECT "+userColumns+" FROM users WHERE roles <> 'null' ORDER BY name")
	if err != nil {
		return err
	}
	for _, u := range users {
		if slices.Contains(u.Roles, name) {
			return fault.New(fault.Conflict, "user %s has the role %s; take it away first", u.Name, name)
		}
	}
	tokens, err := collect(ctx, q, scanToken, "SELECT "+tokenColumns+" FROM access_tokens WHERE narrowed = 1 ORDER BY id")
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if slices.Contains(t.Roles, name) {
			return fault.New(fault.Conflict, "token %s of user %s has the role %s; revoke it first", t.ID, t.Owner, name)
		}
	}
	return nil
}

// Role implements rbac.RoleStore.
func (s *Access) Role(ctx context.Context, name string) (rbac.Role, error) {
	r, err := scanRole(s.reads.row(ctx, "SELECT "+roleColumns+" FROM roles WHERE name = $1", name))
	return r, explain(missing(err, "there is no role %.80q", name), "read role %s", name)
}

// Roles implements rbac.RoleStore.
func (s *Access) Roles(ctx context.Context) ([]rbac.Role, error) {
	roles, err := collect(ctx, s.reads, scanRole, "SELECT "+roleColumns+" FROM roles ORDER BY name")
	return roles, explain(err, "list roles")
}
