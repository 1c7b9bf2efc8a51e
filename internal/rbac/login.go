package rbac

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Attempt is somebody who wants to log in.
type Attempt struct {
	Name, Password string
	Life           time.Duration // 0: the default
	Roles          []string      // narrow the token to these; none: all that the user has
	Label          string        // of the token; empty: it is of a login
	Code           string        // instead of Name, Password and Roles: of a link
}

// Issued is a new token with its text, which is shown this once.
type Issued struct {
	Token
	Text string
}

// Knock counts a try to log in from an address, before anything is read or checked. When there were too many,
// it says when to come back.
func (a *Access) Knock(address string) error { return tooMany(a.addresses.Take(address, a.Now())) }

// tooMany refuses who has to wait.
func tooMany(wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	return fault.TooOften(wait, "too many logins were tried; come back in %s", wait.Round(time.Second))
}

// Login checks a name and password and makes a token. A wrong password, an unknown
// name, a locked and a disabled user are one answer that takes one time.
func (a *Access) Login(ctx context.Context, try Attempt) (Issued, error) {
	now := a.Now()
	if len(try.Name) > maxName || len(try.Password) > maxPassword { // as good as wrong, and not worth remembering
		try.Name, try.Password = "", ""
	}
	if err := tooMany(a.names.Take(try.Name, now)); err != nil {
		return Issued{}, err
	}
	if try.Label != "" {
		if err := checkLabel(try.Label); err != nil {
			return Issued{}, err
		}
	}
	life, err := a.life(try.Life)
	if err != nil {
		return Issued{}, err
	}
	began := time.Now()
	if err := a.proven(ctx, try.Name, try.Password, now); err != nil {
		hold(ctx, began)
		return Issued{}, err
	}
	return a.issue(ctx, Token{Owner: try.Name, Label: try.Label, Roles: try.Roles, Narrowed: len(try.Roles) > 0}, life)
}

// proven returns nil if the password is that of a user who may log in now.
func (a *Access) proven(ctx context.Context, name, password string, now time.Time) error {
	user, err := a.Store.User(ctx, name)
	if err != nil && fault.Of(err) != fault.NotFound {
		return err
	}
	known := err == nil
	right, err := a.Hasher.Check(ctx, user.Password, password) // of an unknown user too: it takes the same time
	if err != nil {
		return err
	}
	c := a.Config()
	refused := fault.New(fault.Denied, "the name or the password is wrong, or the user is disabled, or locked: %d failures in a row lock a user for %s or longer",
		c.MaxFailures, c.Lockout)
	if !known {
		return refused
	}
	// The counters that were read may be old: a lock is looked at where failures are counted.
	_, err = a.Store.ChangeUser(ctx, name, func(u *User) error {
		locked := now.Before(u.LockedUntil)
		if right && !locked && !u.Disabled && u.Kind == Person && u.Password == user.Password {
			u.Failures, u.LockedUntil, u.LoginAt = 0, time.Time{}, now
			return nil
		}
		right = false
		if !locked { // tries at a closed door do not close it for longer
			u.Failures = min(u.Failures+1, 1000)
			if d := c.lockedFor(u.Failures); d > 0 {
				u.LockedUntil = now.Add(d)
			}
		}
		return nil
	})
	if err != nil && fault.Of(err) != fault.NotFound {
		return err
	}
	if err != nil || !right {
		return refused
	}
	return nil
}

// refusalTime is what a refused login takes at least. Hashing takes the same for
// all; this hides what only a known user has: a failure to be written down.
const refusalTime = 400 * time.Millisecond

// hold waits until a refusal may be told.
func hold(ctx context.Context, began time.Time) {
	timer := time.NewTimer(refusalTime - time.Since(began))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// life checks how long a token is to be good.
func (a *Access) life(asked time.Duration) (time.Duration, error) {
	c := a.Config()
	switch {
	case asked == 0:
		return c.TokenLife, nil
	case asked < time.Second || asked > c.MaxTokenLife:
		return 0, fault.New(fault.Invalid, "a token is good for 1s to %s (the setting token_max_lifetime), not %s", c.MaxTokenLife, asked)
	}
	return asked, nil
}

// issue makes and stores a token.
func (a *Access) issue(ctx context.Context, t Token, life time.Duration) (Issued, error) {
	var err error
	if t.Roles, err = sortedRoles(t.Roles); err != nil {
		return Issued{}, err
	}
	if err := a.checkRoles(ctx, t.Roles); err != nil {
		return Issued{}, err
	}
	text := NewSecret()
	t.ID, t.CreatedAt = newTokenID(), a.Now().UTC().Truncate(time.Microsecond)
	t.ExpiresAt = t.CreatedAt.Add(life)
	t.Hash, _ = HashOf(text)
	if err := a.Store.SaveAccessToken(ctx, t); err != nil {
		return Issued{}, err
	}
	return Issued{t, text}, nil
}

// checkRoles refuses names that no role has.
func (a *Access) checkRoles(ctx context.Context, names []string) error {
	stored, err := a.rolesNamed(ctx, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		_, known := builtIn(name)
		if !known && !slices.ContainsFunc(stored, func(r Role) bool { return r.Name == name }) {
			return fault.New(fault.NotFound, "there is no role %.80q; `tutti role list` shows them", name)
		}
	}
	return nil
}

// NewToken makes a token for the user who asks; without a label it is named by its id only. The roles of the asking
// token bound the new one, so that a narrow token cannot make a wide one.
func (a *Access) NewToken(ctx context.Context, actor fleet.Actor, label string, life time.Duration, roles []string) (Issued, error) {
	if actor.Kind != fleet.UserActor {
		return Issued{}, fault.New(fault.Denied, "%s %s shows its certificate and needs no token", actor.Kind, actor.Name)
	}
	if label != "" {
		if err := checkLabel(label); err != nil {
			return Issued{}, err
		}
	}
	life, err := a.life(life)
	if err != nil {
		return Issued{}, err
	}
	t := Token{Owner: actor.Name, Label: label, Roles: roles, Narrowed: len(roles) > 0}
	if actor.Narrowed {
		if len(roles) == 0 {
			return Issued{}, fault.New(fault.Denied, "the token that asks is narrowed to roles; name those of the new one, or log in for a full token")
		}
		stored, err := a.rolesNamed(ctx, roles)
		if err != nil {
			return Issued{}, err
		}
		if err := Covers(fleet.Actor{Kind: actor.Kind, Name: actor.Name, Grants: actor.Within}, GrantsOf(roles, stored)); err != nil {
			return Issued{}, err
		}
	}
	return a.issue(ctx, t, life)
}

// AdminToken is what the token in the data directory is called.
const AdminToken = "data-directory"

// AdminTokenOf is what it is called where several servers have a data directory each. Empty: there is one server.
func AdminTokenOf(server string) string {
	if server == "" {
		return AdminToken
	}
	return AdminToken + "@" + server
}

// isAdminToken tells whether a token of the built-in administrator is that of a data directory.
func isAdminToken(label string) bool {
	return label == AdminToken || strings.HasPrefix(label, AdminToken+"@")
}

// KeepAdmin makes sure that the built-in administrator is there, and makes the secret its token of a server's data directory, which is good for
// life (0: until it is revoked); the one before of the same server is revoked. A secret is made known once: one that was revoked, or has
// expired, stays so.
func (a *Access) KeepAdmin(ctx context.Context, secret string, life time.Duration, server string) error {
	now, label := a.now(), AdminTokenOf(server)
	err := a.Store.CreateUser(ctx, User{Name: AdminUser, Kind: Person, Roles: []string{Administrator}, CreatedAt: now, ChangedAt: now})
	if err != nil && fault.Of(err) != fault.Conflict {
		return err
	}
	hash, ok := HashOf(secret)
	if !ok {
		return fault.New(fault.Invalid, "the administrator's token is too short or too long")
	}
	seen, err := a.Store.AdminSecretSeen(ctx, hash)
	if err != nil || seen {
		return err
	}
	if _, err := a.Store.Bearer(ctx, hash); err == nil { // an older server made it known, or this one was interrupted
		return a.Store.SeeAdminSecret(ctx, hash, now)
	}
	if _, err := a.Store.RevokeToken(ctx, AdminUser, label); err != nil && fault.Of(err) != fault.NotFound {
		return err
	}
	t := Token{ID: newTokenID(), Hash: hash, Owner: AdminUser, Label: label, CreatedAt: now}
	if life > 0 {
		t.ExpiresAt = now.Add(life)
	}
	if err := a.Store.SaveAccessToken(ctx, t); err != nil {
		return err
	}
	return a.Store.SeeAdminSecret(ctx, hash, now)
}
