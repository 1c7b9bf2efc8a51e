package rest

import (
	"cmp"
	"context"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// users answers the operations of users and roles.
type users struct {
	sessions *sessions
	access   *rbac.Access
}

func (h *users) bindings() []binding {
	return []binding{
		answer(api.UserList, h.listUsers),
		answer(api.UserShow, h.showUser),
		answer(api.UserCreate, h.createUser),
		answer(api.UserEdit, h.editUser),
		answer(api.UserDelete, h.deleteUser),
		answer(api.UserPassword, h.setPassword),
		answer(api.RoleList, h.listRoles),
		answer(api.RoleShow, h.showRole),
		answer(api.RoleCreate, h.createRole),
		answer(api.RoleEdit, h.editRole),
		answer(api.RoleDelete, h.deleteRole),
	}
}

func (h *users) listUsers(ctx context.Context, request api.PageRequest) (api.List[api.User], error) {
	list := api.List[api.User]{Items: []api.User{}}
	page, err := accessPage(request.After, request.Limit)
	if err != nil {
		return list, err
	}
	users, err := h.access.Store.Users(ctx, page)
	for _, u := range users {
		list.Items = append(list.Items, userOf(u))
	}
	if len(users) == page.Limit {
		list.Next = users[len(users)-1].Name
	}
	return list, err
}

func userOf(u rbac.User) api.User {
	state := "active"
	locked := time.Now().Before(u.LockedUntil)
	switch {
	case u.Disabled:
		state = "disabled"
	case locked:
		state = "locked"
	case u.Kind == rbac.Person && u.Password == "":
		state = "no password"
	}
	user := api.User{
		Name: u.Name, Kind: string(u.Kind), Roles: append([]string{}, u.Roles...), State: state, CreatedAt: u.CreatedAt.UTC(),
		ChangedAt: timeOf(u.ChangedAt), ChangedBy: u.ChangedBy, LoginAt: timeOf(u.LoginAt),
	}
	if locked {
		user.LockedUntil = timeOf(u.LockedUntil)
	}
	return user
}

func (h *users) showUser(ctx context.Context, request api.UserRequest) (api.User, error) {
	u, err := h.access.Store.User(ctx, request.User)
	return userOf(u), err
}

func (h *users) createUser(ctx context.Context, request api.UserCreateRequest) (api.User, error) {
	u, err := h.access.CreateUser(ctx, fleet.ActorFrom(ctx), rbac.User{
		Name: request.Name, Kind: rbac.UserKind(cmp.Or(request.Kind, string(rbac.Person))), Roles: request.Roles,
	}, request.Password)
	return userOf(u), err
}

func (h *users) editUser(ctx context.Context, request api.UserEditRequest) (api.User, error) {
	u, err := h.access.EditUser(ctx, fleet.ActorFrom(ctx), request.User, rbac.UserEdit{
		Roles: request.Roles, Had: request.HadRoles, Disabled: request.Disabled, Unlock: request.Unlock,
	})
	return userOf(u), err
}

func (h *users) deleteUser(ctx context.Context, request api.UserRequest) (api.Nothing, error) {
	return api.Nothing{}, h.access.DeleteUser(ctx, fleet.ActorFrom(ctx), request.User)
}

// setPassword sets somebody's password by right, or one's own by the old one.
func (h *users) setPassword(ctx context.Context, request api.PasswordRequest) (api.Nothing, error) {
	actor := fleet.ActorFrom(ctx)
	owner, err := h.sessions.owner(ctx, request.User, fleet.UserWrite)
	switch {
	case err != nil:
		return api.Nothing{}, err
	case request.User == api.Me || owner == actor.Name && rbac.Allow(actor, fleet.UserWrite, fleet.Object{}) != nil:
		return api.Nothing{}, h.access.ChangePassword(ctx, actor, request.Old, request.New)
	}
	return api.Nothing{}, h.access.SetPassword(ctx, actor, owner, request.New)
}

func (h *users) listRoles(ctx context.Context, _ api.Nothing) (api.List[api.Role], error) {
	list := api.List[api.Role]{Items: []api.Role{}}
	roles, err := h.access.Roles(ctx)
	for _, r := range roles {
		list.Items = append(list.Items, roleOf(r))
	}
	return list, err
}

func roleOf(r rbac.Role) api.Role {
	return api.Role{
		Name: r.Name, Description: r.Description, BuiltIn: r.BuiltIn, Grants: r.Grants, ChangedAt: timeOf(r.ChangedAt), ChangedBy: r.ChangedBy,
	}
}

func (h *users) showRole(ctx context.Context, request api.RoleRequest) (api.Role, error) {
	r, err := h.access.Role(ctx, request.Role)
	return roleOf(r), err
}

func (h *users) createRole(ctx context.Context, request api.RoleCreateRequest) (api.Role, error) {
	r, err := h.access.CreateRole(ctx, fleet.ActorFrom(ctx), rbac.Role{Name: request.Name, Description: request.Description, Grants: request.Grants})
	return roleOf(r), err
}

func (h *users) editRole(ctx context.Context, request api.RoleEditRequest) (api.Role, error) {
	r, err := h.access.EditRole(ctx, fleet.ActorFrom(ctx), rbac.Role{Name: request.Role, Description: request.Description, Grants: request.Grants})
	return roleOf(r), err
}

func (h *users) deleteRole(ctx context.Context, request api.RoleRequest) (api.Nothing, error) {
	return api.Nothing{}, h.access.DeleteRole(ctx, fleet.ActorFrom(ctx), request.Role)
}
