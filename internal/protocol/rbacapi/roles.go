package rbacapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
)

// roles answers what is about roles.
type roles struct{ *service }

// role is a role as clients read it.
type role struct {
	ID          int      `json:"id"`
	DisplayName string   `json:"display_name"`
	Description string   `json:"description"`
	Permissions []triple `json:"permissions"`
	UserIDs     []string `json:"user_ids"`
	GroupIDs    []string `json:"group_ids"`
}

func seesUsers(r *http.Request) bool { return may(r, fleet.UserRead) == nil }

// members are the users that who asks may see.
func (h *roles) members(r *http.Request) ([]rbac.User, error) {
	if !seesUsers(r) {
		return nil, nil
	}
	return h.users(r.Context())
}

func roleData(r rbac.Role, users []rbac.User) role {
	permissions, _ := triplesOf(r.Grants)
	data := role{
		ID: roleNumber(r.Name), DisplayName: r.Name, Description: r.Description, Permissions: permissions, UserIDs: []string{}, GroupIDs: []string{},
	}
	for _, u := range users {
		if slices.Contains(u.Roles, r.Name) {
			data.UserIDs = append(data.UserIDs, pejson.UserID(u.Name))
		}
	}
	return data
}

func (h *roles) listRoles(w http.ResponseWriter, r *http.Request) error {
	users, err := h.members(r)
	if err != nil {
		return err
	}
	all, err := h.Access.Roles(r.Context())
	if err != nil {
		return err
	}
	shown := []role{}
	for _, one := range all {
		shown = append(shown, roleData(one, users))
	}
	slices.SortFunc(shown, func(a, b role) int { return a.ID - b.ID })
	pejson.Write(w, http.StatusOK, shown)
	return nil
}

func (h *roles) showRole(w http.ResponseWriter, r *http.Request) error {
	one, err := h.roleOf(r)
	if err != nil {
		return err
	}
	users, err := h.members(r)
	if err != nil {
		return err
	}
	pejson.Write(w, http.StatusOK, roleData(one, users))
	return nil
}

// roleForm is a role as clients write it.
type roleForm struct {
	ID          int       `json:"id"`
	DisplayName string    `json:"display_name"`
	Description string    `json:"description"`
	Permissions *[]triple `json:"permissions"`
	UserIDs     *[]string `json:"user_ids"`
	GroupIDs    []string  `json:"group_ids"`
}

// readRole reads a role.
func (h *roles) readRole(w http.ResponseWriter, r *http.Request) (form roleForm, err error) {
	if err := h.read(w, r, &form); err != nil {
		return form, err
	}
	if form.DisplayName == "" || form.Permissions == nil {
		return form, h.Bad(wrongShape, nil, "display_name and permissions are needed")
	}
	if len(form.GroupIDs) > 0 {
		return form, h.Bad(noSuchID, map[string]string{"id": form.GroupIDs[0]}, "there are no groups of users here; group_ids must be empty")
	}
	return form, nil
}

func (h *roles) createRole(w http.ResponseWriter, r *http.Request) error {
	form, err := h.readRole(w, r)
	if err != nil {
		return err
	}
	grants, err := h.grantsOf(*form.Permissions)
	if err != nil {
		return err
	}
	var joining []rbac.User
	if form.UserIDs != nil && len(*form.UserIDs) > 0 {
		if err := may(r, fleet.UserWrite); err != nil {
			return err
		}
		if joining, err = h.usersWith(r.Context(), *form.UserIDs); err != nil {
			return err
		}
	}
	made, err := h.Access.CreateRole(r.Context(), fleet.ActorFrom(r.Context()), rbac.Role{Name: form.DisplayName, Description: form.Description, Grants: grants})
	if err != nil {
		return err
	}
	if err := h.join(r.Context(), made.Name, joining, nil); err != nil {
		return err
	}
	w.Header().Set("Location", v1+"/roles/"+strconv.Itoa(roleNumber(made.Name)))
	w.WriteHeader(http.StatusCreated)
	return nil
}

// join gives a role to users, and takes it from others.
func (h *roles) join(ctx context.Context, name string, joining, leaving []rbac.User) error {
	for _, u := range joining {
		if _, err := h.edit(ctx, u, addRoles(u, []string{name})); err != nil {
			return err
		}
	}
	for _, u := range leaving {
		if _, err := h.edit(ctx, u, removeRoles(u, []string{name})); err != nil {
			return err
		}
	}
	return nil
}

// replaceRole changes what a role gives and who has it.
func (h *roles) replaceRole(w http.ResponseWriter, r *http.Request) error {
	before, err := h.roleOf(r)
	if err != nil {
		return err
	}
	form, err := h.readRole(w, r)
	if err != nil {
		return err
	}
	switch {
	case form.ID != 0 && form.ID != roleNumber(before.Name):
		return h.Bad(otherID, map[string]int{"id": form.ID}, "the id in the body, %d, is not that of the path", form.ID)
	case form.DisplayName != before.Name:
		return h.Bad(wrongShape, map[string]string{"field": "display_name"}, "the name of a role stays: it is %s", before.Name)
	}
	joining, leaving, err := h.moves(r, before.Name, form.UserIDs)
	if err != nil {
		return err
	}
	if err := h.replaceGrants(r.Context(), before, form.Description, *form.Permissions); err != nil {
		return err
	}
	if err := h.join(r.Context(), before.Name, joining, leaving); err != nil {
		return err
	}
	users, err := h.members(r)
	if err != nil {
		return err
	}
	after, err := h.Access.Role(r.Context(), before.Name)
	if err != nil {
		return err
	}
	pejson.Write(w, http.StatusOK, roleData(after, users))
	return nil
}

// moves is who is to get a role and who is to lose it. Members that who asks may not see stay as they are.
func (h *roles) moves(r *http.Request, name string, wanted *[]string) (joining, leaving []rbac.User, err error) {
	if wanted == nil || len(*wanted) == 0 && !seesUsers(r) { // as they were shown
		return nil, nil, nil
	}
	if err := may(r, fleet.UserRead); err != nil {
		return nil, nil, err
	}
	meant, err := h.usersWith(r.Context(), *wanted)
	if err != nil {
		return nil, nil, err
	}
	users, err := h.users(r.Context())
	if err != nil {
		return nil, nil, err
	}
	for _, u := range users {
		has, should := slices.Contains(u.Roles, name), slices.ContainsFunc(meant, func(m rbac.User) bool { return m.Name == u.Name })
		switch {
		case should && !has:
			joining = append(joining, u)
		case has && !should:
			leaving = append(leaving, u)
		}
	}
	if len(joining)+len(leaving) > 0 {
		err = may(r, fleet.UserWrite)
	}
	return joining, leaving, err
}

// replaceGrants changes a role, unless it is to stay what it is: written back as it was shown, it keeps what triples cannot say.
func (h *roles) replaceGrants(ctx context.Context, before rbac.Role, description string, wanted []triple) error {
	shown, plain := triplesOf(before.Grants)
	same := slices.Equal(shown, ordered(slices.Clone(wanted)))
	switch {
	case same && description == before.Description:
		return nil
	case before.BuiltIn:
		return h.Bad(builtInRole, nil, "the role %s is built in: only who has it can be changed", before.Name)
	case same:
		_, err := h.Access.EditRole(ctx, fleet.ActorFrom(ctx), rbac.Role{Name: before.Name, Description: description, Grants: before.Grants})
		return err
	case !plain:
		return fault.New(fault.Conflict, "the role %s has grants with bounds that this API cannot say; change it with: tutti role edit %s", before.Name, before.Name)
	}
	grants, err := h.grantsOf(wanted)
	if err != nil {
		return err
	}
	_, err = h.Access.EditRole(ctx, fleet.ActorFrom(ctx), rbac.Role{Name: before.Name, Description: description, Grants: grants})
	return err
}

func (h *roles) deleteRole(w http.ResponseWriter, r *http.Request) error {
	one, err := h.roleOf(r)
	if err != nil {
		return err
	}
	if one.BuiltIn {
		return h.Bad(builtInRole, nil, "the role %s is built in and cannot be deleted", one.Name)
	}
	if err := h.Access.DeleteRole(r.Context(), fleet.ActorFrom(r.Context()), one.Name); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// memberCommand gives a role to users, or takes it from them.
func (h *roles) memberCommand(gives bool) pejson.Act {
	return func(w http.ResponseWriter, r *http.Request) error {
		var form struct {
			Role  int      `json:"role_id"`
			Users []string `json:"user_ids"`
		}
		if err := h.read(w, r, &form); err != nil {
			return err
		}
		if form.Users == nil {
			return h.missing("user_ids")
		}
		one, err := h.roleNumbered(r.Context(), form.Role)
		if err != nil {
			return err
		}
		users, err := h.usersWith(r.Context(), form.Users)
		if err != nil {
			return err
		}
		if gives {
			err = h.join(r.Context(), one.Name, users, nil)
		} else {
			err = h.join(r.Context(), one.Name, nil, users)
		}
		if err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		return err
	}
}

// permissionCommand adds permissions to a role, or takes them away.
func (h *roles) permissionCommand(gives bool) pejson.Act {
	return func(w http.ResponseWriter, r *http.Request) error {
		var form struct {
			Role        int      `json:"role_id"`
			Permissions []triple `json:"permissions"`
		}
		if err := h.read(w, r, &form); err != nil {
			return err
		}
		if form.Permissions == nil {
			return h.missing("permissions")
		}
		one, err := h.roleNumbered(r.Context(), form.Role)
		if err != nil {
			return err
		}
		wanted, _ := triplesOf(one.Grants)
		if gives {
			wanted = append(wanted, form.Permissions...)
		} else {
			wanted = slices.DeleteFunc(wanted, func(t triple) bool { return slices.Contains(form.Permissions, t) })
		}
		if err := h.replaceGrants(r.Context(), one, one.Description, wanted); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}
