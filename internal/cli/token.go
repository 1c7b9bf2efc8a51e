package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var tokenCommand = asking{noun{
	use: "token", short: "Make, see and revoke tokens",
	verbs: append([]declared{tokenCreate, tokenList, tokenRevoke}, localTokens...),
}}

type tokenCreateInput struct {
	lifetime time.Duration
	roles    []string
}

var tokenCreate = verb[tokenCreateInput]{
	use: "create LABEL", short: "Make a token for yourself, for a program to show",
	long: `Make a token that acts as you. It is printed this once. --role narrows it: give a program only what it needs. A token never
may more than you at the moment that it is used.`,
	example: "  tutti token create ci --role deployer --lifetime 2160h\n  tutti token create backup --role viewer -q > token",
	flags: func(f flagSet, in *tokenCreateInput) {
		f.duration(&in.lifetime, "lifetime", 0, "how long it is good; as the server says if not given")
		f.StringSliceVar(&in.roles, "role", nil, "narrow it to this role; may be given many times")
	},
	run: func(ctx context.Context, c *call, in *tokenCreateInput) error {
		seconds, err := secondsOf(c.cmd, in.lifetime)
		if err != nil {
			return err
		}
		return showAnswer(ctx, c.app, api.TokenCreate, api.TokenCreateRequest{Label: c.args[0], Seconds: seconds, Roles: in.roles}, printToken)
	},
}

type tokenListInput struct {
	api.TokenListRequest
	all bool
}

var tokenList = verb[tokenListInput]{
	use: "list", short: "List tokens, yours or somebody's",
	prints:  aList,
	example: "  tutti token list\n  tutti token list --user ann\n  tutti token list --all",
	flags: func(f flagSet, in *tokenListInput) {
		f.StringVar(&in.User, "user", "", "of this user, instead of yourself")
		f.BoolVar(&in.all, "all", false, "of everybody")
		f.cmd.MarkFlagsMutuallyExclusive("user", "all")
	},
	run: func(ctx context.Context, c *call, in *tokenListInput) error {
		in.User = first(in.User, api.Me)
		if in.all {
			in.User = api.AllUsers
		}
		return pages(api.TokenList, nextTokens, tokenTable)(ctx, c, &in.TokenListRequest)
	},
}

func nextTokens(in *api.TokenListRequest, after string, limit int) { in.After, in.Limit = after, limit }

func tokenTable(*api.TokenListRequest) print.Table[api.AccessToken] {
	return print.Table[api.AccessToken]{
		Columns: []string{"id", "user", "label", "narrowed to", "created", "last used", "expires"},
		Spare:   []string{"created", "last used", "narrowed to"},
		Row: func(t api.AccessToken) []any {
			return []any{
				t.ID, t.User, first(t.Label, "(login)"), t.Roles, t.CreatedAt,
				t.UsedAt, dayOf(t.ExpiresAt),
			}
		},
		Name:  func(t api.AccessToken) string { return t.ID },
		Empty: "No tokens.",
	}
}

type tokenRevokeInput struct {
	user string
	all  bool
}

var tokenRevoke = verb[tokenRevokeInput]{
	use: "revoke [TOKEN...]", short: "Revoke tokens, by id or label", args: cobra.ArbitraryArgs,
	destroys: func(ctx context.Context, c *call, in *tokenRevokeInput) (string, error) {
		of := ""
		if in.user != "" {
			of = " of " + in.user
		}
		if in.all {
			return "revoke all tokens" + of + " but for the one that asks", nil
		}
		text := "revoke " + strings.Join(c.args, ", ") + of + ": whatever uses it is refused from then on"
		own, err := some(ctx, c.app, api.TokenList, api.TokenListRequest{User: first(in.user, api.Me)}, nextTokens, 0)
		if err != nil {
			return text, nil
		}
		for _, name := range c.args {
			if !slices.ContainsFunc(own, func(t api.AccessToken) bool { return t.ID == name || t.Label == name }) {
				return "", fault.New(fault.NotFound, "there is no token %.80q%s", name, of)
			}
		}
		revoked := func(t api.AccessToken) bool {
			return slices.Contains(c.args, t.ID) || slices.Contains(c.args, t.Label) && slices.ContainsFunc(own, func(o api.AccessToken) bool { return o.ID == t.ID })
		}
		return text + lockoutText(ctx, c, removal{tokens: revoked}), nil
	},
	example: "  tutti token revoke ci\n  tutti token revoke --user ann 5be7c1a94d0e\n  tutti token revoke --user ann --all",
	flags: func(f flagSet, in *tokenRevokeInput) {
		f.StringVar(&in.user, "user", "", "of this user, instead of yourself")
		f.BoolVar(&in.all, "all", false, "all of them, but for the one that asks")
	},
	run: func(ctx context.Context, c *call, in *tokenRevokeInput) error {
		if in.all == (len(c.args) > 0) {
			return usageError{fmt.Errorf("name tokens, or give --all; usage: %s", c.cmd.UseLine())}
		}
		client, err := c.client()
		if err != nil {
			return err
		}
		owner := first(in.user, api.Me)
		if in.all {
			revoked, err := api.TokenRevokeAll.Call(ctx, client, api.UserRequest{User: owner})
			if err != nil {
				return err
			}
			c.printer().Line(fmt.Sprintf("%d revoked", revoked.Revoked))
			if in.user == "" || revoked.Revoked == 0 {
				c.hint("The token that asks stays; by its id it can be revoked, too: tutti token list")
			}
			return nil
		}
		for _, token := range c.args {
			if _, err := api.TokenRevoke.Call(ctx, client, api.TokenRevokeRequest{User: owner, Token: token}); err != nil {
				return err
			}
			c.printer().Line(token + " revoked")
		}
		return nil
	},
}
