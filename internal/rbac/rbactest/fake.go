// Package rbactest holds what every store of users, roles, tokens and of the audit
// log must do, as suites, and a store in memory that does it.
package rbactest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// Fake is a rbac.Store and rbac.AuditStore in memory.
type Fake struct {
	mu     sync.Mutex
	users  map[string]rbac.User
	roles  map[string]rbac.Role
	tokens map[string]rbac.Token // by id
	seen   map[fleet.Digest]bool // secrets of data directories
	acts   []rbac.Entry          // by id
	lines  []rbac.Line
	heads  []rbac.Head
	end    rbac.ChainEnd
	nextID int64
}

// New returns an empty Fake.
func New() *Fake {
	return &Fake{users: map[string]rbac.User{}, roles: map[string]rbac.Role{}, tokens: map[string]rbac.Token{}, seen: map[fleet.Digest]bool{}}
}

func unknown(what, name string) error {
	return fault.New(fault.NotFound, "there is no %s %s", what, name)
}

func taken(what, name string) error {
	return fault.New(fault.Conflict, "there is a %s %s already", what, name)
}

func cloneUser(u rbac.User) rbac.User {
	u.Roles = slices.Clone(u.Roles)
	return u
}

func cloneToken(t rbac.Token) rbac.Token {
	t.Roles = slices.Clone(t.Roles)
	return t
}

func cloneRole(r rbac.Role) rbac.Role {
	r.Grants = slices.Clone(r.Grants)
	return r
}

// CreateUser implements rbac.UserStore.
func (s *Fake) CreateUser(_ context.Context, u rbac.User) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.users[u.Name]; there {
		return taken("user", u.Name)
	}
	s.users[u.Name] = cloneUser(u)
	return nil
}

// ChangeUser implements rbac.UserStore.
func (s *Fake) ChangeUser(_ context.Context, name string, change func(*rbac.User) error) (rbac.User, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, there := s.users[name]
	if !there {
		return u, unknown("user", name)
	}
	u = cloneUser(u)
	if err := change(&u); err != nil {
		return u, err
	}
	s.users[name] = cloneUser(u)
	return u, nil
}

// DeleteUser implements rbac.UserStore.
func (s *Fake) DeleteUser(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.users[name]; !there {
		return unknown("user", name)
	}
	delete(s.users, name)
	maps.DeleteFunc(s.tokens, func(_ string, t rbac.Token) bool { return t.Owner == name })
	return nil
}

// User implements rbac.UserStore.
func (s *Fake) User(_ context.Context, name string) (rbac.User, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, there := s.users[name]
	if !there {
		return u, unknown("user", name)
	}
	return cloneUser(u), nil
}

// Users implements rbac.UserStore.
func (s *Fake) Users(_ context.Context, page rbac.Page) (users []rbac.User, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range after(s.users, page) {
		users = append(users, cloneUser(s.users[name]))
	}
	return users, nil
}

// after is a page of keys.
func after[V any](values map[string]V, page rbac.Page) []string {
	keys := slices.Sorted(maps.Keys(values))
	from, there := slices.BinarySearch(keys, page.After)
	if there {
		from++
	}
	return keys[from:min(len(keys), from+page.Limit)]
}

// CreateRole implements rbac.RoleStore.
func (s *Fake) CreateRole(_ context.Context, r rbac.Role) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.roles[r.Name]; there {
		return taken("role", r.Name)
	}
	s.roles[r.Name] = cloneRole(r)
	return nil
}

// ReplaceRole implements rbac.RoleStore.
func (s *Fake) ReplaceRole(_ context.Context, r rbac.Role) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.roles[r.Name]; !there {
		return unknown("role", r.Name)
	}
	s.roles[r.Name] = cloneRole(r)
	return nil
}

// DeleteRole implements rbac.RoleStore.
func (s *Fake) DeleteRole(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.roles[name]; !there {
		return unknown("role", name)
	}
	for _, u := range s.users {
		if slices.Contains(u.Roles, name) {
			return fault.New(fault.Conflict, "user %s has the role %s", u.Name, name)
		}
	}
	for _, t := range s.tokens {
		if slices.Contains(t.Roles, name) {
			return fault.New(fault.Conflict, "token %s of user %s has the role %s", t.ID, t.Owner, name)
		}
	}
	delete(s.roles, name)
	return nil
}

// Role implements rbac.RoleStore.
func (s *Fake) Role(_ context.Context, name string) (rbac.Role, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, there := s.roles[name]
	if !there {
		return r, unknown("role", name)
	}
	return cloneRole(r), nil
}

// Roles implements rbac.RoleStore.
func (s *Fake) Roles(context.Context) (roles []rbac.Role, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.roles)) {
		roles = append(roles, cloneRole(s.roles[name]))
	}
	return roles, nil
}

// SaveAccessToken implements rbac.TokenStore.
func (s *Fake) SaveAccessToken(_ context.Context, t rbac.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.users[t.Owner]; !there {
		return unknown("user", t.Owner)
	}
	for _, other := range s.tokens {
		if t.Label != "" && other.Owner == t.Owner && other.Label == t.Label {
			return taken("token", t.Label)
		}
		if other.ID == t.ID || other.Hash == t.Hash {
			return taken("token", t.ID)
		}
	}
	s.tokens[t.ID] = cloneToken(t)
	return nil
}

// Bearer implements rbac.TokenStore.
func (s *Fake) Bearer(_ context.Context, hash fleet.Digest) (rbac.Bearer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tokens {
		if t.Hash != hash {
			continue
		}
		b := rbac.Bearer{Token: cloneToken(t), User: cloneUser(s.users[t.Owner])}
		for _, name := range slices.Sorted(maps.Keys(s.roles)) {
			if slices.Contains(t.Roles, name) || slices.Contains(b.User.Roles, name) {
				b.Roles = append(b.Roles, cloneRole(s.roles[name]))
			}
		}
		return b, nil
	}
	return rbac.Bearer{}, fault.New(fault.NotFound, "there is no such token")
}

// Tokens implements rbac.TokenStore.
func (s *Fake) Tokens(_ context.Context, owner string, page rbac.Page) (tokens []rbac.Token, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chosen := maps.Clone(s.tokens)
	maps.DeleteFunc(chosen, func(_ string, t rbac.Token) bool { return owner != "" && t.Owner != owner })
	for _, id := range after(chosen, page) {
		tokens = append(tokens, cloneToken(chosen[id]))
	}
	return tokens, nil
}

// RevokeToken implements rbac.TokenStore.
func (s *Fake) RevokeToken(_ context.Context, owner, idOrLabel string) (rbac.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, byID := range []bool{true, false} {
		for id, t := range s.tokens {
			if t.Owner == owner && (byID && id == idOrLabel || !byID && t.Label == idOrLabel && t.Label != "") {
				delete(s.tokens, id)
				return t, nil
			}
		}
	}
	return rbac.Token{}, unknown("token", idOrLabel)
}

// RevokeTokens implements rbac.TokenStore.
func (s *Fake) RevokeTokens(_ context.Context, owner, exceptID string, keepLabelled bool) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.tokens)
	maps.DeleteFunc(s.tokens, func(id string, t rbac.Token) bool {
		return t.Owner == owner && id != exceptID && (t.Label == "" || !keepLabelled)
	})
	return before - len(s.tokens), nil
}

// SeeAdminSecret implements rbac.TokenStore.
func (s *Fake) SeeAdminSecret(_ context.Context, hash fleet.Digest, _ time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[hash] = true
	return nil
}

// AdminSecretSeen implements rbac.TokenStore.
func (s *Fake) AdminSecretSeen(_ context.Context, hash fleet.Digest) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[hash], nil
}

// TouchTokens implements rbac.TokenStore.
func (s *Fake) TouchTokens(_ context.Context, used map[string]time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, at := range used {
		if t, there := s.tokens[id]; there && at.After(t.UsedAt) {
			t.UsedAt = at
			s.tokens[id] = t
		}
	}
	return nil
}

// PruneTokens implements rbac.TokenStore.
func (s *Fake) PruneTokens(_ context.Context, before time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := len(s.tokens)
	maps.DeleteFunc(s.tokens, func(_ string, t rbac.Token) bool { return !t.ExpiresAt.IsZero() && t.ExpiresAt.Before(before) })
	return had - len(s.tokens), nil
}

// Acts implements rbac.AuditStore.
func (s *Fake) Acts(_ context.Context, f rbac.EntryFilter) (found []rbac.Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range slices.Backward(s.acts) {
		if len(found) < f.Limit && chosen(e, f) {
			found = append(found, e)
		}
	}
	return found, nil
}

func chosen(e rbac.Entry, f rbac.EntryFilter) bool {
	prefix, open := strings.CutSuffix(f.Operation, "*")
	return (f.Before == 0 || e.ID < f.Before) && (f.Actor == "" || e.Actor == f.Actor) &&
		(f.Operation == "" || e.Operation == f.Operation || open && strings.HasPrefix(e.Operation, prefix)) &&
		!e.At.Before(f.Since) && (f.Until.IsZero() || e.At.Before(f.Until)) &&
		(!f.Failing || e.Outcome == rbac.Failed || e.Outcome == rbac.Denied) && (f.Outcome == "" || e.Outcome == f.Outcome)
}
