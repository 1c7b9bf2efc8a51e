package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/rbac"
)

var userCommand = asking{noun{
	use: "user", short: "Decide who may log in, and which roles they have",
	verbs: []declared{userList, userShow, userCreate, userEdit, userDelete, userPassword},
}}

var userList = verb[api.PageRequest]{
	use: "list", short: "List users with their roles", example: "  tutti user list",
	prints: aList,
	run: pages(api.UserList, nextPage, func(*api.PageRequest) print.Table[api.User] {
		return print.Table[api.User]{
			Columns: []string{"user", "kind", "state", "roles", "last login"},
			Row: func(u api.User) []any {
				return []any{u.Name, u.Kind, print.State(listedState(u)), u.Roles, u.LoginAt}
			},
			Name: func(u api.User) string { return u.Name },
		}
	}),
}

// listedState is how a user stands, and until when it is locked.
func listedState(u api.User) string {
	if u.LockedUntil == nil || u.State != "locked" {
		return u.State
	}
	return "locked until " + stampOf(u.LockedUntil)
}

func nextPage(in *api.PageRequest, after string, limit int) { in.After, in.Limit = after, limit }

var userShow = verb[api.UserRequest]{
	use: "show NAME", short: "Show one user", example: "  tutti user show ann",
	into: func(in *api.UserRequest, args []string) { in.User = args[0] },
	run:  shows(api.UserShow, printUser),
}

func printUser(to print.Printer, u api.User) error {
	now := time.Now()
	rows := [][]string{
		{"User", u.Name},
		{"Kind", u.Kind},
		{"State", userState(u)},
		{"Roles", strings.Join(u.Roles, " ")},
		{"Created", print.Ago(u.CreatedAt, now)},
		{"Changed", print.AgoOf(u.ChangedAt, now) + by(u.ChangedBy)},
		{"Last login", print.AgoOf(u.LoginAt, now)},
	}
	if u.LockedUntil != nil {
		rows = append(rows, []string{"Locked until", stampOf(u.LockedUntil)})
	}
	return to.Rows(nil, rows)
}

// userState is how a user stands, and what ends a state that keeps it out.
func userState(u api.User) string {
	switch u.State {
	case "disabled":
		return "disabled; tutti user edit " + u.Name + " --enable ends it"
	case "locked":
		return "locked by failed logins; tutti user edit " + u.Name + " --unlock ends it at once"
	case "no password":
		return "no password; tutti user password " + u.Name + " sets one"
	}
	return u.State
}

type userCreateInput struct {
	roles                []string
	node, stdin, without bool
}

var userCreate = verb[userCreateInput]{
	use: "create NAME", short: "Create a user, or give roles to a node's certificate",
	long: `Create a user who can log in. The password is asked for at the terminal, or read from standard input. With --node, NAME is a
certname: who shows that node's certificate has the roles, and there is no password.`,
	example: "  tutti user create ann --role operator\n  tutti user create ann --role viewer --password-stdin < password\n" +
		"  tutti user create ci.example.test --node --role deployer",
	flags: func(f flagSet, in *userCreateInput) {
		f.StringSliceVar(&in.roles, "role", nil, "a role of the user; may be given many times")
		f.BoolVar(&in.node, "node", false, "NAME is a certname, and the user shows its certificate")
		f.BoolVar(&in.stdin, "password-stdin", false, "read the password from standard input, one line")
		f.BoolVar(&in.without, "no-password", false, "nobody can log in until a password is set")
		f.cmd.MarkFlagsMutuallyExclusive("node", "password-stdin", "no-password")
	},
	run: func(ctx context.Context, c *call, in *userCreateInput) error {
		request := api.UserCreateRequest{Name: c.args[0], Roles: in.roles}
		switch {
		case in.node:
			request.Kind = "node"
		case !in.without:
			secrets, err := c.freshPassword(in.stdin, c.args[0])
			if err != nil {
				return err
			}
			request.Password = secrets[0]
		}
		return showAnswer(ctx, c.app, api.UserCreate, request, printUser)
	},
}

type userEditInput struct {
	add, remove             []string
	disable, enable, unlock bool
}

var userEdit = verb[userEditInput]{
	use: "edit NAME", short: "Change a user's roles, disable, enable or unlock it",
	destroys: lossOfRights,
	example:  "  tutti user edit ann --add-role deployer --remove-role viewer\n  tutti user edit ann --disable\n  tutti user edit ann --unlock",
	flags: func(f flagSet, in *userEditInput) {
		f.StringSliceVar(&in.add, "add-role", nil, "a role to give; may be given many times")
		f.StringSliceVar(&in.remove, "remove-role", nil, "a role to take away; may be given many times")
		f.BoolVar(&in.disable, "disable", false, "refuse the user's logins and tokens")
		f.BoolVar(&in.enable, "enable", false, "accept them again")
		f.BoolVar(&in.unlock, "unlock", false, "forget failed logins")
		f.cmd.MarkFlagsMutuallyExclusive("disable", "enable")
		f.requiresOne("add-role", "remove-role", "disable", "enable", "unlock")
	},
	run: func(ctx context.Context, c *call, in *userEditInput) error {
		request := api.UserEditRequest{User: c.args[0], Unlock: in.unlock}
		if in.disable || in.enable {
			request.Disabled = &in.disable
		}
		if len(in.add)+len(in.remove) > 0 {
			had, roles, err := changedRoles(ctx, c.app, c.args[0], in.add, in.remove)
			if err != nil {
				return err
			}
			request.HadRoles, request.Roles = &had, &roles
		}
		return showAnswer(ctx, c.app, api.UserEdit, request, printUser)
	},
}

// lossOfRights is what an edit takes from a user; empty if nothing.
func lossOfRights(ctx context.Context, c *call, in *userEditInput) (string, error) {
	var takes []string
	if in.disable {
		takes = append(takes, "refuse the logins and tokens of "+c.args[0])
	}
	for _, role := range in.remove {
		takes = append(takes, "take the role "+role+" from "+c.args[0])
	}
	if len(takes) == 0 {
		return "", nil
	}
	text := strings.Join(takes, " and ")
	if in.disable || slices.Contains(in.remove, rbac.Administrator) {
		text += lockoutText(ctx, c, removal{user: c.args[0]})
	}
	return text, nil
}

// changedRoles is what the user's roles are, and what they will be.
func changedRoles(ctx context.Context, a *app, name string, add, remove []string) (had, roles []string, err error) {
	user, err := ask(ctx, a, api.UserShow, api.UserRequest{User: name})
	if err != nil {
		return nil, nil, err
	}
	for _, role := range remove {
		if !slices.Contains(user.Roles, role) {
			return nil, nil, fault.New(fault.NotFound, "user %s does not have the role %s", name, role)
		}
	}
	roles = slices.DeleteFunc(slices.Clone(user.Roles), func(role string) bool { return slices.Contains(remove, role) })
	return append([]string{}, user.Roles...), append(roles, add...), nil
}

var userDelete = verb[api.UserRequest]{
	use: "delete NAME", short: "Delete a user and its tokens", example: "  tutti user delete ann",
	destroys: lossOfUser,
	into:     func(in *api.UserRequest, args []string) { in.User = args[0] },
	run:      does(api.UserDelete, func(in *api.UserRequest) string { return fmt.Sprintf("User %s is deleted", in.User) }),
}

type userPasswordInput struct{ stdin bool }

var userPassword = verb[userPasswordInput]{
	use: "password [NAME]", short: "Change your password, or set somebody's", args: atMostOne,
	long: `Without NAME, change your own password; the old one is asked for. With NAME, set that user's password by right. The user's
logins end, except for the one that asks; tokens with a label stay.`,
	example: "  tutti user password\n  tutti user password ann",
	flags: func(f flagSet, in *userPasswordInput) {
		f.BoolVar(&in.stdin, "password-stdin", false, "read from standard input, one line each: without NAME the old password, then the new one")
	},
	run: func(ctx context.Context, c *call, in *userPasswordInput) error {
		client, err := c.client()
		if err != nil {
			return err
		}
		request := api.PasswordRequest{User: api.Me}
		var secrets []string
		if len(c.args) == 1 {
			request.User = c.args[0]
			secrets, err = c.freshPassword(in.stdin, c.args[0])
		} else if secrets, err = c.freshPassword(in.stdin, "yours", "Old password"); err == nil {
			request.Old = secrets[0]
		}
		if err != nil {
			return err
		}
		request.New = secrets[len(secrets)-1]
		if _, err := api.UserPassword.Call(ctx, client, request); err != nil {
			return err
		}
		c.hint("The password is changed")
		return nil
	},
}
