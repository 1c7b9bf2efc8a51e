package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Me stands for the name of the user who asks, in paths.
const Me = "@me"

// Sessions, tokens, users and roles: who may do what.
var (
	SessionOpen = op[LoginRequest, IssuedToken](Operation{
		Name: "session.open", Method: http.MethodPost, Path: "/session", Permission: fleet.Open, Kind: Act, MaxBody: MaxLogin,
		Summary: "Log in: get a token for a name and password",
	})
	SessionLink = op[Nothing, LoginLink](Operation{
		Name: "session.link", Method: http.MethodPost, Path: "/session/link", Permission: fleet.Self, Kind: Act,
		Summary: "Make a link that opens the console and logs in the user who asks, once and within a minute",
	})
	SessionShow = op[Nothing, Session](Operation{
		Name: "session.show", Method: http.MethodGet, Path: "/session", Permission: fleet.Self, Kind: Question,
		Summary: "Say who asks, and what they may do",
	})
	SessionClose = op[Nothing, Nothing](Operation{
		Name: "session.close", Method: http.MethodDelete, Path: "/session", Permission: fleet.Self, Kind: Act,
		Summary: "Log out: revoke the token that asks",
	})
	TokenList = op[TokenListRequest, List[AccessToken]](Operation{
		Name: "token.list", Method: http.MethodGet, Path: "/users/{user}/tokens", Permission: fleet.Self, Kind: Question,
		Summary: "List a user's tokens; those of others need token:read",
	})
	TokenCreate = op[TokenCreateRequest, IssuedToken](Operation{
		Name: "token.create", Method: http.MethodPost, Path: "/tokens", Permission: fleet.Self, Kind: Act,
		Summary: "Make a token for oneself",
	})
	TokenRevoke = op[TokenRevokeRequest, Nothing](Operation{
		Name: "token.revoke", Method: http.MethodDelete, Path: "/users/{user}/tokens/{token}", Permission: fleet.Self, Kind: Act,
		Summary: "Revoke a token, by id or label; those of others need token:write",
	})
	TokenRevokeAll = op[UserRequest, RevokedTokens](Operation{
		Name: "token.revoke_all", Method: http.MethodDelete, Path: "/users/{user}/tokens", Permission: fleet.Self, Kind: Act,
		Summary: "Revoke all tokens of a user but the one that asks; those of others need token:write",
	})
	UserList = op[PageRequest, List[User]](Operation{
		Name: "user.list", Method: http.MethodGet, Path: "/users", Permission: fleet.UserRead, Kind: Question,
		Summary: "List users by name",
	})
	UserShow = op[UserRequest, User](Operation{
		Name: "user.show", Method: http.MethodGet, Path: "/users/{user}", Permission: fleet.UserRead, Kind: Question,
		Summary: "Show one user",
	})
	UserCreate = op[UserCreateRequest, User](Operation{
		Name: "user.create", Method: http.MethodPost, Path: "/users", Permission: fleet.UserWrite, Kind: Act,
		Summary: "Create a user, or give roles to a node's certificate",
	})
	UserEdit = op[UserEditRequest, User](Operation{
		Name: "user.edit", Method: http.MethodPut, Path: "/users/{user}", Permission: fleet.UserWrite, Kind: Act,
		Summary: "Change a user's roles, disable, enable or unlock it",
	})
	UserDelete = op[UserRequest, Nothing](Operation{
		Name: "user.delete", Method: http.MethodDelete, Path: "/users/{user}", Permission: fleet.UserWrite, Kind: Act,
		Summary: "Delete a user and its tokens",
	})
	UserPassword = op[PasswordRequest, Nothing](Operation{
		Name: "user.password", Method: http.MethodPost, Path: "/users/{user}/password", Permission: fleet.Self, Kind: Act,
		Summary: "Set a password, and end the user's other logins; that of others needs user:write",
	})
	RoleList = op[Nothing, List[Role]](Operation{
		Name: "role.list", Method: http.MethodGet, Path: "/roles", Permission: fleet.RoleRead, Kind: Question,
		Summary: "List roles by name",
	})
	RoleShow = op[RoleRequest, Role](Operation{
		Name: "role.show", Method: http.MethodGet, Path: "/roles/{role}", Permission: fleet.RoleRead, Kind: Question,
		Summary: "Show one role",
	})
	RoleCreate = op[RoleCreateRequest, Role](Operation{
		Name: "role.create", Method: http.MethodPost, Path: "/roles", Permission: fleet.RoleWrite, Kind: Act,
		Summary: "Create a role",
	})
	RoleEdit = op[RoleEditRequest, Role](Operation{
		Name: "role.edit", Method: http.MethodPut, Path: "/roles/{role}", Permission: fleet.RoleWrite, Kind: Act,
		Summary: "Replace what a role gives",
	})
	RoleDelete = op[RoleRequest, Nothing](Operation{
		Name: "role.delete", Method: http.MethodDelete, Path: "/roles/{role}", Permission: fleet.RoleWrite, Kind: Act,
		Summary: "Delete a role that nobody has",
	})
)

// accessOperations is the operations of this file, in the order of the reference.
func accessOperations() []Operation {
	return listed(SessionOpen, SessionLink, SessionShow, SessionClose, TokenList, TokenCreate, TokenRevoke, TokenRevokeAll, UserList,
		UserShow, UserCreate, UserEdit, UserDelete, UserPassword, RoleList, RoleShow, RoleCreate, RoleEdit, RoleDelete)
}

// LoginRequest is a name and password, or the code of a link, and what the token is to be.
type LoginRequest struct {
	Name     string   `json:"name"`
	Password string   `json:"password"`
	Code     string   `json:"code,omitempty"`    // of session.link, instead of a name, a password and roles
	Seconds  int64    `json:"seconds,omitempty"` // how long the token is good; 0: the setting token_lifetime
	Roles    []string `json:"roles,omitempty"`   // narrow the token to these; empty: all that the user has
	Label    string   `json:"label,omitempty"`   // what the token is called; empty: it is of a login
}

// IssuedToken is a new token; its text is shown this once.
type IssuedToken struct {
	AccessToken
	Token string `json:"token"`
}

// LoginLink opens the console and logs in.
type LoginLink struct {
	URL       string    `json:"url"` // whoever has it can log in; it is good once
	ExpiresAt time.Time `json:"expires_at"`
}

// AccessToken is what is known of a token.
type AccessToken struct {
	ID        string     `json:"id"`
	User      string     `json:"user"`
	Label     string     `json:"label,omitempty"` // empty: it is of a login
	Roles     []string   `json:"roles,omitempty"` // it is narrowed to these
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"` // missing: never
	UsedAt    *time.Time `json:"used_at,omitempty"`    // late by a minute
}

// Session is who asks, and what they may do.
type Session struct {
	Kind       string        `json:"kind"` // user, node
	Name       string        `json:"name"`
	Roles      []string      `json:"roles"`
	NarrowedTo []string      `json:"narrowed_to,omitempty"` // roles of the token
	TokenID    string        `json:"token_id,omitempty"`
	ExpiresAt  *time.Time    `json:"expires_at,omitempty"`
	Grants     []fleet.Grant `json:"grants"`
}

// TokenListRequest asks for the tokens of a user; @me is who asks, @all everybody.
type TokenListRequest struct {
	User  string `path:"user"`
	After string `query:"after"`
	Limit int    `query:"limit"`
}

// AllUsers stands for everybody's in token.list.
const AllUsers = "@all"

// TokenCreateRequest asks for a token for oneself.
type TokenCreateRequest struct {
	Label   string   `json:"label"`
	Seconds int64    `json:"seconds,omitempty"` // 0: the setting token_lifetime
	Roles   []string `json:"roles,omitempty"`   // narrow it to these
}

// TokenRevokeRequest names a token by id or label.
type TokenRevokeRequest struct {
	User  string `path:"user"`
	Token string `path:"token"`
}

// RevokedTokens counts.
type RevokedTokens struct {
	Revoked int `json:"revoked"`
}

// User is somebody who has roles.
type User struct {
	Name        string     `json:"name"`
	Kind        string     `json:"kind"` // person, node
	Roles       []string   `json:"roles"`
	State       string     `json:"state"` // active, disabled, locked, no password
	CreatedAt   time.Time  `json:"created_at"`
	ChangedAt   *time.Time `json:"changed_at,omitempty"`
	ChangedBy   string     `json:"changed_by,omitempty"`
	LoginAt     *time.Time `json:"login_at,omitempty"`
	LockedUntil *time.Time `json:"locked_until,omitempty"`
}

// UserRequest names a user.
type UserRequest struct {
	User string `path:"user"`
}

// UserCreateRequest describes a new user.
type UserCreateRequest struct {
	Name     string   `json:"name"`           // of a node: its certname
	Kind     string   `json:"kind,omitempty"` // person (if empty), or node
	Roles    []string `json:"roles,omitempty"`
	Password string   `json:"password,omitempty"` // empty: nobody can log in until one is set
}

// UserEditRequest says what changes; missing fields stay.
type UserEditRequest struct {
	User     string    `path:"user"`
	Roles    *[]string `json:"roles,omitempty"`
	HadRoles *[]string `json:"had_roles,omitempty"` // those that Roles are based on: if the user has others by now, nothing is changed
	Disabled *bool     `json:"disabled,omitempty"`
	Unlock   bool      `json:"unlock,omitempty"` // forget failed logins
}

// PasswordRequest sets a password. One's own, @me, needs the old one; by name it
// needs the permission user:write.
type PasswordRequest struct {
	User string `path:"user"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new"`
}

// Role is a list of grants.
type Role struct {
	Name        string        `json:"name"`
	Description string        `json:"description,omitempty"`
	BuiltIn     bool          `json:"built_in,omitempty"`
	Grants      []fleet.Grant `json:"grants"`
	ChangedAt   *time.Time    `json:"changed_at,omitempty"`
	ChangedBy   string        `json:"changed_by,omitempty"`
}

// RoleRequest names a role.
type RoleRequest struct {
	Role string `path:"role"`
}

// RoleCreateRequest describes a new role.
type RoleCreateRequest struct {
	Name        string        `json:"name"`
	Description string        `json:"description,omitempty"`
	Grants      []fleet.Grant `json:"grants"`
}

// RoleEditRequest replaces what a role gives.
type RoleEditRequest struct {
	Role        string        `path:"role"`
	Description string        `json:"description,omitempty"`
	Grants      []fleet.Grant `json:"grants"`
}
