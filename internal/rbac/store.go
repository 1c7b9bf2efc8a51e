package rbac

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Page is a part of a list in the order of names or ids.
type Page struct {
	After string // the last one of the page before
	Limit int    // at least 1
}

// Store keeps who may do what. Methods may be called concurrently; each that
// writes is one transaction. A missing user, role or token is NotFound, one too
// many of a name is Conflict. Slices handed in or out belong to the callee and
// the caller, respectively.
//
// Wide: the sum of users, roles and tokens, each a port of its own.
type Store interface {
	UserStore
	RoleStore
	TokenStore
}

// UserStore keeps users. Roles are not checked against the role store, except
// that DeleteRole refuses a role in use.
type UserStore interface {
	// CreateUser stores a new user.
	CreateUser(ctx context.Context, u User) error
	// ChangeUser stores what change makes of the user; change may run more than once
	// and must not change the name. Its error ends the act, and nothing is stored.
	ChangeUser(ctx context.Context, name string, change func(*User) error) (User, error)
	// DeleteUser forgets a user and its tokens.
	DeleteUser(ctx context.Context, name string) error
	User(ctx context.Context, name string) (User, error)
	// Users lists users by name.
	Users(ctx context.Context, page Page) ([]User, error)
}

// RoleStore keeps the roles that are not built in.
type RoleStore interface {
	CreateRole(ctx context.Context, r Role) error
	// ReplaceRole changes everything but the name.
	ReplaceRole(ctx context.Context, r Role) error
	// DeleteRole is a Conflict while a user or token has the role; it names one.
	DeleteRole(ctx context.Context, name string) error
	Role(ctx context.Context, name string) (Role, error)
	// Roles lists them all, by name.
	Roles(ctx context.Context) ([]Role, error)
}

// Bearer is a token, whose it is, and the stored roles of both.
type Bearer struct {
	Token Token
	User  User
	Roles []Role // stored ones among those that Token and User name
}

// TokenStore keeps tokens.
type TokenStore interface {
	// SaveAccessToken stores a new token. Its owner must exist (NotFound), and must have no
	// other token of that label, unless the label is empty (Conflict).
	SaveAccessToken(ctx context.Context, t Token) error
	// Bearer returns the token with that hash and its owner, as of one moment. An
	// expired token is returned, too.
	Bearer(ctx context.Context, hash fleet.Digest) (Bearer, error)
	// Tokens lists the tokens of an owner by id; an empty owner means everybody's.
	Tokens(ctx context.Context, owner string, page Page) ([]Token, error)
	// RevokeToken forgets the owner's token of that id or label, and returns it.
	RevokeToken(ctx context.Context, owner, idOrLabel string) (Token, error)
	// RevokeTokens forgets all tokens of the owner but one, named by its id, and
	// those with labels if they are to be kept; it counts them.
	RevokeTokens(ctx context.Context, owner, exceptID string, keepLabelled bool) (int, error)
	// TouchTokens notes when tokens were last used, by id; unknown ones are passed over.
	TouchTokens(ctx context.Context, used map[string]time.Time) error
	// SeeAdminSecret remembers that a secret of the data directory was made known, for ever; once is enough.
	SeeAdminSecret(ctx context.Context, hash fleet.Digest, at time.Time) error
	// AdminSecretSeen says whether it was.
	AdminSecretSeen(ctx context.Context, hash fleet.Digest) (bool, error)
	// PruneTokens forgets tokens that expired before a time; it counts them.
	PruneTokens(ctx context.Context, before time.Time) (int, error)
}
