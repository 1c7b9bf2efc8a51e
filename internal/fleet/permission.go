package fleet

// Permission is a right that an operation asks for: "thing:act".
type Permission string

// The permissions, one for each thing and act.
const (
	CertificateRead  Permission = "certificate:read"
	CertificateWrite Permission = "certificate:write"
	CodeRead         Permission = "code:read"
	CodeDeploy       Permission = "code:deploy"
	NodeRead         Permission = "node:read"
	NodePurge        Permission = "node:purge"
	GroupRead        Permission = "group:read"
	GroupWrite       Permission = "group:write"
	ReportRead       Permission = "report:read"
	CatalogRead      Permission = "catalog:read"
	QueryRun         Permission = "query:run"
	TaskRead         Permission = "task:read"
	TokenWrite       Permission = "token:write"
)
