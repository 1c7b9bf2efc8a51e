package rbac

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// CreateUser stores a new user. The actor must have what the roles give.
func (a *Access) CreateUser(ctx context.Context, actor fleet.Actor, u User, password string) (User, error) {
	var err error
	if u.Roles, err = sortedRoles(u.Roles); err != nil {
		return User{}, err
	}
	if err := checkUser(u); err != nil {
		return User{}, err
	}
	if password != "" && u.Kind == Node {
		return User{}, fault.New(fault.Invalid, "user %s is a node: it shows its certificate and has no password", u.Name)
	}
	if err := a.mayGive(ctx, actor, u.Roles); err != nil {
		return User{}, err
	}
	if password != "" {
		if u.Password, err = a.hashed(ctx, u.Name, password); err != nil {
			return User{}, err
		}
	}
	u.CreatedAt = a.now()
	u.ChangedAt, u.ChangedBy = u.CreatedAt, actor.Name
	return u, a.Store.CreateUser(ctx, u)
}

func (a *Access) now() time.Time { return a.Now().UTC().Truncate(time.Microsecond) }

func (a *Access) hashed(ctx context.Context, user, password string) (string, error) {
	if err := checkPassword(user, password); err != nil {
		return "", err
	}
	return a.Hasher.Hash(ctx, password)
}

// mayGive returns nil when the roles exist and the actor has all that they give.
func (a *Access) mayGive(ctx context.Context, actor fleet.Actor, roles []string) error {
	if err := a.checkRoles(ctx, roles); err != nil {
		return err
	}
	stored, err := a.rolesNamed(ctx, roles)
	if err != nil {
		return err
	}
	return Covers(actor, GrantsOf(roles, stored))
}

// UserEdit says what is to change; nil means nothing.
type UserEdit struct {
	Roles    *[]string
	Had      *[]string // what Roles are based on: others by now are a conflict; nil: no check
	Disabled *bool
	Unlock   bool
}

// EditUser changes a user. The actor must have what the user's roles give, before
// and after: otherwise it could take over who may do more.
func (a *Access) EditUser(ctx context.Context, actor fleet.Actor, name string, edit UserEdit) (User, error) {
	if edit.Roles != nil {
		roles, err := sortedRoles(*edit.Roles)
		if err != nil {
			return User{}, err
		}
		if err := a.mayGive(ctx, actor, roles); err != nil {
			return User{}, err
		}
		edit.Roles = &roles
	}
	before, err := a.above(ctx, actor, name)
	if err != nil {
		return User{}, err
	}
	return a.Store.ChangeUser(ctx, name, func(u *User) error {
		if !slices.Equal(u.Roles, before.Roles) {
			return fault.New(fault.Conflict, "user %s was changed by somebody else just now; look again", name)
		}
		if edit.Had != nil && !sameRoles(*edit.Had, u.Roles) {
			return &fault.Error{
				Kind: fault.Conflict, Detail: fmt.Sprintf("somebody else changed the roles of %s meanwhile: they are %s now", name, strings.Join(u.Roles, ", ")),
				Hint: "look at the user again, and change its roles from there",
			}
		}
		if edit.Roles != nil {
			u.Roles = *edit.Roles
		}
		if edit.Disabled != nil {
			u.Disabled = *edit.Disabled
		}
		if edit.Unlock {
			u.Failures, u.LockedUntil = 0, time.Time{}
		}
		u.ChangedAt, u.ChangedBy = a.now(), actor.Name
		return checkUser(*u)
	})
}

// sameRoles says whether two lists name the same roles.
func sameRoles(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}

// above reads a user whose every grant the actor has as well.
func (a *Access) above(ctx context.Context, actor fleet.Actor, name string) (User, error) {
	u, err := a.Store.User(ctx, name)
	if err != nil {
		return u, err
	}
	stored, err := a.rolesNamed(ctx, u.Roles)
	if err != nil {
		return u, err
	}
	return u, Covers(actor, GrantsOf(u.Roles, stored))
}

// DeleteUser forgets a user and its tokens.
func (a *Access) DeleteUser(ctx context.Context, actor fleet.Actor, name string) error {
	if name == AdminUser {
		return fault.New(fault.Conflict, "the user %s is built in and cannot be deleted", AdminUser)
	}
	if _, err := a.above(ctx, actor, name); err != nil {
		return err
	}
	return a.Store.DeleteUser(ctx, name)
}

// ChangePassword sets the actor's own password, who must know the old one. The first
// one is set as for another: with it a narrow token would make itself a wide one.
func (a *Access) ChangePassword(ctx context.Context, actor fleet.Actor, old, fresh string) error {
	u, err := a.Store.User(ctx, actor.Name)
	if err != nil {
		return err
	}
	if u.Password == "" {
		return a.SetPassword(ctx, actor, u.Name, fresh)
	}
	if err := tooMany(a.names.Take(u.Name, a.Now())); err != nil {
		return err
	}
	if err := a.proven(ctx, u.Name, old, a.Now()); err != nil {
		return err
	}
	return a.storePassword(ctx, actor, u, fresh)
}

// SetPassword sets a user's password, whose every grant the actor must have.
func (a *Access) SetPassword(ctx context.Context, actor fleet.Actor, name, fresh string) error {
	u, err := a.above(ctx, actor, name)
	if err != nil {
		return err
	}
	return a.storePassword(ctx, actor, u, fresh)
}

// storePassword also ends the user's logins, but not the one that asks.
func (a *Access) storePassword(ctx context.Context, actor fleet.Actor, before User, fresh string) error {
	hash, err := a.hashed(ctx, before.Name, fresh)
	if err != nil {
		return err
	}
	_, err = a.Store.ChangeUser(ctx, before.Name, func(u *User) error {
		if u.Password != before.Password || !slices.Equal(u.Roles, before.Roles) {
			return fault.New(fault.Conflict, "user %s was changed by somebody else just now; look again", u.Name)
		}
		u.Password, u.Failures, u.LockedUntil = hash, 0, time.Time{}
		u.ChangedAt, u.ChangedBy = a.now(), actor.Name
		return checkUser(*u)
	})
	if err != nil {
		return err
	}
	_, err = a.Store.RevokeTokens(ctx, before.Name, actor.Token, true)
	return err
}

// Roles lists all roles by name, built-in ones among them.
func (a *Access) Roles(ctx context.Context) ([]Role, error) {
	stored, err := a.Store.Roles(ctx)
	roles := append(BuiltIn(), stored...)
	slices.SortFunc(roles, func(x, y Role) int { return strings.Compare(x.Name, y.Name) })
	return roles, err
}

// Role returns one role.
func (a *Access) Role(ctx context.Context, name string) (Role, error) {
	if r, ok := builtIn(name); ok {
		return r, nil
	}
	return a.Store.Role(ctx, name)
}

// CreateRole stores a new role; the actor must have what it gives.
func (a *Access) CreateRole(ctx context.Context, actor fleet.Actor, r Role) (Role, error) {
	if err := a.prepare(actor, &r); err != nil {
		return r, err
	}
	return r, a.Store.CreateRole(ctx, r)
}

// EditRole replaces a role; the actor must have what it gave and what it will give.
func (a *Access) EditRole(ctx context.Context, actor fleet.Actor, r Role) (Role, error) {
	if err := a.prepare(actor, &r); err != nil {
		return r, err
	}
	before, err := a.Store.Role(ctx, r.Name)
	if err != nil {
		return r, err
	}
	if err := Covers(actor, before.Grants); err != nil {
		return r, err
	}
	return r, a.Store.ReplaceRole(ctx, r)
}

func (a *Access) prepare(actor fleet.Actor, r *Role) error {
	if _, ok := builtIn(r.Name); ok {
		return fault.New(fault.Conflict, "the role %s is built in and cannot be changed; make one of another name", r.Name)
	}
	if err := checkRole(*r, a.CheckScope); err != nil {
		return err
	}
	r.ChangedAt, r.ChangedBy = a.now(), actor.Name
	return Covers(actor, r.Grants)
}

// DeleteRole forgets a role that nobody has.
func (a *Access) DeleteRole(ctx context.Context, actor fleet.Actor, name string) error {
	if _, ok := builtIn(name); ok {
		return fault.New(fault.Conflict, "the role %s is built in and cannot be deleted", name)
	}
	before, err := a.Store.Role(ctx, name)
	if err != nil {
		return err
	}
	if err := Covers(actor, before.Grants); err != nil {
		return err
	}
	err = a.Store.DeleteRole(ctx, name)
	if fault.Is(err, fault.Conflict) && Allow(actor, fleet.UserRead, fleet.Object{}) != nil {
		return fault.Wrap(fault.Conflict, err, "somebody has the role %s, or a token is narrowed to it; take it away first", name)
	}
	return err
}

// RevokeToken forgets a token. The one in the data directory stays revoked over starts of the server (KeepAdmin);
// whoever can write there makes another one.
func (a *Access) RevokeToken(ctx context.Context, actor fleet.Actor, owner, idOrLabel string) (Token, error) {
	if err := a.mayRevoke(ctx, actor, owner); err != nil {
		return Token{}, err
	}
	return a.Store.RevokeToken(ctx, owner, idOrLabel)
}

// RevokeShown forgets a token by its text: whoever holds it may end it.
func (a *Access) RevokeShown(ctx context.Context, text string) error {
	b, err := a.Holder(ctx, text)
	if err != nil {
		return err
	}
	_, err = a.Store.RevokeToken(ctx, b.Token.Owner, b.Token.ID)
	return err
}

// RevokeTokens forgets all tokens of a user but the one that asks.
func (a *Access) RevokeTokens(ctx context.Context, actor fleet.Actor, owner string) (int, error) {
	if err := a.mayRevoke(ctx, actor, owner); err != nil {
		return 0, err
	}
	return a.Store.RevokeTokens(ctx, owner, actor.Token, false)
}

func (a *Access) mayRevoke(ctx context.Context, actor fleet.Actor, owner string) error {
	if actor.Kind == fleet.UserActor && actor.Name == owner {
		return nil
	}
	_, err := a.above(ctx, actor, owner)
	return err
}
