package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

func (a *app) tokenCommand() *cobra.Command {
	commands := append([]*cobra.Command{a.tokenCreate(), a.tokenList(), a.tokenRevoke()}, localTokens(a)...)
	return a.withAccess(noun("token", "Make, see and revoke tokens", commands...))
}

func (a *app) tokenCreate() *cobra.Command {
	var lifetime time.Duration
	var roles []string
	cmd := &cobra.Command{
		Use: "create LABEL", Short: "Make a token for yourself, for a program to show", Args: exactly(1),
		Long: `Make a token that acts as you. It is printed this once. --role narrows it: give a program only what it needs. A token never
may more than you at the moment that it is used.`,
		Example: "  tutti token create ci --role deployer --lifetime 2160h\n  tutti token create backup --role viewer -q > token",
		RunE: func(cmd *cobra.Command, args []string) error {
			seconds, err := secondsOf(cmd, lifetime)
			if err != nil {
				return err
			}
			issued, err := ask(cmd.Context(), a, api.TokenCreate, api.TokenCreateRequest{Label: args[0], Seconds: seconds, Roles: roles})
			if err != nil {
				return err
			}
			return printToken(a, issued)
		},
	}
	cmd.Flags().DurationVar(&lifetime, "lifetime", 0, "how long it is good; as the server says if not given")
	cmd.Flags().StringSliceVar(&roles, "role", nil, "narrow it to this role; may be given many times")
	return cmd
}

func (a *app) tokenList() *cobra.Command {
	var user string
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List tokens, yours or somebody's", Args: exactly(0),
		Example: "  tutti token list\n  tutti token list --user ann\n  tutti token list --all",
		RunE: func(cmd *cobra.Command, _ []string) error {
			owner := first(user, api.Me)
			if all {
				owner = api.AllUsers
			}
			now := time.Now()
			next := func(after string) api.TokenListRequest {
				return api.TokenListRequest{User: owner, After: after, Limit: 1000}
			}
			return list(cmd.Context(), a, api.TokenList, next, print.Table[api.AccessToken]{
				Columns: []string{"id", "user", "label", "narrowed to", "created", "last used", "expires"},
				Row: func(t api.AccessToken) []string {
					return []string{
						t.ID, t.User, first(t.Label, "(login)"), strings.Join(t.Roles, " "), print.Ago(t.CreatedAt, now),
						print.AgoOf(t.UsedAt, now), expiry(t.ExpiresAt, now),
					}
				},
				Name:  func(t api.AccessToken) string { return t.ID },
				Empty: "No tokens.",
			})
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "of this user, instead of yourself")
	cmd.Flags().BoolVar(&all, "all", false, "of everybody")
	cmd.MarkFlagsMutuallyExclusive("user", "all")
	return cmd
}

// expiry says when a token ends, or that it has.
func expiry(t *time.Time, now time.Time) string {
	if t != nil && t.Before(now) {
		return "expired " + print.Ago(*t, now)
	}
	return stampOf(t)
}

func (a *app) tokenRevoke() *cobra.Command {
	var user string
	var all bool
	cmd := &cobra.Command{
		Use: "revoke [TOKEN...]", Short: "Revoke tokens, by id or label", Args: cobra.ArbitraryArgs,
		Example: "  tutti token revoke ci\n  tutti token revoke --user ann 5be7c1a94d0e\n  tutti token revoke --user ann --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usageError{fmt.Errorf("name tokens, or give --all; usage: %s", cmd.UseLine())}
			}
			client, err := a.client()
			if err != nil {
				return err
			}
			owner := first(user, api.Me)
			if all {
				revoked, err := api.TokenRevokeAll.Call(cmd.Context(), client, api.UserRequest{User: owner})
				if err != nil {
					return err
				}
				a.say(fmt.Sprintf("%d revoked", revoked.Revoked))
				return nil
			}
			for _, token := range args {
				if _, err := api.TokenRevoke.Call(cmd.Context(), client, api.TokenRevokeRequest{User: owner, Token: token}); err != nil {
					return err
				}
				a.say(token + " revoked")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "of this user, instead of yourself")
	cmd.Flags().BoolVar(&all, "all", false, "all of them, but for the one that asks")
	return cmd
}
