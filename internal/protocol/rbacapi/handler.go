package rbacapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
)

// The beginnings of the paths.
const (
	Prefix = "/rbac-api"
	v1     = Prefix + "/v1"
	v2     = Prefix + "/v2"
)

// Service is what the kinds of this API's errors begin with.
const Service = "puppetlabs.rbac"

// MaxBodyBytes is the largest body of a request to this API.
const MaxBodyBytes = 1 << 20

// Config hands in the parts.
type Config struct {
	Access    *rbac.Access
	Audit     *rbac.Audit
	Actor     func(*http.Request) (fleet.Actor, error) // who asks
	Entry     func(context.Context) rbac.Entry         // when, from where, under which reference
	RequestID func(context.Context) string
	Log       *slog.Logger
}

// service is what all routes work with.
type service struct {
	Config
	*pejson.Service
}

// Handler serves the RBAC API.
type Handler struct {
	*service
	routes http.Handler
}

// What is wrong, in the words of the service.
const (
	malformed     = "malformed-request"
	wrongShape    = "schema-violation"
	otherID       = "inconsistent-id"
	noUUID        = "invalid-uuid"
	noSuchID      = "invalid-associated-id"
	denied        = "permission-denied"
	conflict      = "conflict"
	builtInRole   = "default-roles-immutable"
	builtInUser   = "admin-user-immutable"
	serverError   = "server-error"
	invalidToken  = "invalid-token"
	tokenExpired  = "token-expired"
	tokenRevoked  = "token-revoked"
	notAllRevoked = "tokens-not-revoked"
)

// statuses of these words.
var statuses = map[string]int{
	malformed: http.StatusBadRequest, wrongShape: http.StatusBadRequest, otherID: http.StatusBadRequest, noUUID: http.StatusBadRequest,
	noSuchID: http.StatusUnprocessableEntity, denied: http.StatusForbidden, conflict: http.StatusConflict,
	builtInRole: http.StatusForbidden, builtInUser: http.StatusForbidden, serverError: http.StatusInternalServerError,
	invalidToken: http.StatusBadRequest, tokenExpired: http.StatusForbidden, tokenRevoked: http.StatusForbidden, notAllRevoked: http.StatusBadRequest,
}

// New returns a handler; table is what it answers.
func New(c Config) *Handler {
	h := &Handler{service: &service{c, pejson.New(pejson.Config{
		Prefix: Service, Statuses: statuses, Sparing: true, RequestID: c.RequestID, Log: c.Log,
		Words: map[fault.Kind]string{
			fault.Internal: serverError, fault.Invalid: wrongShape, fault.NotFound: pejson.NotFound, fault.Denied: denied, fault.Conflict: conflict,
		},
	})}}
	acts := map[string]pejson.Act{}
	for pattern, way := range h.table() {
		method, path, _ := strings.Cut(pattern, " ")
		for _, version := range []string{v1, v2} {
			acts[method+" "+version+path] = h.checked(method+" "+version+path, way)
		}
	}
	h.routes = h.Routes(acts)
	return h
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.routes.ServeHTTP(w, r) }

// way is how a route is answered, and what that takes.
type way struct {
	permission fleet.Permission // fleet.Self: more is asked for when it is known whom the request is about
	act        pejson.Act
	asks       bool // it changes nothing, although it is no GET
}

func (h *Handler) table() map[string]way {
	logins, users, given, asked := &tokens{h.service, rbac.Logins{Access: h.Access, Audit: h.Audit}}, &people{h.service}, &roles{h.service}, &rights{h.service}
	return map[string]way{
		"POST /auth/token":              {permission: fleet.Open, act: logins.logIn},
		"POST /auth/token/authenticate": {permission: fleet.Open, act: logins.authenticate},
		"GET /tokens":                   {permission: fleet.Self, act: logins.ownTokens},
		"POST /tokens":                  {permission: fleet.Self, act: logins.createToken},
		"DELETE /tokens":                {permission: fleet.Self, act: logins.revokeTokens},
		"DELETE /tokens/{token}":        {permission: fleet.Self, act: logins.revokeToken},

		"GET /users":                       {permission: fleet.UserRead, act: users.listUsers},
		"POST /users":                      {permission: fleet.UserWrite, act: users.createUser},
		"GET /users/current":               {permission: fleet.Self, act: users.currentUser},
		"PUT /users/current/password":      {permission: fleet.Self, act: users.changePassword},
		"GET /users/{sid}":                 {permission: fleet.Self, act: users.showUser},
		"PUT /users/{sid}":                 {permission: fleet.UserWrite, act: users.replaceUser},
		"DELETE /users/{sid}":              {permission: fleet.UserWrite, act: users.deleteUser},
		"GET /users/{sid}/tokens":          {permission: fleet.Self, act: logins.userTokens},
		"POST /command/users/add-roles":    {permission: fleet.UserWrite, act: users.rolesCommand(addRoles)},
		"POST /command/users/remove-roles": {permission: fleet.UserWrite, act: users.rolesCommand(removeRoles)},
		"POST /command/users/revoke":       {permission: fleet.UserWrite, act: users.userCommand(revoke)},
		"POST /command/users/reinstate":    {permission: fleet.UserWrite, act: users.userCommand(reinstate)},

		"GET /groups": {permission: fleet.UserRead, act: users.listGroups},

		"GET /roles":                             {permission: fleet.RoleRead, act: given.listRoles},
		"POST /roles":                            {permission: fleet.RoleWrite, act: given.createRole},
		"GET /roles/{rid}":                       {permission: fleet.RoleRead, act: given.showRole},
		"PUT /roles/{rid}":                       {permission: fleet.RoleWrite, act: given.replaceRole},
		"DELETE /roles/{rid}":                    {permission: fleet.RoleWrite, act: given.deleteRole},
		"POST /command/roles/add-users":          {permission: fleet.UserWrite, act: given.memberCommand(true)},
		"POST /command/roles/remove-users":       {permission: fleet.UserWrite, act: given.memberCommand(false)},
		"POST /command/roles/add-permissions":    {permission: fleet.RoleWrite, act: given.permissionCommand(true)},
		"POST /command/roles/remove-permissions": {permission: fleet.RoleWrite, act: given.permissionCommand(false)},

		"GET /types":                            {permission: fleet.Self, act: asked.listTypes},
		"POST /permitted":                       {permission: fleet.Self, act: asked.permitted, asks: true},
		"GET /permitted/{type}/{action}":        {permission: fleet.Self, act: asked.instances},
		"GET /permitted/{type}/{action}/{uuid}": {permission: fleet.Self, act: asked.instances},
	}
}

// checked lets those through who have the route's permission. What changes something is recorded before it is done, and so is
// what is refused. Routes that are open keep a record of their own.
func (h *Handler) checked(pattern string, way way) pejson.Act {
	return func(w http.ResponseWriter, r *http.Request) error {
		if way.permission == fleet.Open {
			return way.act(w, r)
		}
		actor, err := h.Actor(r)
		r = r.WithContext(fleet.WithActor(r.Context(), actor))
		if err == nil {
			err = rbac.Allow(actor, way.permission, fleet.Object{})
		}
		if err == nil {
			err = h.recorded(w, r, pattern, way)
		} else {
			h.refused(r, pattern, err)
		}
		if fault.Is(pejson.Fault(err), fault.Denied) && actor.Name == "" {
			return pejson.Stranger(err)
		}
		return err
	}
}

// recorded does what a route does.
func (h *Handler) recorded(w http.ResponseWriter, r *http.Request, pattern string, way way) error {
	if way.asks || r.Method == http.MethodGet || r.Method == http.MethodHead {
		err := way.act(w, r)
		h.refused(r, pattern, err)
		return err
	}
	finish, err := h.Audit.Begin(r.Context(), h.entry(r, pattern))
	if err != nil {
		return err
	}
	err = way.act(w, r)
	finish(pejson.Fault(err))
	return err
}

// refused records a refusal; other errors are nobody's fault.
func (h *Handler) refused(r *http.Request, pattern string, err error) {
	if fault.Is(pejson.Fault(err), fault.Denied) {
		h.Audit.Refused(r.Context(), h.entry(r, pattern), err)
	}
}

// entry is an entry of the audit log. A token in the path is left out of it.
func (h *Handler) entry(r *http.Request, pattern string) rbac.Entry {
	actor, entry := fleet.ActorFrom(r.Context()), h.Entry(r.Context())
	entry.ActorKind, entry.Actor, entry.Token = actor.Kind, actor.Name, actor.Token
	entry.Operation, entry.Object = pattern, cmp.Or(r.PathValue("sid"), r.PathValue("rid"))
	if actor.BreakGlass {
		entry.Mark = rbac.BreakGlass
	}
	return entry
}

// read reads the body of a request.
func (h *service) read(w http.ResponseWriter, r *http.Request, into any) error {
	return h.Read(w, r, MaxBodyBytes, malformed, into)
}

// missing is the error for a command without the list that it is about: done, it would change nothing and answer that all is well.
func (h *service) missing(list string) error {
	return h.Bad(wrongShape, map[string]string{"field": list}, "%s is missing; give a list", list)
}

// may returns nil when who asks has the permission.
func may(r *http.Request, permission fleet.Permission) error {
	return rbac.Allow(fleet.ActorFrom(r.Context()), permission, fleet.Object{})
}
