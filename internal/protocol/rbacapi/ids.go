package rbacapi

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
)

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// builtInNumbers are the numbers of the built-in roles: those that have the same purpose there have the same number.
var builtInNumbers = map[string]int{rbac.Administrator: 1, "operator": 2, "viewer": 3, "deployer": 4, "commander": 5, "auditor": 6}

// firstNumber is where the numbers of other roles begin.
const firstNumber = 1000

// roleNumber is the number of a role, made of the name alone. It fits in 31 bits, which is what clients read.
func roleNumber(name string) int {
	if n, ok := builtInNumbers[name]; ok {
		return n
	}
	sum := sha256.Sum256([]byte("tutti role " + name))
	return firstNumber + int(binary.BigEndian.Uint32(sum[:4])%(1<<31-firstNumber))
}

// pageSize is how many users or tokens are read at once.
const pageSize = 1000

// users reads all users, by name.
func (h *service) users(ctx context.Context) (all []rbac.User, err error) {
	for after := ""; ; {
		users, err := h.Access.Store.Users(ctx, rbac.Page{After: after, Limit: pageSize})
		if err != nil {
			return nil, err
		}
		all = append(all, users...)
		if len(users) < pageSize {
			return all, nil
		}
		after = users[len(users)-1].Name
	}
}

// userOf finds the user with a UUID. The one who asks is found without a search.
func (h *service) userOf(ctx context.Context, id string) (rbac.User, error) {
	id = strings.ToLower(id)
	if !uuid.MatchString(id) {
		return rbac.User{}, h.Bad(noUUID, map[string]string{"id": id}, "%.80q is no UUID; users are named by the id that GET %s/users shows", id, v1)
	}
	if actor := fleet.ActorFrom(ctx); id == pejson.UserID(actor.Name) {
		return h.Access.Store.User(ctx, actor.Name)
	}
	users, err := h.users(ctx)
	if err != nil {
		return rbac.User{}, err
	}
	for _, u := range users {
		if pejson.UserID(u.Name) == id {
			return u, nil
		}
	}
	return rbac.User{}, fault.New(fault.NotFound, "there is no user with the id %s", id)
}

// subject is the user that the path names; its records are for itself and for those with the permission.
func (h *service) subject(r *http.Request, id string, permission fleet.Permission) (rbac.User, error) {
	if actor := fleet.ActorFrom(r.Context()); strings.ToLower(id) != pejson.UserID(actor.Name) {
		if err := may(r, permission); err != nil {
			return rbac.User{}, err
		}
	}
	return h.userOf(r.Context(), id)
}

// usersWith finds the users with these UUIDs.
func (h *service) usersWith(ctx context.Context, ids []string) (found []rbac.User, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	users, err := h.users(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		i := slices.IndexFunc(users, func(u rbac.User) bool { return pejson.UserID(u.Name) == strings.ToLower(id) })
		if i < 0 {
			return nil, h.Bad(noSuchID, map[string]string{"id": id}, "there is no user with the id %.80q", id)
		}
		found = append(found, users[i])
	}
	return found, nil
}

// numbered is roles by their numbers. Two names with one number is as rare as a lottery's first prize; neither is meant by it then.
func numbered(roles []rbac.Role) map[int]rbac.Role {
	byNumber, twice := map[int]rbac.Role{}, map[int]bool{}
	for _, role := range roles {
		n := roleNumber(role.Name)
		_, taken := byNumber[n]
		twice[n] = twice[n] || taken
		byNumber[n] = role
	}
	for n, is := range twice {
		if is {
			delete(byNumber, n)
		}
	}
	return byNumber
}

// roleOf finds the role that the path names.
func (h *service) roleOf(r *http.Request) (rbac.Role, error) {
	number, err := strconv.Atoi(r.PathValue("rid"))
	if err != nil {
		return rbac.Role{}, h.Bad(malformed, nil, "%.80q is no number of a role; GET %s/roles shows them", r.PathValue("rid"), v1)
	}
	return h.roleNumbered(r.Context(), number)
}

func (h *service) roleNumbered(ctx context.Context, number int) (rbac.Role, error) {
	roles, err := h.Access.Roles(ctx)
	if err != nil {
		return rbac.Role{}, err
	}
	role, ok := numbered(roles)[number]
	if !ok {
		return role, fault.New(fault.NotFound, "there is no role with the id %d", number)
	}
	return role, nil
}

// roleNames are the names of roles by number, in order.
func (h *service) roleNames(ctx context.Context, numbers []int) ([]string, error) {
	roles, err := h.Access.Roles(ctx)
	if err != nil {
		return nil, err
	}
	byNumber, names := numbered(roles), []string{}
	for _, n := range numbers {
		role, ok := byNumber[n]
		if !ok {
			return nil, h.Bad(noSuchID, map[string]int{"id": n}, "there is no role with the id %d", n)
		}
		names = append(names, role.Name)
	}
	return names, nil
}

// roleNumbers are the numbers of roles by name.
func roleNumbers(names []string) []int {
	numbers := []int{}
	for _, name := range names {
		numbers = append(numbers, roleNumber(name))
	}
	slices.Sort(numbers)
	return numbers
}
