package fleet

import "context"

// ActorKind says how somebody proved who they are.
type ActorKind string

// The kinds of actor.
const (
	Anonymous ActorKind = "anonymous" // nothing was shown
	NodeActor ActorKind = "node"      // a certificate of this fleet's CA
	UserActor ActorKind = "user"      // a bearer token of a user
)

// Actor is who asks, and what they may do.
type Actor struct {
	Kind  ActorKind
	Name  string // certname, or the user's name
	Token string // the id of the token that was shown
	// BreakGlass is set by the token in the server's data directory, which is for the first hour and for emergencies.
	BreakGlass bool
	Grants     []Grant // what the actor's roles allow
	// Narrowed is set by a token that has roles of its own: what Within does not
	// allow as well is not allowed.
	Narrowed bool
	Within   []Grant
}

type actorKey struct{}

// WithActor returns a context that carries who asks.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorFrom returns who asks; an anonymous actor when nobody said.
func ActorFrom(ctx context.Context) Actor {
	if a, ok := ctx.Value(actorKey{}).(Actor); ok {
		return a
	}
	return Actor{Kind: Anonymous}
}
