package cli

import (
	"context"
	"slices"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/rbac"
)

// removal is what takes ways in away from administrators.
type removal struct {
	user   string                     // who is no administrator afterwards; empty: nobody
	tokens func(api.AccessToken) bool // that are revoked; nil: none
}

// lockoutText is what a removal says when no administrator can get in afterwards; empty while one can. It is advice: who may not see users and their
// tokens is told nothing.
func lockoutText(ctx context.Context, c *call, gone removal) string {
	users, err := some(ctx, c.app, api.UserList, api.PageRequest{}, nextPage, 0)
	if err != nil {
		return ""
	}
	tokens, err := some(ctx, c.app, api.TokenList, api.TokenListRequest{User: api.AllUsers}, nextTokens, 0)
	if err != nil || slices.ContainsFunc(users, func(u api.User) bool { return getsIn(u, tokens, gone) }) {
		return ""
	}
	return ". No administrator can get in after that: only `tutti token rotate-admin`, on the server's machine, lets one in again"
}

// getsIn says whether a user is an administrator who can show a password, a node's certificate or a token afterwards. Tokens of logins end by themselves: none
// of them counts.
func getsIn(u api.User, tokens []api.AccessToken, gone removal) bool {
	if u.Name == gone.user || u.State == "disabled" || !slices.Contains(u.Roles, rbac.Administrator) {
		return false
	}
	if u.Kind == "node" || u.State != "no password" {
		return true
	}
	return slices.ContainsFunc(tokens, func(t api.AccessToken) bool {
		narrowed := len(t.Roles) > 0 && !slices.Contains(t.Roles, rbac.Administrator)
		good := t.ExpiresAt == nil || t.ExpiresAt.After(time.Now())
		return t.User == u.Name && t.Label != "" && good && !narrowed && (gone.tokens == nil || !gone.tokens(t))
	})
}
