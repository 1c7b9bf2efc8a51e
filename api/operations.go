package api

import (
	"net/http"
	"slices"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Prefix is where the API begins.
const Prefix = "/api/v1"

// Operation is one thing that the API can do.
type Operation struct {
	Name       string // "thing.act", the name in permissions, logs and docs
	Method     string
	Path       string // below Prefix; {name} is a path field of the request
	Permission fleet.Permission
	Summary    string
	Request    any  // zero value of the request type; nil when there is none
	Response   any  // zero value of the response type; nil for 204 No Content
	Upload     bool // the request's body is a stream of bytes, not JSON
}

// The operations. Each is one value, so that a misspelt name does not compile.
var (
	CertificateList   = Operation{"certificate.list", http.MethodGet, "/certificates", fleet.CertificateRead, "List certificates and requests", CertificateListRequest{}, List[Certificate]{}, false}
	CertificateShow   = Operation{"certificate.show", http.MethodGet, "/certificates/{name}", fleet.CertificateRead, "Show one certificate or request", NameRequest{}, Certificate{}, false}
	CertificateSign   = Operation{"certificate.sign", http.MethodPost, "/certificates/{name}/sign", fleet.CertificateWrite, "Sign a certificate request", NameRequest{}, Certificate{}, false}
	CertificateRevoke = Operation{"certificate.revoke", http.MethodPost, "/certificates/{name}/revoke", fleet.CertificateWrite, "Revoke a certificate and close its connections", NameRequest{}, nil, false}
	CertificateClean  = Operation{"certificate.clean", http.MethodDelete, "/certificates/{name}", fleet.CertificateWrite, "Revoke a certificate and forget it, so that the name can be asked for again", NameRequest{}, nil, false}
	RequestClean      = Operation{
		"request.clean", http.MethodDelete, "/certificate-requests", fleet.CertificateWrite,
		"Drop the certificate requests that wait, all or those from one address",
		RequestCleanRequest{},
		RequestCleanResponse{},
		false,
	}
	ServerRotate = Operation{
		"server_certificate.rotate", http.MethodPost, "/server-certificate/rotate", fleet.CertificateWrite,
		"Give the server a new key and certificate, and revoke its former ones", nil,
		Certificate{},
		false,
	}
	JoinTokenCreate = Operation{
		"join_token.create", http.MethodPost, "/join-tokens", fleet.CertificateWrite,
		"Make a one-time password that signs one request",
		JoinTokenRequest{},
		JoinToken{},
		false,
	}

	EnvironmentList   = Operation{"environment.list", http.MethodGet, "/environments", fleet.CodeRead, "List environments and their current versions", nil, List[Version]{}, false}
	EnvironmentDelete = Operation{"environment.delete", http.MethodDelete, "/environments/{environment}", fleet.CodeDeploy, "Remove an environment; nodes that ask for it are told it is unknown", EnvironmentRequest{}, nil, false}
	VersionList       = Operation{"version.list", http.MethodGet, "/environments/{environment}/versions", fleet.CodeRead, "List what was deployed to an environment, newest first", EnvironmentRequest{}, List[Version]{}, false}
	EnvironmentStatus = Operation{"environment.status", http.MethodGet, "/environments/{environment}/status", fleet.CodeRead, "Say how many nodes have a catalog of an environment's current version, and what keeps the others from it", EnvironmentRequest{}, CodeStatus{}, false}
	BlobMissing       = Operation{"blob.missing", http.MethodPost, "/blobs/missing", fleet.CodeDeploy, "Say which of the given digests are not stored", BlobMissingRequest{}, BlobMissingResponse{}, false}
	BlobUpload        = Operation{"blob.upload", http.MethodPost, "/blobs", fleet.CodeDeploy, "Store blobs: a tar archive whose entries are named by their digests", nil, BlobUploadResponse{}, true}

	NodeList       = Operation{"node.list", http.MethodGet, "/nodes", fleet.NodeRead, "List nodes by name, all or those of a condition, group, environment or status", NodeListRequest{}, List[Node]{}, false}
	NodeShow       = Operation{"node.show", http.MethodGet, "/nodes/{name}", fleet.NodeRead, "Show one node", NameRequest{}, Node{}, false}
	NodeFacts      = Operation{"node.facts", http.MethodGet, "/nodes/{name}/facts", fleet.NodeRead, "Show a node's newest facts", NameRequest{}, Facts{}, false}
	NodeDeactivate = Operation{"node.deactivate", http.MethodPost, "/nodes/{name}/deactivate", fleet.NodePurge, "Say that a node is gone: queries leave it out, and it is purged later unless it comes back", NameRequest{}, nil, false}
	NodePurge      = Operation{"node.purge", http.MethodDelete, "/nodes/{name}", fleet.NodePurge, "Forget a node: facts, catalog and reports", NameRequest{}, nil, false}
	NodeInputs     = Operation{"node.inputs", http.MethodGet, "/nodes/{name}/inputs", fleet.CatalogRead, "Say what a node's newest catalog was made of, and whether it still stands", NameRequest{}, CatalogInputs{}, false}
	NodeCatalog    = Operation{"node.catalog", http.MethodGet, "/nodes/{name}/catalog", fleet.CatalogRead, "Show a node's newest catalog", NameRequest{}, Catalog{}, false}
	CatalogDiff    = Operation{"catalog.diff", http.MethodPost, "/nodes/{name}/catalog/diff", fleet.CatalogRead, "Say how a node's newest catalog differs from another one", CatalogDiffRequest{}, CatalogDifference{}, false}

	GroupList    = Operation{"group.list", http.MethodGet, "/groups", fleet.GroupRead, "List classification groups, parents before children", nil, List[Group]{}, false}
	GroupShow    = Operation{"group.show", http.MethodGet, "/groups/{group}", fleet.GroupRead, "Show one group, by name or id", GroupRequest{}, Group{}, false}
	GroupCreate  = Operation{"group.create", http.MethodPost, "/groups", fleet.GroupWrite, "Create a group", GroupCreateRequest{}, Group{}, false}
	GroupEdit    = Operation{"group.edit", http.MethodPut, "/groups/{group}", fleet.GroupWrite, "Replace what a group matches and gives", GroupEditRequest{}, Group{}, false}
	GroupDelete  = Operation{"group.delete", http.MethodDelete, "/groups/{group}", fleet.GroupWrite, "Delete a group that has no others below it", GroupDeleteRequest{}, nil, false}
	GroupNodes   = Operation{"group.nodes", http.MethodGet, "/groups/{group}/nodes", fleet.GroupRead, "List the nodes that are in a group, by name", GroupNodesRequest{}, List[GroupNode]{}, false}
	GroupApply   = Operation{"group.apply", http.MethodPost, "/groups/apply", fleet.GroupWrite, "Create, update and delete groups so that they are as described, all or none", GroupApplyRequest{}, GroupApplyResponse{}, false}
	GroupExplain = Operation{"group.explain", http.MethodGet, "/nodes/{name}/groups", fleet.GroupRead, "Say what groups give a node, which group gave what, and why", NameRequest{}, GroupExplanation{}, false}

	ReportList = Operation{"report.list", http.MethodGet, "/reports", fleet.ReportRead, "List reports, newest first", ReportListRequest{}, List[Report]{}, false}
	ReportShow = Operation{"report.show", http.MethodGet, "/reports/{id}", fleet.ReportRead, "Show one report with its logs and resources", ReportRequest{}, Report{}, false}

	TaskList         = Operation{"task.list", http.MethodGet, "/environments/{environment}/tasks", fleet.TaskRead, "List the tasks of an environment's current version", EnvironmentRequest{}, List[Task]{}, false}
	TaskShow         = Operation{"task.show", http.MethodGet, "/environments/{environment}/tasks/{task}", fleet.TaskRead, "Show a task: its parameters and files", TaskRequest{}, Task{}, false}
	ResourceVariants = Operation{"resource.variants", http.MethodGet, "/resources/{type}/variants", fleet.CatalogRead, "Say with which parameters nodes have a resource, the one that differs most first", ResourceVariantsRequest{}, List[ResourceComparison]{}, false}

	QueryRun = Operation{"query.run", http.MethodPost, "/query", fleet.QueryRun, "Ask the inventory a question in PQL or in PuppetDB's AST language", QueryRequest{}, QueryAnswer{}, false}
)

// Who may do what.
var (
	SessionOpen  = Operation{"session.open", http.MethodPost, "/session", fleet.Open, "Log in: get a token for a name and password", LoginRequest{}, IssuedToken{}, false}
	SessionShow  = Operation{"session.show", http.MethodGet, "/session", fleet.Self, "Say who asks, and what they may do", nil, Session{}, false}
	SessionClose = Operation{"session.close", http.MethodDelete, "/session", fleet.Self, "Log out: revoke the token that asks", nil, nil, false}

	TokenList      = Operation{"token.list", http.MethodGet, "/users/{user}/tokens", fleet.Self, "List a user's tokens; those of others need token:read", TokenListRequest{}, List[AccessToken]{}, false}
	TokenCreate    = Operation{"token.create", http.MethodPost, "/tokens", fleet.Self, "Make a token for oneself", TokenCreateRequest{}, IssuedToken{}, false}
	TokenRevoke    = Operation{"token.revoke", http.MethodDelete, "/users/{user}/tokens/{token}", fleet.Self, "Revoke a token, by id or label; those of others need token:write", TokenRevokeRequest{}, nil, false}
	TokenRevokeAll = Operation{"token.revoke_all", http.MethodDelete, "/users/{user}/tokens", fleet.Self, "Revoke all tokens of a user but the one that asks; those of others need token:write", UserRequest{}, RevokedTokens{}, false}

	UserList     = Operation{"user.list", http.MethodGet, "/users", fleet.UserRead, "List users by name", PageRequest{}, List[User]{}, false}
	UserShow     = Operation{"user.show", http.MethodGet, "/users/{user}", fleet.UserRead, "Show one user", UserRequest{}, User{}, false}
	UserCreate   = Operation{"user.create", http.MethodPost, "/users", fleet.UserWrite, "Create a user, or give roles to a node's certificate", UserCreateRequest{}, User{}, false}
	UserEdit     = Operation{"user.edit", http.MethodPut, "/users/{user}", fleet.UserWrite, "Change a user's roles, disable, enable or unlock it", UserEditRequest{}, User{}, false}
	UserDelete   = Operation{"user.delete", http.MethodDelete, "/users/{user}", fleet.UserWrite, "Delete a user and its tokens", UserRequest{}, nil, false}
	UserPassword = Operation{"user.password", http.MethodPost, "/users/{user}/password", fleet.Self, "Set a password, and end the user's other logins; that of others needs user:write", PasswordRequest{}, nil, false}

	RoleList   = Operation{"role.list", http.MethodGet, "/roles", fleet.RoleRead, "List roles by name", nil, List[Role]{}, false}
	RoleShow   = Operation{"role.show", http.MethodGet, "/roles/{role}", fleet.RoleRead, "Show one role", RoleRequest{}, Role{}, false}
	RoleCreate = Operation{"role.create", http.MethodPost, "/roles", fleet.RoleWrite, "Create a role", RoleCreateRequest{}, Role{}, false}
	RoleEdit   = Operation{"role.edit", http.MethodPut, "/roles/{role}", fleet.RoleWrite, "Replace what a role gives", RoleEditRequest{}, Role{}, false}
	RoleDelete = Operation{"role.delete", http.MethodDelete, "/roles/{role}", fleet.RoleWrite, "Delete a role that nobody has", RoleRequest{}, nil, false}

	AuditList   = Operation{"audit.list", http.MethodGet, "/audit", fleet.AuditRead, "List what was done and refused, newest first", AuditRequest{}, List[AuditEntry]{}, false}
	AuditChain  = Operation{"audit.chain", http.MethodGet, "/audit/chain", fleet.AuditRead, "Export the chain of what was recorded", AuditChainRequest{}, AuditChainPage{}, false}
	AuditVerify = Operation{"audit.verify", http.MethodGet, "/audit/verification", fleet.AuditRead, "Verify the whole audit log", AuditVerifyRequest{}, AuditVerification{}, false}
	AuditSign   = Operation{"audit.sign", http.MethodPost, "/audit/heads", fleet.AuditRead, "Sign the audit log as it is now", nil, AuditHead{}, false}
)

// Changes says whether op is an act, which is recorded, and not only a question.
func (op Operation) Changes() bool {
	return op.Method != http.MethodGet && op.Name != QueryRun.Name && op.Name != BlobMissing.Name && op.Name != CatalogDiff.Name && op.Name != PolicyTest.Name
}

// Operations is every operation, in the order of the reference.
func Operations() []Operation {
	return slices.Concat([]Operation{
		CertificateList, CertificateShow, CertificateSign, CertificateRevoke, CertificateClean, RequestClean, ServerRotate, JoinTokenCreate,
		EnvironmentList, EnvironmentDelete, VersionList, EnvironmentStatus, VersionDeploy, BlobMissing, BlobUpload,
		NodeList, NodeShow, NodeFacts, NodeDeactivate, NodePurge, NodeCatalog, NodeInputs, CatalogDiff,
		GroupList, GroupShow, GroupCreate, GroupEdit, GroupDelete, GroupNodes, GroupApply, GroupExplain,
		ReportList, ReportShow, EventStream, EventList,
		TaskList, TaskShow,
		ResourceVariants,
		QueryRun,
	}, deliveryOperations(), compileOperations(), jobOperations(), appOperations(), previewOperations(), releaseOperations(), noiseOperations(), policyOperations(), []Operation{
		SessionOpen, SessionShow, SessionClose, TokenList, TokenCreate, TokenRevoke, TokenRevokeAll,
		UserList, UserShow, UserCreate, UserEdit, UserDelete, UserPassword,
		RoleList, RoleShow, RoleCreate, RoleEdit, RoleDelete, AuditList, AuditChain, AuditVerify, AuditSign, ServerUsage,
	})
}
