package api

import (
	"encoding/json"
	"time"
)

// List is one page of items.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // give it as after= to get the next page; empty at the end
}

// PageRequest asks for one page.
type PageRequest struct {
	After string `query:"after"`
	Limit int    `query:"limit"` // 1 to 1000; 0 means 100
}

// NodeListRequest narrows the list of nodes: what is given must all hold. A page may
// have fewer nodes than its limit, even none, and still a Next.
type NodeListRequest struct {
	Where       string `query:"where"`       // condition in PQL, like: facts.os.family = "Debian" and latest_report_status = "failed"
	Group       string `query:"group"`       // name or id of a group that the nodes are in
	Environment string `query:"environment"` // of the newest facts, catalog or report
	Status      string `query:"status"`      // of the last run: failed, changed, unchanged, or none
	Delivery    bool   `query:"delivery"`    // each with what it may have, and how what it applied stands to that
	After       string `query:"after"`
	Limit       int    `query:"limit"`
}

// NameRequest names a node or certificate.
type NameRequest struct {
	Name string `path:"name"`
}

// EnvironmentRequest names an environment.
type EnvironmentRequest struct {
	Environment string `path:"environment"`
}

// CertificateListRequest narrows the list of certificates.
type CertificateListRequest struct {
	State string `query:"state"` // requested, signed, revoked; empty: all
}

// Certificate is a certificate or a request for one.
type Certificate struct {
	Name        string            `json:"name"`
	State       string            `json:"state"` // requested, signed, revoked
	Serial      string            `json:"serial,omitempty"`
	Fingerprint string            `json:"fingerprint"` // SHA-256, colon form
	NotBefore   *time.Time        `json:"not_before,omitempty"`
	NotAfter    *time.Time        `json:"not_after,omitempty"`
	Received    *time.Time        `json:"received,omitempty"`   // of a request
	From        string            `json:"from,omitempty"`       // the address that a request came from, or its network
	AltNames    []string          `json:"alt_names,omitempty"`  // DNS:x, IP:y
	Extensions  map[string]string `json:"extensions,omitempty"` // trusted facts: short name or OID to value
	PEM         string            `json:"pem,omitempty"`        // in certificate.show
}

// RequestCleanRequest says which waiting requests to drop.
type RequestCleanRequest struct {
	From string `query:"from"` // those from this address (IPv6: from its /64 network); empty: all
}

// RequestCleanResponse counts them.
type RequestCleanResponse struct {
	Dropped int `json:"dropped"`
}

// JoinTokenRequest asks for a one-time password.
type JoinTokenRequest struct {
	Name    string `json:"name,omitempty"`    // the only certname it is good for; empty: any
	Seconds int64  `json:"seconds,omitempty"` // how long it is good; 0 means a day
}

// JoinToken is a one-time password; it is shown this once.
type JoinToken struct {
	Token         string    `json:"token"`
	Expires       time.Time `json:"expires"`
	CAFingerprint string    `json:"ca_fingerprint"` // SHA-256 of the CA's certificate, by which a node knows the right server
}

// Version is one deployed state of an environment's code.
type Version struct {
	Environment string    `json:"environment"`
	ID          string    `json:"id"`
	Commit      string    `json:"commit,omitempty"`
	Origin      string    `json:"origin,omitempty"`
	Actor       string    `json:"actor,omitempty"`
	Files       int       `json:"files"`
	Bytes       int64     `json:"bytes"`
	DeployedAt  time.Time `json:"deployed_at"`
}

// DeployRequest makes a manifest an environment's version. All its blobs must
// be stored already: see blob.missing and blob.upload.
type DeployRequest struct {
	Environment string          `path:"environment"`
	Commit      string          `json:"commit,omitempty"`
	Origin      string          `json:"origin,omitempty"`
	Manifest    json.RawMessage `json:"manifest"`

	// Code with mistakes is a conflict, whose body has the check. force: it is deployed nevertheless; off: no mistakes are looked for.
	Check string `json:"check,omitempty"`
}

// BlobMissingRequest names at most 10 000 digests.
type BlobMissingRequest struct {
	Digests []string `json:"digests"`
}

// BlobMissingResponse names those that are not stored.
type BlobMissingResponse struct {
	Missing []string `json:"missing"`
}

// BlobUploadResponse counts what was stored.
type BlobUploadResponse struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
}

// Node is what is known of one node.
type Node struct {
	Name          string     `json:"name"`
	Environment   string     `json:"environment,omitempty"`
	FactsAt       *time.Time `json:"facts_at,omitempty"`
	CatalogAt     *time.Time `json:"catalog_at,omitempty"`
	CatalogDigest string     `json:"catalog_digest,omitempty"`
	ReportAt      *time.Time `json:"report_at,omitempty"`
	ReportID      string     `json:"report_id,omitempty"`
	Status        string     `json:"status,omitempty"` // failed, changed, unchanged
	Noop          bool       `json:"noop,omitempty"`
	Corrective    bool       `json:"corrective,omitempty"`
	DeactivatedAt *time.Time `json:"deactivated_at,omitempty"` // somebody said that it is gone
	ExpiredAt     *time.Time `json:"expired_at,omitempty"`     // it gave no sign of life for node_ttl
	Pending       int        `json:"pending,omitempty"`        // of a noop run: how many resources would have been changed
	CachedCatalog bool       `json:"cached_catalog,omitempty"` // the last run was given no catalog and applied the one that the node had
	CompileError  *NodeError `json:"compile_error,omitempty"`  // the node's newest catalog does not compile
	Connected     *Connected `json:"connected,omitempty"`      // its agent, if that is connected now
	Delivery      *Delivered `json:"delivery,omitempty"`       // in node.show, and in node.list if it is asked for: what it may have; see node.delivery
}

// NodeError is why a node's catalog does not compile.
type NodeError struct {
	Cause   string    `json:"cause"`
	Message string    `json:"message"`
	File    string    `json:"file,omitempty"` // below the environment's root
	Line    int       `json:"line,omitempty"`
	Version string    `json:"version"` // of the code
	At      time.Time `json:"at"`
}

// Connected is the connection of a node's agent.
type Connected struct {
	Server        string    `json:"server"`
	Since         time.Time `json:"since"`
	Agent         string    `json:"agent,omitempty"`          // how the agent calls itself, with its version
	Client        string    `json:"client,omitempty"`         // which program that is: tutti-agent, pxp-agent, or what it says
	ClientVersion string    `json:"client_version,omitempty"` // its version; of pxp-agent, which says none, the package that it came with
	Protocol      string    `json:"protocol"`                 // PCP 1 or PCP 2
	Shared        string    `json:"shared,omitempty"`         // why it seems that several agents have the node's certificate
}

// Facts is a node's newest facts.
type Facts struct {
	Name        string          `json:"name"`
	Environment string          `json:"environment"`
	Timestamp   time.Time       `json:"timestamp"`
	ReceivedAt  time.Time       `json:"received_at"`
	Digest      string          `json:"digest"`
	Values      json.RawMessage `json:"values"`
}

// Catalog is a node's newest catalog.
type Catalog struct {
	Name        string     `json:"name"`
	Environment string     `json:"environment"`
	Digest      string     `json:"digest"`
	Version     string     `json:"version"` // of the code
	UUID        string     `json:"uuid"`
	Producer    string     `json:"producer,omitempty"` // the server that compiled it
	Received    bool       `json:"received,omitempty"` // another server did, and sent what it holds: no document is stored
	CompiledAt  time.Time  `json:"compiled_at"`        // of a received one: when it came
	Resources   []Resource `json:"resources"`
	Edges       []Edge     `json:"edges"`
}

// Resource is one resource of a catalog; the values of sensitive parameters are
// never here.
type Resource struct {
	Type       string          `json:"type"`
	Title      string          `json:"title"`
	Tags       []string        `json:"tags,omitempty"`
	Exported   bool            `json:"exported,omitempty"`
	File       string          `json:"file,omitempty"`
	Line       int             `json:"line,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// Edge is a relation between two resources, each "Type[title]".
type Edge struct {
	Source       string `json:"source"`
	Target       string `json:"target"`
	Relationship string `json:"relationship"`
}

// ReportListRequest narrows the list of reports.
type ReportListRequest struct {
	Name   string `query:"name"`
	Status string `query:"status"` // failed, changed, unchanged; empty: all
	After  string `query:"after"`
	Limit  int    `query:"limit"`
}

// ReportRequest names a report by its id, or by a prefix of at least six digits.
type ReportRequest struct {
	ID string `path:"id"`
}

// Report is one run as the node told it. Lists leave out Logs, Metrics and
// Resources.
type Report struct {
	ID              string           `json:"id"`
	Name            string           `json:"name"`
	Environment     string           `json:"environment"`
	Status          string           `json:"status"` // failed, changed, unchanged
	Noop            bool             `json:"noop"`
	NoopPending     bool             `json:"noop_pending"`
	Corrective      bool             `json:"corrective_change"`
	Completed       bool             `json:"completed"`
	PuppetVersion   string           `json:"puppet_version"`
	Version         string           `json:"version"` // of the configuration, as the agent reports it
	TransactionUUID string           `json:"transaction_uuid"`
	CatalogUUID     string           `json:"catalog_uuid,omitempty"`
	CachedCatalog   string           `json:"cached_catalog_status,omitempty"`
	JobID           string           `json:"job_id,omitempty"`
	StartedAt       time.Time        `json:"started_at"`
	Seconds         float64          `json:"seconds"`
	ReceivedAt      time.Time        `json:"received_at"`
	Counts          ReportCounts     `json:"counts"`
	Short           bool             `json:"kept_in_short,omitempty"` // log, metrics and resources are past report_detail_retention
	Logs            []ReportLog      `json:"logs,omitempty"`
	Metrics         json.RawMessage  `json:"metrics,omitempty"`
	Resources       []ReportResource `json:"resources,omitempty"`
}

// ReportCounts sums up a report's resources.
type ReportCounts struct {
	Resources  int `json:"resources"`
	Changed    int `json:"changed"`
	Failed     int `json:"failed"`
	Skipped    int `json:"skipped"`
	Unchanged  int `json:"unchanged"`
	Noop       int `json:"noop"`
	Corrective int `json:"corrective"`
}

// ReportLog is one log line of a run.
type ReportLog struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Source  string    `json:"source,omitempty"`
	Message string    `json:"message"`
	File    string    `json:"file,omitempty"`
	Line    int       `json:"line,omitempty"`
}

// ReportResource is what became of one resource.
type ReportResource struct {
	Type       string        `json:"type"`
	Title      string        `json:"title"`
	Status     string        `json:"status"` // failed, changed, skipped, noop, unchanged
	File       string        `json:"file,omitempty"`
	Line       int           `json:"line,omitempty"`
	Corrective bool          `json:"corrective,omitempty"`
	Seconds    float64       `json:"seconds,omitempty"`
	Events     []ReportEvent `json:"events,omitempty"`
}

// ReportEvent is one property that changed, would change, or could not.
type ReportEvent struct {
	Property string          `json:"property,omitempty"`
	Status   string          `json:"status"` // success, failure, noop, audit
	Previous json.RawMessage `json:"previous,omitempty"`
	Desired  json.RawMessage `json:"desired,omitempty"`
	Message  string          `json:"message,omitempty"`
	Time     time.Time       `json:"time"`
}

// ResourceVariantsRequest asks how a resource differs over the fleet.
type ResourceVariantsRequest struct {
	Type  string `path:"type"`   // like File or Apache::Vhost
	Title string `query:"title"` // empty: every title, without the parameters
	Where string `query:"where"` // condition on the nodes, in PQL
}

// ResourceComparison is one resource and the parameters that nodes have it with.
type ResourceComparison struct {
	Type      string            `json:"type"`
	Title     string            `json:"title"`
	Nodes     int               `json:"nodes"`     // that have it
	Differing []string          `json:"differing"` // parameters that are not the same everywhere
	Variants  []ResourceVariant `json:"variants"`  // the one that most nodes have first
}

// ResourceVariant is one set of parameters.
type ResourceVariant struct {
	Nodes      int             `json:"nodes"`
	Examples   []string        `json:"examples"`             // some of these nodes
	Parameters json.RawMessage `json:"parameters,omitempty"` // an object; those that are the same everywhere, too
}

// QueryRequest is a question to the inventory.
type QueryRequest struct {
	Query string `json:"query"`           // PQL, or JSON of the AST language
	Total bool   `json:"total,omitempty"` // also count the rows without limit and offset
}

// QueryAnswer is what the inventory answers. It comes as it is found, its members in
// this order: Client.Rows reads it row by row.
type QueryAnswer struct {
	Columns []string          `json:"columns"`
	Total   *int64            `json:"total,omitempty"`   // if it was asked for
	Rows    []json.RawMessage `json:"rows"`              // objects with those columns
	Problem *Problem          `json:"problem,omitempty"` // why the rows ended early; without it they are all
}

// Problem is the body of every error answer.
type Problem struct {
	Kind       string `json:"kind"`    // of fault.Kind
	Message    string `json:"message"` // what, why, what to do
	RequestID  string `json:"request_id,omitempty"`
	RetryAfter int64  `json:"retry_after,omitempty"` // seconds

	Check *CodeCheck `json:"check,omitempty"` // of code that was refused for its mistakes
}
