package rbacapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
)

// people answers what is about users.
type people struct{ *service }

// user is a user as clients read it.
type user struct {
	ID          string   `json:"id"`
	Login       string   `json:"login"`
	Email       string   `json:"email"`
	DisplayName string   `json:"display_name"`
	RoleIDs     []int    `json:"role_ids"`
	Inherited   []int    `json:"inherited_role_ids"`
	GroupIDs    []string `json:"group_ids"`
	IsGroup     bool     `json:"is_group"`
	IsRemote    bool     `json:"is_remote"`
	IsSuperuser bool     `json:"is_superuser"`
	IsRevoked   bool     `json:"is_revoked"`
	LastLogin   *string  `json:"last_login"`
}

// shown is a user as clients read it.
func (h *service) shown(ctx context.Context, u rbac.User) (user, error) {
	roles, err := h.Access.Roles(ctx)
	return userData(u, roles), err
}

// userData shows a user; a node that has roles is a user, too.
func userData(u rbac.User, roles []rbac.Role) user {
	return user{
		ID: pejson.UserID(u.Name), Login: u.Name, DisplayName: u.Name, RoleIDs: roleNumbers(u.Roles), Inherited: []int{}, GroupIDs: []string{},
		IsSuperuser: slices.ContainsFunc(rbac.GrantsOf(u.Roles, roles), func(g fleet.Grant) bool { return g.Permission == fleet.Everything && !g.Scoped() }),
		IsRevoked:   u.Disabled, LastLogin: stampOf(u.LoginAt),
	}
}

// userOrders are what a list of users can be sorted by.
var userOrders = map[string]func(a, b rbac.User) int{
	"id":            func(a, b rbac.User) int { return strings.Compare(pejson.UserID(a.Name), pejson.UserID(b.Name)) },
	"login":         func(a, b rbac.User) int { return strings.Compare(a.Name, b.Name) },
	"display_name":  func(a, b rbac.User) int { return strings.Compare(a.Name, b.Name) },
	"email":         func(a, b rbac.User) int { return strings.Compare(a.Name, b.Name) },
	"last_login":    func(a, b rbac.User) int { return a.LoginAt.Compare(b.LoginAt) },
	"creation_date": func(a, b rbac.User) int { return a.CreatedAt.Compare(b.CreatedAt) },
}

// listUsers lists users: all of them in version 1, a page of them with its bounds in version 2.
func (h *people) listUsers(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	users, err := h.users(r.Context())
	if err != nil {
		return err
	}
	roles, err := h.Access.Roles(r.Context())
	if err != nil {
		return err
	}
	paged := strings.HasPrefix(r.URL.Path, v2+"/")
	var asked page
	if paged {
		if asked, err = pageOf(h.service, query, "id", userOrders); err != nil {
			return err
		}
		part := strings.ToLower(query.Get("filter"))
		users = slices.DeleteFunc(users, func(u rbac.User) bool { return !strings.Contains(strings.ToLower(u.Name), part) })
		asked.Total = len(users)
		users = cut(users, asked, userOrders)
	} else if ids := pejson.ListOf(query.Get("id")); ids != nil {
		users = slices.DeleteFunc(users, func(u rbac.User) bool { return !slices.Contains(ids, pejson.UserID(u.Name)) })
	}
	shown := []user{}
	for _, u := range users {
		shown = append(shown, userData(u, roles))
	}
	if !paged {
		pejson.Write(w, http.StatusOK, shown)
		return nil
	}
	pejson.Write(w, http.StatusOK, map[string]any{"users": shown, "pagination": asked})
	return nil
}

// showOne answers with one user.
func (h *people) showOne(w http.ResponseWriter, r *http.Request, u rbac.User) error {
	shown, err := h.shown(r.Context(), u)
	if err != nil {
		return err
	}
	pejson.Write(w, http.StatusOK, shown)
	return nil
}

func (h *people) currentUser(w http.ResponseWriter, r *http.Request) error {
	actor := fleet.ActorFrom(r.Context())
	u, err := h.Access.Store.User(r.Context(), actor.Name)
	if fault.Is(err, fault.NotFound) { // a certificate that has rights by itself
		u, err = rbac.User{Name: actor.Name, Kind: rbac.Node}, nil
	}
	if err != nil {
		return err
	}
	return h.showOne(w, r, u)
}

func (h *people) showUser(w http.ResponseWriter, r *http.Request) error {
	u, err := h.subject(r, r.PathValue("sid"), fleet.UserRead)
	if err != nil {
		return err
	}
	return h.showOne(w, r, u)
}

// userForm is a user as clients write it. The address and the full name are taken and not kept.
type userForm struct {
	ID          string   `json:"id"`
	Login       string   `json:"login"`
	Email       string   `json:"email"`
	DisplayName string   `json:"display_name"`
	RoleIDs     *[]int   `json:"role_ids"`
	IsRevoked   *bool    `json:"is_revoked"`
	Password    string   `json:"password"`
	GroupIDs    []string `json:"group_ids"`
}

func (h *people) createUser(w http.ResponseWriter, r *http.Request) error {
	var form userForm
	if err := h.read(w, r, &form); err != nil {
		return err
	}
	if form.Login == "" || form.RoleIDs == nil {
		return h.Bad(wrongShape, nil, "login and role_ids are needed; role_ids may be empty")
	}
	roles, err := h.roleNames(r.Context(), *form.RoleIDs)
	if err != nil {
		return err
	}
	u, err := h.Access.CreateUser(r.Context(), fleet.ActorFrom(r.Context()), rbac.User{Name: form.Login, Kind: rbac.Person, Roles: roles}, form.Password)
	if err != nil {
		return err
	}
	w.Header().Set("Location", v1+"/users/"+pejson.UserID(u.Name))
	w.WriteHeader(http.StatusCreated)
	return nil
}

// replaceUser changes the roles of a user, and whether it may come in. Its name stays.
func (h *people) replaceUser(w http.ResponseWriter, r *http.Request) error {
	u, err := h.userOf(r.Context(), r.PathValue("sid"))
	if err != nil {
		return err
	}
	var form userForm
	if err := h.read(w, r, &form); err != nil {
		return err
	}
	switch {
	case strings.ToLower(form.ID) != pejson.UserID(u.Name):
		return h.Bad(otherID, map[string]string{"id": form.ID}, "the id in the body, %.80q, is not that of the path", form.ID)
	case form.RoleIDs == nil || form.IsRevoked == nil || form.Login == "":
		return h.Bad(wrongShape, nil, "the whole user is needed, as GET shows it: login, role_ids and is_revoked are missing, or some of them")
	case form.Login != u.Name:
		return h.Bad(wrongShape, map[string]string{"field": "login"}, "the login of a user stays: it is %s", u.Name)
	}
	roles, err := h.roleNames(r.Context(), *form.RoleIDs)
	if err != nil {
		return err
	}
	if u, err = h.edit(r.Context(), u, rbac.UserEdit{Roles: &roles, Disabled: form.IsRevoked}); err != nil {
		return err
	}
	return h.showOne(w, r, u)
}

// edit changes a user, as far as it may be changed.
func (h *service) edit(ctx context.Context, u rbac.User, edit rbac.UserEdit) (rbac.User, error) {
	changed, err := h.Access.EditUser(ctx, fleet.ActorFrom(ctx), u.Name, edit)
	if fault.Is(err, fault.Conflict) && u.Name == rbac.AdminUser {
		return u, h.Named(builtInUser, nil, err)
	}
	if err == nil && changed.Disabled { // as clients expect it: who comes back logs in again
		_, err = h.Access.RevokeTokens(ctx, fleet.ActorFrom(ctx), u.Name)
	}
	return changed, err
}

func (h *people) deleteUser(w http.ResponseWriter, r *http.Request) error {
	u, err := h.userOf(r.Context(), r.PathValue("sid"))
	if err != nil {
		return err
	}
	err = h.Access.DeleteUser(r.Context(), fleet.ActorFrom(r.Context()), u.Name)
	if fault.Is(err, fault.Conflict) && u.Name == rbac.AdminUser {
		return h.Named(builtInUser, nil, err)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// changePassword sets one's own password by the old one.
func (h *people) changePassword(w http.ResponseWriter, r *http.Request) error {
	var form struct {
		Old string `json:"current_password"`
		New string `json:"new_password"`
	}
	if err := h.read(w, r, &form); err != nil {
		return err
	}
	actor := fleet.ActorFrom(r.Context())
	if actor.Kind != fleet.UserActor {
		return fault.New(fault.Denied, "%s %s shows its certificate and has no password", actor.Kind, actor.Name)
	}
	if err := h.Access.ChangePassword(r.Context(), actor, form.Old, form.New); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func addRoles(u rbac.User, roles []string) rbac.UserEdit {
	all := slices.Concat(u.Roles, roles)
	slices.Sort(all)
	all = slices.Compact(all)
	return rbac.UserEdit{Roles: &all}
}

func removeRoles(u rbac.User, roles []string) rbac.UserEdit {
	left := slices.DeleteFunc(slices.Clone(u.Roles), func(name string) bool { return slices.Contains(roles, name) })
	return rbac.UserEdit{Roles: &left}
}

func revoke() rbac.UserEdit {
	off := true
	return rbac.UserEdit{Disabled: &off}
}

func reinstate() rbac.UserEdit {
	off := false
	return rbac.UserEdit{Disabled: &off, Unlock: true}
}

// userCommand answers a command about one user.
func (h *people) userCommand(command func() rbac.UserEdit) pejson.Act {
	return func(w http.ResponseWriter, r *http.Request) error {
		var form struct {
			User string `json:"user_id"`
		}
		if err := h.read(w, r, &form); err != nil {
			return err
		}
		u, err := h.userOf(r.Context(), form.User)
		if err != nil {
			return err
		}
		return h.edited(w, r, u, command())
	}
}

func (h *people) edited(w http.ResponseWriter, r *http.Request, u rbac.User, edit rbac.UserEdit) error {
	_, err := h.edit(r.Context(), u, edit)
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// rolesCommand answers a command about the roles of one user.
func (h *people) rolesCommand(command func(u rbac.User, roles []string) rbac.UserEdit) pejson.Act {
	return func(w http.ResponseWriter, r *http.Request) error {
		var form struct {
			User  string `json:"user_id"`
			Roles []int  `json:"role_ids"`
		}
		if err := h.read(w, r, &form); err != nil {
			return err
		}
		if form.Roles == nil {
			return h.missing("role_ids")
		}
		u, err := h.userOf(r.Context(), form.User)
		if err != nil {
			return err
		}
		roles, err := h.roleNames(r.Context(), form.Roles)
		if err != nil {
			return err
		}
		return h.edited(w, r, u, command(u, roles))
	}
}

// listGroups lists groups of users: there are none.
func (*people) listGroups(w http.ResponseWriter, _ *http.Request) error {
	pejson.Write(w, http.StatusOK, []string{})
	return nil
}
