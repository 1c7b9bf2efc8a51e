// Package rbac answers: may this actor do this action on this thing.
//
// The first floor knows administrators, who may do everything, and nodes, who
// may act for themselves alone. Users, roles and scopes build on it.
package rbac

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Allow returns nil when actor holds the permission, and otherwise a Denied
// fault that names the missing permission and how to get in.
func Allow(actor fleet.Actor, permission fleet.Permission) error {
	switch {
	case actor.Admin:
		return nil
	case actor.Kind == fleet.Anonymous:
		return fault.New(fault.Denied, "%s needs a token or a client certificate; none was shown", permission)
	default:
		return fault.New(fault.Denied, "%s %s does not have the permission %s", actor.Kind, actor.Name, permission)
	}
}

// AllowSelf returns nil when actor is the node itself or an administrator.
func AllowSelf(actor fleet.Actor, node fleet.Certname) error {
	if actor.Admin || actor.Kind == fleet.NodeActor && actor.Name == string(node) {
		return nil
	}
	if actor.Kind == fleet.Anonymous {
		return fault.New(fault.Denied, "node %s must show its certificate", node)
	}
	return fault.New(fault.Denied, "%s %s may not act for node %s", actor.Kind, actor.Name, node)
}

// Token is a bearer token, kept as the SHA-256 of its text.
type Token struct {
	Hash      fleet.Digest
	Label     string
	Admin     bool
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
}

// TokenStore keeps tokens. Methods may be called concurrently.
type TokenStore interface {
	// SaveAccessToken stores t; a token of the same label is replaced.
	SaveAccessToken(ctx context.Context, t Token) error
	// AccessToken returns the token with that hash; NotFound if there is none.
	AccessToken(ctx context.Context, hash fleet.Digest) (Token, error)
}
