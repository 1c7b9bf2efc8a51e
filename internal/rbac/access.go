package rbac

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rate"
)

// Config is what an operator can set.
type Config struct {
	TokenLife    time.Duration // of a login, if nothing else is asked for
	MaxTokenLife time.Duration
	MaxFailures  int           // failed logins in a row before a user is locked
	Lockout      time.Duration // for the first of them; each further one doubles it
}

// DefaultConfig is the configuration when nothing is said.
func DefaultConfig() Config {
	return Config{TokenLife: 8 * time.Hour, MaxTokenLife: 366 * 24 * time.Hour, MaxFailures: 5, Lockout: time.Minute}
}

// AccessParts is what an Access works with.
type AccessParts struct {
	Store      Store
	Hasher     *Hasher
	Config     func() Config                // as it is now
	CheckScope func(condition string) error // refuses what is no condition on nodes
	Now        func() time.Time
	Log        *slog.Logger
}

// Access knows who is who and keeps users, roles and tokens.
type Access struct {
	AccessParts
	names, addresses *rate.Limiter
	codes            codes

	mu   sync.Mutex
	used map[string]time.Time // token id to its last use, not yet written
}

// Logins for one name and from one address: so many at once, then one each interval.
const (
	loginBurst      = 20
	nameInterval    = 3 * time.Second
	addressInterval = time.Second
)

// maxKeys is how many names, and addresses, are remembered.
const maxKeys = 10_000

// NewAccess returns an Access over a store.
func NewAccess(parts AccessParts) *Access {
	return &Access{
		AccessParts: parts, names: rate.New(loginBurst, nameInterval, maxKeys), addresses: rate.New(3*loginBurst, addressInterval, maxKeys),
		used: map[string]time.Time{},
	}
}

// Bearer is who shows the token.
func (a *Access) Bearer(ctx context.Context, text string) (fleet.Actor, error) {
	unknown := fault.New(fault.Denied, "the token is not known here, was revoked or has expired; get a new one with `tutti login`")
	b, err := a.Holder(ctx, text)
	if fault.Is(err, fault.NotFound) {
		return fleet.Actor{}, unknown
	}
	if err != nil {
		return fleet.Actor{}, err
	}
	if b.Token.Expired(a.Now()) || b.User.Disabled || b.User.Kind != Person {
		return fleet.Actor{}, unknown
	}
	a.Touch(b.Token)
	actor := fleet.Actor{Kind: fleet.UserActor, Name: b.User.Name, Token: b.Token.ID, Grants: GrantsOf(b.User.Roles, b.Roles)}
	actor.BreakGlass = b.User.Name == AdminUser && isAdminToken(b.Token.Label)
	if b.Token.Narrowed {
		actor.Narrowed, actor.Within = true, GrantsOf(b.Token.Roles, b.Roles)
	}
	return actor, nil
}

// Holder is a token and whose it is, by its text. It may have expired, and its owner may be disabled.
func (a *Access) Holder(ctx context.Context, text string) (Bearer, error) {
	hash, ok := HashOf(text)
	if !ok {
		return Bearer{}, fault.New(fault.NotFound, "there is no such token")
	}
	return a.Store.Bearer(ctx, hash)
}

// Certificate adds to a node the grants of the roles that its name was given.
func (a *Access) Certificate(ctx context.Context, node fleet.Actor) (fleet.Actor, error) {
	if node.Kind != fleet.NodeActor {
		return node, nil
	}
	user, err := a.Store.User(ctx, node.Name)
	if fault.Is(err, fault.NotFound) || err == nil && (user.Kind != Node || user.Disabled) {
		return node, nil // a name without roles is the rule
	}
	if err != nil {
		return node, err
	}
	roles, err := a.rolesNamed(ctx, user.Roles)
	if err != nil {
		return node, err
	}
	node.Grants = append(slices.Clone(node.Grants), GrantsOf(user.Roles, roles)...)
	return node, nil
}

// Actor is who a name stands for now, without a token or certificate: for what somebody ordered to be done later. Denied if they
// may do nothing any more.
func (a *Access) Actor(ctx context.Context, kind fleet.ActorKind, name string) (fleet.Actor, error) {
	if kind == fleet.NodeActor {
		return a.Certificate(ctx, fleet.Actor{Kind: kind, Name: name})
	}
	user, err := a.Store.User(ctx, name)
	if fault.Is(err, fault.NotFound) || err == nil && (user.Kind != Person || user.Disabled) {
		return fleet.Actor{}, fault.New(fault.Denied, "the user %s is disabled, or not there any more", name)
	}
	if err != nil {
		return fleet.Actor{}, err
	}
	roles, err := a.rolesNamed(ctx, user.Roles)
	return fleet.Actor{Kind: fleet.UserActor, Name: user.Name, Grants: GrantsOf(user.Roles, roles)}, err
}

// GrantsOf joins the grants of the roles with those names. A name without a role
// gives nothing.
func GrantsOf(names []string, stored []Role) (grants []fleet.Grant) {
	for _, name := range names {
		if r, ok := builtIn(name); ok {
			grants = append(grants, r.Grants...)
			continue
		}
		for _, r := range stored {
			if r.Name == name {
				grants = append(grants, r.Grants...)
			}
		}
	}
	return grants
}

// rolesNamed reads those of the roles that are stored. A name that no role has is left out.
func (a *Access) rolesNamed(ctx context.Context, names []string) ([]Role, error) {
	var roles []Role
	for _, name := range names {
		if _, ok := builtIn(name); ok {
			continue
		}
		r, err := a.Store.Role(ctx, name)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		roles = append(roles, r)
	}
	return roles, nil
}

// Touch notes that a token is used now; Flush writes it.
func (a *Access) Touch(t Token) {
	now := a.Now()
	if now.Sub(t.UsedAt) < time.Minute {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used[t.ID] = now
}

// Flush writes when tokens were last used.
func (a *Access) Flush(ctx context.Context) error {
	a.mu.Lock()
	used := a.used
	a.used = map[string]time.Time{}
	a.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	return a.Store.TouchTokens(ctx, used)
}

// Run flushes every minute until ctx is done, and once more then.
func (a *Access) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return a.Flush(context.WithoutCancel(ctx))
		case <-tick.C:
			if err := a.Flush(ctx); err != nil && ctx.Err() == nil {
				a.Log.WarnContext(ctx, "last use of tokens not written", "err", err)
			}
		}
	}
}

// Explain adds to a refusal which roles give what is missing, and who can give
// such a role, as far as who asks may see roles and users.
func (a *Access) Explain(ctx context.Context, actor fleet.Actor, permission fleet.Permission, refusal error) error {
	if actor.Kind == fleet.Anonymous || actor.Kind == "" {
		return refusal
	}
	seesRoles := Allow(actor, fleet.RoleRead, fleet.Object{}) == nil
	seesPeople := Allow(actor, fleet.UserRead, fleet.Object{}) == nil
	told := fault.Detail(refusal)
	if !seesRoles && !seesPeople {
		return fault.Wrap(fault.Denied, refusal, "%s. Ask an administrator", strings.TrimSuffix(told, "."))
	}
	roles, err := a.Roles(ctx)
	if err != nil {
		return refusal
	}
	var givers []string
	for _, r := range roles {
		if some(r.Grants, permission) {
			givers = append(givers, r.Name)
		}
	}
	if seesRoles && len(givers) > 0 {
		told += ". Roles that have it: " + strings.Join(givers, ", ")
	}
	if seesPeople {
		people, err := a.whoCan(ctx, fleet.UserWrite, roles)
		if err == nil && len(people) > 0 {
			told += ". Ask " + strings.Join(people, " or ")
		}
	}
	return fault.Wrap(fault.Denied, refusal, "%s", told)
}

// maxNamed is how many people a refusal names.
const maxNamed = 3

// whoCan names some people who have the permission for everything.
func (a *Access) whoCan(ctx context.Context, permission fleet.Permission, roles []Role) (names []string, err error) {
	for after := ""; ; {
		users, err := a.Store.Users(ctx, Page{After: after, Limit: 200})
		if err != nil {
			return nil, err
		}
		for _, u := range users {
			if u.Kind == Person && !u.Disabled && covered(GrantsOf(u.Roles, roles), permission, fleet.Object{}) {
				if names = append(names, u.Name); len(names) == maxNamed {
					return names, nil
				}
			}
		}
		if len(users) < 200 {
			return names, nil
		}
		after = users[len(users)-1].Name
	}
}
