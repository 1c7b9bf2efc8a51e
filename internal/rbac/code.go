package rbac

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// CodeLife is how long a login code is good.
const CodeLife = time.Minute

// maxCodes is how many login codes may be open at once.
const maxCodes = 1000

// Code lets whoever has it log in as a user, once. Codes are kept in memory: after a restart of the server none is good.
type Code struct {
	Text      string
	ExpiresAt time.Time
}

// codes is the login codes that nobody has used yet, by the SHA-256 of their text.
type codes struct {
	mu   sync.Mutex
	open map[fleet.Digest]Token // who logs in, and to what the token is narrowed; ExpiresAt is the code's
}

// put keeps a code.
func (c *codes) put(hash fleet.Digest, t Token, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.open, func(_ fleet.Digest, t Token) bool { return t.Expired(now) })
	if len(c.open) >= maxCodes {
		return fault.New(fault.Unavailable, "%d login codes are open; come back in %s, when they have expired", maxCodes, CodeLife)
	}
	if c.open == nil {
		c.open = map[fleet.Digest]Token{}
	}
	c.open[hash] = t
	return nil
}

// take gives a code away: it is good once.
func (c *codes) take(hash fleet.Digest, now time.Time) (Token, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, there := c.open[hash]
	delete(c.open, hash)
	return t, there && !t.Expired(now)
}

// NewCode makes a code that logs in the user who asks. A login by it may do no more than the token that asks.
func (a *Access) NewCode(ctx context.Context, actor fleet.Actor) (Code, error) {
	if actor.Kind != fleet.UserActor {
		return Code{}, fault.New(fault.Denied, "%s %s shows its certificate: only users log in to the console", actor.Kind, actor.Name)
	}
	now := a.now()
	t := Token{Owner: actor.Name, Narrowed: actor.Narrowed, ExpiresAt: now.Add(CodeLife)}
	if actor.Narrowed {
		asking, err := tokenOf(ctx, a.Store, actor)
		if err != nil {
			return Code{}, err
		}
		t.Roles = asking.Roles
	}
	code := Code{Text: NewSecret(), ExpiresAt: t.ExpiresAt}
	hash, _ := HashOf(code.Text)
	return code, a.codes.put(hash, t, now)
}

// tokenOf is the token that an actor shows.
func tokenOf(ctx context.Context, store Store, actor fleet.Actor) (Token, error) {
	for page := (Page{Limit: 1000}); ; {
		tokens, err := store.Tokens(ctx, actor.Name, page)
		if err != nil {
			return Token{}, err
		}
		for _, t := range tokens {
			if t.ID == actor.Token {
				return t, nil
			}
		}
		if len(tokens) < page.Limit {
			return Token{}, fault.New(fault.Denied, "the token that asks was revoked")
		}
		page.After = tokens[len(tokens)-1].ID
	}
}

// prove makes a token for a name and password, or for the code of a link.
func (l Logins) prove(ctx context.Context, try Attempt) (Issued, error) {
	if try.Code == "" {
		return l.Access.Login(ctx, try)
	}
	if try.Name != "" || try.Password != "" || len(try.Roles) > 0 {
		return Issued{}, fault.New(fault.Invalid, "a login by code has no name, password and roles: the code says who it is")
	}
	return l.Access.Redeem(ctx, try.Code, try.Life)
}

// Redeem makes a token for whoever has a login code, as Login does for a name and a password.
func (a *Access) Redeem(ctx context.Context, text string, life time.Duration) (Issued, error) {
	refused := fault.New(fault.Denied, "the login code is wrong, was used, or is older than %s; get a new one with `tutti console open`", CodeLife)
	hash, ok := HashOf(text)
	if !ok {
		return Issued{}, refused
	}
	life, err := a.life(life)
	if err != nil {
		return Issued{}, err
	}
	code, good := a.codes.take(hash, a.Now())
	if !good {
		return Issued{}, refused
	}
	user, err := a.Store.User(ctx, code.Owner)
	if fault.Is(err, fault.NotFound) || err == nil && (user.Disabled || user.Kind != Person) {
		return Issued{}, refused
	}
	if err != nil {
		return Issued{}, err
	}
	return a.issue(ctx, Token{Owner: code.Owner, Roles: code.Roles, Narrowed: code.Narrowed}, life)
}
