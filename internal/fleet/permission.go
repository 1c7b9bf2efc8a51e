package fleet

import "slices"

// Permission is a right that an operation asks for: "thing:act".
type Permission string

// The permissions, one for each thing and act.
const (
	CertificateRead  Permission = "certificate:read"
	CertificateWrite Permission = "certificate:write"
	CodeRead         Permission = "code:read"
	CodeDeploy       Permission = "code:deploy"
	SourceWrite      Permission = "source:write" // say which git repositories environments come from, and with which keys
	NodeRead         Permission = "node:read"
	NodePurge        Permission = "node:purge"
	NodeAct          Permission = "node:act"     // speak as a node that one is not
	NodeControl      Permission = "node:control" // send nodes orders over PCP
	GroupRead        Permission = "group:read"
	GroupWrite       Permission = "group:write"
	ReportRead       Permission = "report:read"
	CatalogRead      Permission = "catalog:read"
	CatalogRelease   Permission = "catalog:release" // decide what nodes may have
	PreviewRead      Permission = "preview:read"
	PreviewCreate    Permission = "preview:create"
	ReleaseRead      Permission = "release:read"
	ReleaseCreate    Permission = "release:create"  // release previewed catalogs to nodes, roll back
	ReleaseControl   Permission = "release:control" // pause, resume, promote, abort
	ReleaseApprove   Permission = "release:approve"
	PolicyRead       Permission = "policy:read"
	PolicyWrite      Permission = "policy:write"  // say which changes are forbidden, approved first, or hidden
	CompileRun       Permission = "compile:run"   // want catalogs at the front of the queue
	CompilePause     Permission = "compile:pause" // stop and resume compiling
	QueryRun         Permission = "query:run"
	InventoryWrite   Permission = "inventory:write" // PuppetDB's commands: facts, catalogs and reports of any node
	TaskRead         Permission = "task:read"
	PuppetRun        Permission = "puppet:run"
	TaskRun          Permission = "task:run"
	ActionAsk        Permission = "action:ask" // call actions that only read
	ActionRun        Permission = "action:run" // call any action
	CommandRun       Permission = "command:run"
	ScriptRun        Permission = "script:run"
	FileSend         Permission = "file:send"
	JobRead          Permission = "job:read"
	JobStop          Permission = "job:stop"
	MetricsRead      Permission = "metrics:read"
	ServerDrain      Permission = "server:drain" // have one of several servers leave its work to the others; settle what one could not deliver
	TokenRead        Permission = "token:read"   // of others
	TokenWrite       Permission = "token:write"
	UserRead         Permission = "user:read"
	UserWrite        Permission = "user:write"
	RoleRead         Permission = "role:read"
	RoleWrite        Permission = "role:write"
	AuditRead        Permission = "audit:read"
)

// Permissions that no role can give.
const (
	Everything Permission = "*"    // in a grant: every permission
	Open       Permission = "open" // of an operation: anybody may, also without a token
	Self       Permission = "self" // of an operation: every user may, for themselves
)

// Permissions is every permission that a role can give, in order of the reference.
func Permissions() []Permission {
	return []Permission{
		CertificateRead, CertificateWrite, CodeRead, CodeDeploy, SourceWrite, NodeRead, NodePurge, NodeAct, NodeControl, GroupRead, GroupWrite,
		ReportRead, CatalogRead, CatalogRelease, CompileRun, CompilePause, PreviewRead, PreviewCreate, PolicyRead, PolicyWrite, ReleaseRead, ReleaseCreate,
		ReleaseControl, ReleaseApprove, QueryRun, InventoryWrite, TaskRead,
		PuppetRun, TaskRun, ActionAsk, ActionRun, CommandRun, ScriptRun, FileSend, JobRead, JobStop, MetricsRead, ServerDrain, TokenRead, TokenWrite, UserRead,
		UserWrite, RoleRead, RoleWrite, AuditRead,
	}
}

// IsPermission says whether a grant may name p.
func IsPermission(p Permission) bool { return p == Everything || slices.Contains(Permissions(), p) }
