package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Operations on the catalogs that nodes may have.
var (
	NodeDelivery = op[NameRequest, Delivery](Operation{
		Name: "node.delivery", Method: http.MethodGet, Path: "/nodes/{name}/delivery",
		Permission: fleet.CatalogRead, Kind: Question,
		Summary: "Say what a node may have, why, what it applied last, and what was released to it",
	})
	NodeModeSet = op[NodeModeRequest, ModeSwitched](Operation{
		Name: "node.mode", Method: http.MethodPut, Path: "/nodes/{name}/mode", Permission: fleet.CatalogRelease, Kind: Act,
		Summary: "Set the delivery mode of a node, or take it away",
	})
	NodePin = op[NodePinRequest, Nothing](Operation{
		Name: "node.pin", Method: http.MethodPut, Path: "/nodes/{name}/pin", Permission: fleet.CatalogRelease, Kind: Act,
		Summary: "Keep a node at the generation that it has",
	})
	NodeUnpin = op[NameRequest, Nothing](Operation{
		Name: "node.unpin", Method: http.MethodDelete, Path: "/nodes/{name}/pin", Permission: fleet.CatalogRelease, Kind: Act,
		Summary: "Let releases reach a node again",
	})
	GroupModeSet = op[GroupModeRequest, ModeSwitched](Operation{
		Name: "group.mode", Method: http.MethodPut, Path: "/groups/{group}/mode", Permission: fleet.CatalogRelease, Kind: Act,
		Summary: "Set the delivery mode of a group's nodes, or take it away",
	})
	ModeList = op[Nothing, List[ModeSet]](Operation{
		Name: "mode.list", Method: http.MethodGet, Path: "/delivery-modes", Permission: fleet.CatalogRead, Kind: Question,
		Summary: "List the delivery modes that are set, of groups and of nodes",
	})
	CatalogRelease = op[CatalogReleaseRequest, CatalogReleased](Operation{
		Name: "catalog.release", Method: http.MethodPost, Path: "/catalogs/release", Permission: fleet.CatalogRelease, Kind: Act,
		Summary: "Release the catalogs of a version to nodes, or only prepare them",
	})
)

// Operations on catalogs that the brake holds.
var (
	CatalogLosses = op[CatalogLossRequest, List[CatalogLoss]](Operation{
		Name: "catalog.losses", Method: http.MethodGet, Path: "/catalogs/losses", Permission: fleet.CatalogRead, Kind: Question,
		Summary: "List nodes whose newest catalog is held because it lost its resources, or was given with a warning",
	})
	NodeLet = op[NameRequest, CatalogLet](Operation{
		Name: "node.let", Method: http.MethodPost, Path: "/nodes/{name}/catalog/let", Permission: fleet.CatalogRelease, Kind: Act,
		Summary: "Let a node's held catalog go",
	})
	CatalogLetGo = op[CatalogLetRequest, CatalogLet](Operation{
		Name: "catalog.let", Method: http.MethodPost, Path: "/catalogs/let", Permission: fleet.CatalogRelease, Kind: Act,
		Summary: "Let go all catalogs of a version that are held",
	})
)

func deliveryOperations() []Operation {
	return listed(CatalogRelease, NodeDelivery, NodeModeSet, NodePin, NodeUnpin, GroupModeSet, ModeList, CatalogLosses, NodeLet, CatalogLetGo)
}

// Delivery is what a node may have.
type Delivery struct {
	Name        string       `json:"name"`
	Mode        string       `json:"mode"`      // live, released
	ModeFrom    string       `json:"mode_from"` // node, group, setting
	ModeGroup   string       `json:"mode_group,omitempty"`
	Pointer     *Pointer     `json:"pointer,omitempty"` // missing: it may have nothing yet
	Why         string       `json:"why,omitempty"`     // it may have nothing
	State       string       `json:"state"`             // current, behind, foreign, unknown: what it applied last against what it may have
	Applied     *Applied     `json:"applied,omitempty"`
	Pin         *Pin         `json:"pin,omitempty"`
	Generations []Generation `json:"generations"` // that are kept, newest first
}

// Delivered is what a node may have, in short.
type Delivered struct {
	Mode       string `json:"mode"`      // live, released
	ModeFrom   string `json:"mode_from"` // node, group, setting
	ModeGroup  string `json:"mode_group,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	State      string `json:"state"` // current, behind, foreign, unknown
	Pinned     bool   `json:"pinned,omitempty"`

	Loss *CatalogLoss `json:"loss,omitempty"` // the newest catalog is held, or was given with a warning
}

// CatalogLossRequest picks catalogs that lost resources.
type CatalogLossRequest struct {
	Environment string `query:"environment"`
	Version     string `query:"version"` // of the code, or the beginning of it
	Warned      bool   `query:"warned"`  // also those that were given with a warning
}

// CatalogLoss is a catalog that lost resources, compared with the one that its node had.
type CatalogLoss struct {
	Node            string    `json:"node"`
	Held            bool      `json:"held"`    // the node keeps the one before; else it was given this one, with a warning
	Catalog         string    `json:"catalog"` // that lost them
	Environment     string    `json:"environment"`
	Version         string    `json:"version"`
	Before          string    `json:"before"` // the catalog that the node had, and keeps while this one is held
	EnvironmentThen string    `json:"before_environment"`
	VersionThen     string    `json:"before_version"`
	Was             int       `json:"resources_before"` // besides stages, classes and exported ones
	Left            int       `json:"resources"`
	At              time.Time `json:"at"`
	Text            string    `json:"text"` // what happened and what to do, for people
}

// CatalogLetRequest lets held catalogs go.
type CatalogLetRequest struct {
	Version string `json:"version"` // of the code, or six digits of it at least
}

// CatalogLet says whose catalogs were let go.
type CatalogLet struct {
	Nodes []string `json:"nodes"`
}

// Pointer is which catalog a node may have, as it is told.
type Pointer struct {
	Catalog     string    `json:"catalog"`
	Environment string    `json:"environment"`
	Version     string    `json:"version"`
	Generation  int64     `json:"generation,omitempty"`
	UUID        string    `json:"uuid"`
	CompiledAt  time.Time `json:"compiled_at"`
}

// Applied is the catalog that a node last said it applied, other than in noop mode.
type Applied struct {
	UUID       string    `json:"uuid"`
	CodeID     string    `json:"code_id,omitempty"`
	Catalog    string    `json:"catalog,omitempty"`    // missing: no catalog known here has this uuid
	Generation int64     `json:"generation,omitempty"` // missing: no kept one has it
	At         time.Time `json:"at"`
}

// Pin is why a node takes no releases.
type Pin struct {
	At  time.Time `json:"at"`
	By  string    `json:"by"`
	Why string    `json:"why"`
}

// Generation is a catalog that was released to a node.
type Generation struct {
	Number      int64     `json:"number"`
	Catalog     string    `json:"catalog"`
	Environment string    `json:"environment"`
	Version     string    `json:"version"`
	UUID        string    `json:"uuid"`
	CompiledAt  time.Time `json:"compiled_at"`
	Release     int64     `json:"release,omitempty"`
	At          time.Time `json:"at"`
	By          string    `json:"by"`
	Why         string    `json:"why,omitempty"`
}

// NodeModeRequest sets a node's mode.
type NodeModeRequest struct {
	Name string `path:"name"`
	Mode string `json:"mode"` // live, released; empty: that of its groups or of the server
}

// GroupModeRequest sets the mode of a group's nodes.
type GroupModeRequest struct {
	Group string `path:"group"` // name or id
	Mode  string `json:"mode"`  // live, released; empty: that of groups above or of the server
}

// ModeSwitched says what came of a mode.
type ModeSwitched struct {
	Switched int `json:"switched"` // nodes that are in another mode now
}

// NodePinRequest keeps a node where it is.
type NodePinRequest struct {
	Name string `path:"name"`
	Why  string `json:"why"` // for those who wonder
}

// ModeSet is a mode that is set for a node or a group.
type ModeSet struct {
	Node  string    `json:"node,omitempty"`
	Group string    `json:"group,omitempty"` // name
	Mode  string    `json:"mode"`
	At    time.Time `json:"at"`
	By    string    `json:"by"`
}

// CatalogReleaseRequest releases the catalogs of a version. Catalogs that are missing are
// compiled first: ask with DryRun until none is compiling, then without it.
type CatalogReleaseRequest struct {
	Targets     JobTargets `json:"targets"`
	Environment string     `json:"environment,omitempty"` // empty: each node's own
	Version     string     `json:"version"`               // id or commit, or six digits of it at least
	Ticket      string     `json:"ticket,omitempty"`      // of the answer before, so that nothing is compiled twice
	DryRun      bool       `json:"dry_run,omitempty"`     // prepare, release nothing
	Expect      string     `json:"expect,omitempty"`      // digest of a dry run: if it would be another release by now, nothing is released
	Apply       string     `json:"apply,omitempty"`       // now, scheduled; empty: as the server is set
	Why         string     `json:"why,omitempty"`         // for those who look at the generations later
}

// CatalogReleased is what was released, or would be.
type CatalogReleased struct {
	Ticket string         `json:"ticket"`
	Digest string         `json:"digest"` // of what is ready; see CatalogReleaseRequest.Expect
	Counts map[string]int `json:"counts"` // nodes by state
	Nodes  []NodeRelease  `json:"nodes"`
}

// NodeRelease is one node of a release.
type NodeRelease struct {
	Node        string `json:"node"`
	State       string `json:"state"` // ready, compiling, released, unchanged, failed, refused
	Environment string `json:"environment"`
	Version     string `json:"version,omitempty"`
	Catalog     string `json:"catalog,omitempty"`    // that is released, or would be
	Before      string `json:"before,omitempty"`     // the catalog that the node had
	Generation  int64  `json:"generation,omitempty"` // that the node has now
	Reason      string `json:"reason,omitempty"`     // of failed and refused
}
