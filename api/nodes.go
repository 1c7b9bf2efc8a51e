package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Nodes, and what is known of each.
var (
	NodeList = op[NodeListRequest, List[Node]](Operation{
		Name: "node.list", Method: http.MethodGet, Path: "/nodes", Permission: fleet.NodeRead, Kind: Question,
		Summary: "List nodes by name, all or those of a condition, group, environment or status",
	})
	NodeSummary = op[NodeSummaryRequest, NodeCounts](Operation{
		Name: "node.summary", Method: http.MethodGet, Path: "/node-summary", Permission: fleet.NodeRead, Kind: Question,
		Summary: "Count nodes by the state of their last run and by connection, all or those that node.list would list",
	})
	NodeWhy = op[NameRequest, NodeReasons](Operation{
		Name: "node.why", Method: http.MethodGet, Path: "/nodes/{name}/why", Permission: fleet.ReportRead, Kind: Question,
		Summary: "Say why a node's last run failed: the first failed resource, what was skipped because of it, and the last run that did not fail",
	})
	NodeChart = op[NodeGraphRequest, ResourceGraph](Operation{
		Name: "node.graph", Method: http.MethodGet, Path: "/nodes/{name}/graph", Permission: fleet.ReportRead, Kind: Question,
		Summary: "Draw what failed in a node's last run and what was skipped because of it, or its whole catalog: boxes, lines, and where they stand",
	})
	NodeShow = op[NameRequest, Node](Operation{
		Name: "node.show", Method: http.MethodGet, Path: "/nodes/{name}", Permission: fleet.NodeRead, Kind: Question,
		Summary: "Show one node",
	})
	NodeFacts = op[NameRequest, Facts](Operation{
		Name: "node.facts", Method: http.MethodGet, Path: "/nodes/{name}/facts", Permission: fleet.NodeRead, Kind: Question,
		Summary: "Show a node's newest facts",
	})
	NodeDeactivate = op[NameRequest, Nothing](Operation{
		Name: "node.deactivate", Method: http.MethodPost, Path: "/nodes/{name}/deactivate", Permission: fleet.NodePurge, Kind: Act,
		Summary: "Say that a node is gone: queries leave it out, and it is purged later unless it comes back",
	})
	NodePurge = op[NameRequest, Nothing](Operation{
		Name: "node.purge", Method: http.MethodDelete, Path: "/nodes/{name}", Permission: fleet.NodePurge, Kind: Act,
		Summary: "Forget a node: facts, catalog and reports",
	})
	NodeCatalog = op[NameRequest, Catalog](Operation{
		Name: "node.catalog", Method: http.MethodGet, Path: "/nodes/{name}/catalog", Permission: fleet.CatalogRead, Kind: Question,
		Summary: "Show a node's newest catalog",
	})
	NodeInputs = op[NameRequest, CatalogInputs](Operation{
		Name: "node.inputs", Method: http.MethodGet, Path: "/nodes/{name}/inputs", Permission: fleet.CatalogRead, Kind: Question,
		Summary: "Say what a node's newest catalog was made of, and whether it still stands",
	})
	CatalogDiff = op[CatalogDiffRequest, CatalogDifference](Operation{
		Name: "catalog.diff", Method: http.MethodPost, Path: "/nodes/{name}/catalog/diff",
		Permission: fleet.CatalogRead, Kind: Question,
		Summary: "Say how a node's newest catalog differs from another one",
	})
)

// nodeOperations is the operations of this file, in the order of the reference.
func nodeOperations() []Operation {
	return listed(
		NodeList, NodeSummary, NodeShow, NodeWhy, NodeChart, NodeFacts, NodeDeactivate, NodePurge, NodePing, NodeCatalog, NodeInputs, NodeLookup, CatalogDiff,
	)
}

// NodeListRequest narrows the list of nodes: what is given must all hold. A page may
// have fewer nodes than its limit, even none, and still a Next.
type NodeListRequest struct {
	Where       string `query:"where"`       // condition in PQL, like: facts.os.family = "Debian" and latest_report_status = "failed"
	Group       string `query:"group"`       // name or id of a group that the nodes are in
	Environment string `query:"environment"` // of the newest facts, catalog or report
	Status      string `query:"status"`      // of the last run: failed (also where the newest catalog does not compile), changed, unchanged, or none
	Connected   string `query:"connected"`   // yes: nodes whose agent is connected now; no: the others; never: those of them that never had one
	State       string `query:"state"`       // of the last run, one of the states of node.summary; commas join several
	Version     string `query:"version"`     // of the code that the catalog is of which they may have: an id, or none; with environment
	Order       string `query:"order"`       // name (if empty), reported (the longest ago first), state (the worst first); a minus before it turns it round
	Delivery    bool   `query:"delivery"`    // each with what it may have, and how what it applied stands to that
	Total       bool   `query:"total"`       // also how many nodes there are on all pages
	After       string `query:"after"`
	Limit       int    `query:"limit"`
}

// NodeSummaryRequest says which nodes are counted, as NodeListRequest does.
type NodeSummaryRequest struct {
	Where       string `query:"where"`
	Group       string `query:"group"`
	Environment string `query:"environment"`
	Status      string `query:"status"`
	Connected   string `query:"connected"`
	State       string `query:"state"`
}

// NodeCounts counts nodes. The states add up to Nodes, and so do the connections.
type NodeCounts struct {
	Nodes       int             `json:"nodes"`
	States      NodeStateCounts `json:"states"`
	Connections NodeConnections `json:"connections"`
	Late        int             `json:"late"` // nodes whose last report is older than an hour; their state stays what it was
}

// NodeStateCounts is how many nodes there are in each state of the last run.
type NodeStateCounts struct {
	Failed     int `json:"failed"`     // a resource failed, or the run did not end, or the newest catalog does not compile
	Corrective int `json:"corrective"` // something had changed on the node that the catalog changed back
	Changed    int `json:"changed"`    // the catalog changed something, and nothing else had
	Pending    int `json:"pending"`    // the run was one of noop, and would have changed something
	Unchanged  int `json:"unchanged"`
	None       int `json:"none"` // it has never reported
}

// NodeConnections is how many nodes have an agent that is connected, had one earlier, or never had one.
type NodeConnections struct {
	Yes   int `json:"yes"`
	No    int `json:"no"`
	Never int `json:"never"`
}

// NodeReasons is why a node's last run failed.
type NodeReasons struct {
	Node         string            `json:"node"`
	State        string            `json:"state"`                   // as in Node
	CompileError *NodeError        `json:"compile_error,omitempty"` // its newest catalog does not compile
	Report       *Report           `json:"report,omitempty"`        // the last run, without its resources and log; missing: there was none
	Failed       []FailedResource  `json:"failed"`                  // in the order of the run, at most MaxReasons
	FailedCount  int               `json:"failed_count"`
	Skipped      []SkippedResource `json:"skipped"` // each behind what it was skipped for, at most MaxReasons
	SkippedCount int               `json:"skipped_count"`
	OtherCatalog bool              `json:"other_catalog,omitempty"` // the node has another catalog by now: Because is made of that one
	Log          []ReportLog       `json:"log"`                     // errors of the run that name no failed resource, at most 20
	LastGood     *Report           `json:"last_good,omitempty"`     // the last run before that did not fail; missing: none is kept
}

// MaxReasons is how many resources node.why lists of each kind.
const MaxReasons = 500

// FailedResource is a resource that failed, with what it said.
type FailedResource struct {
	Resource string    `json:"resource"` // Type[title]
	Property string    `json:"property,omitempty"`
	Message  string    `json:"message"`
	File     string    `json:"file,omitempty"`
	Line     int       `json:"line,omitempty"`
	Time     time.Time `json:"time"`
}

// SkippedResource is a resource that was not looked at, because one failed that it needs.
type SkippedResource struct {
	Resource string `json:"resource"`
	Because  string `json:"because,omitempty"` // the failed or skipped resource that it waited for; empty: the catalog does not say
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
}

// NodeGraphRequest asks for a picture.
type NodeGraphRequest struct {
	Name string `path:"name"`
	Show string `query:"show"` // failed (if empty): what failed and what was skipped for it; catalog: all of the node's catalog
	Open string `query:"open"` // of classes that are one box: those whose resources have boxes of their own; commas join several; all: every class
	Near string `query:"near"` // Type[title]: only this resource, what it waits for, and what waits for it
}

// ResourceGraph is a picture of what waits for what. Of more than 40 resources those of one class are one box. It has at most 500
// boxes, the worst ones, and 2000 lines.
type ResourceGraph struct {
	Node         string         `json:"node"`
	Show         string         `json:"show"`
	Width        int            `json:"width"` // of the picture, in its own units
	Height       int            `json:"height"`
	BoxWidth     int            `json:"box_width"`
	BoxHeight    int            `json:"box_height"`
	Boxes        []ResourceBox  `json:"boxes"` // row by row
	Lines        []ResourceLine `json:"lines"`
	Left         int            `json:"left,omitempty"` // boxes that are too many
	LinesLeft    int            `json:"lines_left,omitempty"`
	Folds        bool           `json:"folds,omitempty"`         // resources of a class are one box
	Cycle        []string       `json:"cycle,omitempty"`         // resources that wait for one another in a circle, each for the next
	OtherCatalog bool           `json:"other_catalog,omitempty"` // the node has another catalog by now than the run was of: what waits for what is of that one
}

// ResourceBox is a resource, or a class with what is in it.
type ResourceBox struct {
	Name   string         `json:"name"`            // Type[title]
	State  string         `json:"state,omitempty"` // failed, skipped, changed, noop, unchanged; missing: the last run does not say
	Folded bool           `json:"folded,omitempty"`
	Counts map[string]int `json:"counts,omitempty"` // of a folded one: its resources by state, with none under an empty name
	File   string         `json:"file,omitempty"`
	Line   int            `json:"line,omitempty"`
	Row    int            `json:"row"`
	X      int            `json:"x"` // the upper left corner
	Y      int            `json:"y"`
}

// ResourceLine says that a box waits for another, or is in it.
type ResourceLine struct {
	From   string   `json:"from"` // what comes first
	To     string   `json:"to"`
	Kinds  []string `json:"kinds"`          // contains, before, required-by, notifies, subscription-of; inside: To ends after From, which is in it
	Edges  int      `json:"edges"`          // of the catalog
	Back   bool     `json:"back,omitempty"` // it closes a circle, and points up
	Points [][]int  `json:"points"`         // from From to To, each x and y
}

// NameRequest names a node or certificate.
type NameRequest struct {
	Name string `path:"name"`
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
	State         string     `json:"state"`            // of the last run, in one word: failed, corrective, changed, pending, unchanged, none; see node.summary
	Noop          bool       `json:"noop,omitempty"`
	Corrective    bool       `json:"corrective,omitempty"`
	DeactivatedAt *time.Time `json:"deactivated_at,omitempty"` // somebody said that it is gone
	ExpiredAt     *time.Time `json:"expired_at,omitempty"`     // it gave no sign of life for node_ttl
	JoinedAt      *time.Time `json:"joined_at,omitempty"`      // when its certificate was issued, of a node that has sent nothing yet
	Pending       int        `json:"pending,omitempty"`        // of a noop run: how many resources would have been changed
	CachedCatalog bool       `json:"cached_catalog,omitempty"` // the last run was given no catalog and applied the one that the node had
	CompileError  *NodeError `json:"compile_error,omitempty"`  // the node's newest catalog does not compile
	Certificate   string     `json:"certificate,omitempty"`    // revoked or expired: nothing lets the node in before it joins again
	Connected     *Connected `json:"connected,omitempty"`      // its agent, if that is connected now
	LastConnected *LastSeen  `json:"last_connected,omitempty"` // its agent, if that was connected earlier and is not now; neither: no agent ever was
	Agent         *AgentTold `json:"agent,omitempty"`          // in node.show: what its tutti agent told of itself; other agents tell nothing
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

// LastSeen is the last connection of a node's agent that is not connected.
type LastSeen struct {
	Since         time.Time `json:"since"`
	Until         time.Time `json:"until"`
	Agent         string    `json:"agent,omitempty"` // as in Connected
	Client        string    `json:"client,omitempty"`
	ClientVersion string    `json:"client_version,omitempty"`
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
