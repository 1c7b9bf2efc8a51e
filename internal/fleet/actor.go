package fleet

import "context"

// ActorKind says how somebody proved who they are.
type ActorKind string

// The kinds of actor.
const (
	Anonymous ActorKind = "anonymous" // nothing was shown
	NodeActor ActorKind = "node"      // a certificate of this fleet's CA
	TokenUser ActorKind = "token"     // a bearer token
)

// Actor is who asks.
type Actor struct {
	Kind ActorKind
	Name string // certname, or the token's label
	// Admin is set by a token or certificate that may do everything.
	Admin bool
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
