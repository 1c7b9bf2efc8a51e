package rest

import (
	"cmp"
	"context"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

func (h *Handler) listUsers(ctx context.Context, request api.PageRequest) (api.List[api.User], error) {
	list := api.List[api.User]{Items: []api.User{}}
	page, err := accessPage(request.After, request.Limit)
	if err != nil {
		return list, err
	}
	users, err := h.Access.Store.Users(ctx, page)
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

func (h *Handler) showUser(ctx context.Context, request api.UserRequest) (api.User, error) {
	u, err := h.Access.Store.User(ctx, request.User)
	return userOf(u), err
}

func (h *Handler) createUser(ctx context.Context, request api.UserCreateRequest) (api.User, error) {
	u, err := h.Access.CreateUser(ctx, fleet.ActorFrom(ctx), rbac.User{
		Name: request.Name, Kind: rbac.UserKind(cmp.Or(request.Kind, string(rbac.Person))), Roles: request.Roles,
	}, request.Password)
	return userOf(u), err
}

func (h *Handler) editUser(ctx context.Context, request api.UserEditRequest) (api.User, error) {
	u, err := h.Access.EditUser(ctx, fleet.ActorFrom(ctx), request.User, rbac.UserEdit{
		Roles: request.Roles, Disabled: request.Disabled, Unlock: request.Unlock,
	})
	return userOf(u), err
}

func (h *Handler) deleteUser(ctx context.Context, request api.UserRequest) (nothing, error) {
	return nothing{}, h.Access.DeleteUser(ctx, fleet.ActorFrom(ctx), request.User)
}

// setPassword sets somebody's password by right, or one's own by the old one.
func (h *Handler) setPassword(ctx context.Context, request api.PasswordRequest) (nothing, error) {
	actor := fleet.ActorFrom(ctx)
	owner, err := h.owner(ctx, request.User, fleet.UserWrite)
	switch {
	case err != nil:
		return nothing{}, err
	case request.User == api.Me || owner == actor.Name && rbac.Allow(actor, fleet.UserWrite, fleet.Object{}) != nil:
		return nothing{}, h.Access.ChangePassword(ctx, actor, request.Old, request.New)
	}
	return nothing{}, h.Access.SetPassword(ctx, actor, owner, request.New)
}

func (h *Handler) listRoles(ctx context.Context, _ nothing) (api.List[api.Role], error) {
	list := api.List[api.Role]{Items: []api.Role{}}
	roles, err := h.Access.Roles(ctx)
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

func (h *Handler) showRole(ctx context.Context, request api.RoleRequest) (api.Role, error) {
	r, err := h.Access.Role(ctx, request.Role)
	return roleOf(r), err
}

func (h *Handler) createRole(ctx context.Context, request api.RoleCreateRequest) (api.Role, error) {
	r, err := h.Access.CreateRole(ctx, fleet.ActorFrom(ctx), rbac.Role{Name: request.Name, Description: request.Description, Grants: request.Grants})
	return roleOf(r), err
}

func (h *Handler) editRole(ctx context.Context, request api.RoleEditRequest) (api.Role, error) {
	r, err := h.Access.EditRole(ctx, fleet.ActorFrom(ctx), rbac.Role{Name: request.Role, Description: request.Description, Grants: request.Grants})
	return roleOf(r), err
}

func (h *Handler) deleteRole(ctx context.Context, request api.RoleRequest) (nothing, error) {
	return nothing{}, h.Access.DeleteRole(ctx, fleet.ActorFrom(ctx), request.Role)
}
