package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

func (a *app) userCommand() *cobra.Command {
	return a.withAccess(noun("user", "Decide who may log in, and which roles they have",
		a.userList(), a.userShow(), a.userCreate(), a.userEdit(), a.userDelete(), a.userPassword()))
}

func (a *app) userList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List users with their roles", Args: exactly(0), Example: "  tutti user list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			now := time.Now()
			next := func(after string) api.PageRequest { return api.PageRequest{After: after, Limit: 1000} }
			return list(cmd.Context(), a, api.UserList, next, print.Table[api.User]{
				Columns: []string{"user", "kind", "state", "roles", "last login"},
				Row: func(u api.User) []string {
					return []string{u.Name, u.Kind, u.State, strings.Join(u.Roles, " "), print.AgoOf(u.LoginAt, now)}
				},
				Name: func(u api.User) string { return u.Name },
			})
		},
	}
}

func (a *app) userShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show one user", Args: exactly(1), Example: "  tutti user show ann",
		RunE: func(cmd *cobra.Command, args []string) error {
			user, err := ask(cmd.Context(), a, api.UserShow, api.UserRequest{User: args[0]})
			if err != nil {
				return err
			}
			return printUser(a, user)
		},
	}
}

func printUser(a *app, u api.User) error {
	if a.printer().AsJSON() {
		return a.printer().JSON(u)
	}
	now := time.Now()
	rows := [][]string{
		{"User", u.Name},
		{"Kind", u.Kind},
		{"State", u.State},
		{"Roles", strings.Join(u.Roles, " ")},
		{"Created", print.Ago(u.CreatedAt, now)},
		{"Changed", print.AgoOf(u.ChangedAt, now) + by(u.ChangedBy)},
		{"Last login", print.AgoOf(u.LoginAt, now)},
	}
	if u.LockedUntil != nil {
		rows = append(rows, []string{"Locked until", stampOf(u.LockedUntil)})
	}
	return a.printer().Rows(nil, rows)
}

func (a *app) userCreate() *cobra.Command {
	var roles []string
	var node, stdin, without bool
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a user, or give roles to a node's certificate", Args: exactly(1),
		Long: `Create a user who can log in. The password is asked for at the terminal, or read from standard input. With --node, NAME is a
certname: who shows that node's certificate has the roles, and there is no password.`,
		Example: "  tutti user create ann --role operator\n  tutti user create ann --role viewer --password-stdin < password\n" +
			"  tutti user create ci.example.test --node --role deployer",
		RunE: func(cmd *cobra.Command, args []string) error {
			request := api.UserCreateRequest{Name: args[0], Roles: roles}
			switch {
			case node:
				request.Kind = "node"
			case !without:
				secrets, err := a.freshPassword(stdin, args[0])
				if err != nil {
					return err
				}
				request.Password = secrets[0]
			}
			user, err := ask(cmd.Context(), a, api.UserCreate, request)
			if err != nil {
				return err
			}
			return printUser(a, user)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&roles, "role", nil, "a role of the user; may be given many times")
	flags.BoolVar(&node, "node", false, "NAME is a certname, and the user shows its certificate")
	flags.BoolVar(&stdin, "password-stdin", false, "read the password from standard input, one line")
	flags.BoolVar(&without, "no-password", false, "nobody can log in until a password is set")
	cmd.MarkFlagsMutuallyExclusive("node", "password-stdin", "no-password")
	return cmd
}

func (a *app) userEdit() *cobra.Command {
	var add, remove []string
	var disable, enable, unlock bool
	cmd := &cobra.Command{
		Use: "edit NAME", Short: "Change a user's roles, disable, enable or unlock it", Args: exactly(1),
		Example: "  tutti user edit ann --add-role deployer --remove-role viewer\n  tutti user edit ann --disable\n  tutti user edit ann --unlock",
		RunE: func(cmd *cobra.Command, args []string) error {
			request := api.UserEditRequest{User: args[0], Unlock: unlock}
			if disable || enable {
				request.Disabled = &disable
			}
			if len(add)+len(remove) > 0 {
				roles, err := changedRoles(a, cmd.Context(), args[0], add, remove)
				if err != nil {
					return err
				}
				request.Roles = &roles
			}
			user, err := ask(cmd.Context(), a, api.UserEdit, request)
			if err != nil {
				return err
			}
			return printUser(a, user)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&add, "add-role", nil, "a role to give; may be given many times")
	flags.StringSliceVar(&remove, "remove-role", nil, "a role to take away; may be given many times")
	flags.BoolVar(&disable, "disable", false, "refuse the user's logins and tokens")
	flags.BoolVar(&enable, "enable", false, "accept them again")
	flags.BoolVar(&unlock, "unlock", false, "forget failed logins")
	cmd.MarkFlagsMutuallyExclusive("disable", "enable")
	cmd.MarkFlagsOneRequired("add-role", "remove-role", "disable", "enable", "unlock")
	return cmd
}

// changedRoles is what the user's roles will be.
func changedRoles(a *app, ctx context.Context, name string, add, remove []string) ([]string, error) {
	user, err := ask(ctx, a, api.UserShow, api.UserRequest{User: name})
	if err != nil {
		return nil, err
	}
	for _, role := range remove {
		if !slices.Contains(user.Roles, role) {
			return nil, fault.New(fault.NotFound, "user %s does not have the role %s", name, role)
		}
	}
	roles := slices.DeleteFunc(user.Roles, func(role string) bool { return slices.Contains(remove, role) })
	return append(roles, add...), nil
}

func (a *app) userDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Delete a user and its tokens", Args: exactly(1), Example: "  tutti user delete ann",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			if _, err := api.UserDelete.Call(cmd.Context(), client, api.UserRequest{User: args[0]}); err != nil {
				return err
			}
			a.hint("User %s is deleted", args[0])
			return nil
		},
	}
}

func (a *app) userPassword() *cobra.Command {
	var stdin bool
	cmd := &cobra.Command{
		Use: "password [NAME]", Short: "Change your password, or set somebody's", Args: cobra.MaximumNArgs(1),
		Long: `Without NAME, change your own password; the old one is asked for. With NAME, set that user's password by right. The user's
logins end, except for the one that asks; tokens with a label stay.`,
		Example: "  tutti user password\n  tutti user password ann",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			request := api.PasswordRequest{User: api.Me}
			var secrets []string
			if len(args) == 1 {
				request.User = args[0]
				secrets, err = a.freshPassword(stdin, args[0])
			} else if secrets, err = a.freshPassword(stdin, "yours", "Old password"); err == nil {
				request.Old = secrets[0]
			}
			if err != nil {
				return err
			}
			request.New = secrets[len(secrets)-1]
			if _, err := api.UserPassword.Call(cmd.Context(), client, request); err != nil {
				return err
			}
			a.hint("The password is changed")
			return nil
		},
	}
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read from standard input, one line each: without NAME the old password, then the new one")
	return cmd
}
