package api

import (
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Me stands for the name of the user who asks, in paths.
const Me = "@me"

// LoginRequest is a name and password, and what the token is to be.
type LoginRequest struct {
	Name     string   `json:"name"`
	Password string   `json:"password"`
	Seconds  int64    `json:"seconds,omitempty"` // how long the token is good; 0: the setting token_lifetime
	Roles    []string `json:"roles,omitempty"`   // narrow the token to these; empty: all that the user has
}

// IssuedToken is a new token; its text is shown this once.
type IssuedToken struct {
	AccessToken
	Token string `json:"token"`
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

// AuditRequest chooses entries of the audit log.
type AuditRequest struct {
	Actor     string `query:"actor"`
	Operation string `query:"operation"` // ending in *: by its beginning
	Since     string `query:"since"`     // RFC 3339
	Until     string `query:"until"`
	Outcome   string `query:"outcome"` // started, done, failed, denied, or failing: failed and denied
	After     string `query:"after"`
	Limit     int    `query:"limit"`
}

// AuditEntry is an act, or a refusal.
type AuditEntry struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"` // of the actor: user, node, anonymous
	Actor     string    `json:"actor,omitempty"`
	TokenID   string    `json:"token_id,omitempty"`
	Operation string    `json:"operation"`
	Object    string    `json:"object,omitempty"`
	Remote    string    `json:"remote,omitempty"`
	RequestID string    `json:"request_id,omitempty"`
	Outcome   string    `json:"outcome"` // started (its end was not seen), done, failed, denied
	Detail    string    `json:"detail,omitempty"`
	Mark      string    `json:"mark,omitempty"` // break-glass: by the token in the data directory
}

// AuditChainRequest asks for lines of the audit log's chain, in order.
type AuditChainRequest struct {
	After int64  `query:"after"` // number of a line; 0: from the first
	Since string `query:"since"` // RFC 3339; without after: begin with the lines from then on
	Limit int    `query:"limit"`
}

// AuditChainPage is some lines of the chain. What each says is signed by later heads.
type AuditChainPage struct {
	Lines []AuditLine `json:"lines"`
	Heads []AuditHead `json:"heads"` // of these lines
	Next  int64       `json:"next"`  // the after of the next page; 0: this is the last one
}

// AuditLine is a line of the chain. Its text is JSON, and has the digest of the line before it.
type AuditLine struct {
	Text   string `json:"text"`
	Digest string `json:"digest"` // SHA-256 of the text
}

// AuditHead is the signature of the CA's key over a line and so over all before it. What is signed is "tutti audit head", the
// line's number, its digest and the time, a line each.
type AuditHead struct {
	Line      int64     `json:"line"`
	Digest    string    `json:"digest"`
	At        time.Time `json:"at"`
	Signer    string    `json:"signer"` // SHA-256 of the CA's certificate
	Signature []byte    `json:"signature"`
}

// AuditVerifyRequest asks whether the audit log is what was recorded.
type AuditVerifyRequest struct {
	Known string `query:"known"` // LINE:DIGEST, as somebody wrote it down: the chain must still have it
}

// AuditVerification is what was found. Lines after signed_through are of no head yet.
type AuditVerification struct {
	Whole         bool   `json:"whole"`
	Problem       string `json:"problem,omitempty"` // the first thing that is wrong
	First         int64  `json:"first"`             // line; older ones are past audit_retention
	Last          int64  `json:"last"`
	Lines         int    `json:"lines"`
	Heads         int    `json:"heads"`
	SignedThrough int64  `json:"signed_through"`
	Digest        string `json:"digest,omitempty"` // of the last line
}
