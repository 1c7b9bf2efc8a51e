package api

import (
	"encoding/json"
	"net/http"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Applications that catalogs declare, and which nodes wait for which others.
var (
	AppList = op[AppListRequest, List[App]](Operation{
		Name: "app.list", Method: http.MethodGet, Path: "/applications", Permission: fleet.NodeRead, Kind: Question,
		Summary: "List applications that catalogs declare, with their components in the order of their needs",
	})
	AppGraph = op[AppGraphRequest, NodeGraph](Operation{
		Name: "app.graph", Method: http.MethodGet, Path: "/application-graph", Permission: fleet.NodeRead, Kind: Question,
		Summary: "Show which nodes wait for which others, and why",
	})
)

// appOperations is the operations of this file, in the order of the reference.
func appOperations() []Operation { return listed(AppList, AppGraph) }

// AppListRequest narrows the list of applications.
type AppListRequest struct {
	App         string `query:"app"`         // a model, Shop, or one instance, Shop[eu]
	Environment string `query:"environment"` // empty: of all
}

// App is an instance of an application.
type App struct {
	Name        string          `json:"name"` // Shop[eu]
	Model       string          `json:"model"`
	Instance    string          `json:"instance"`
	Environment string          `json:"environment"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // as they are declared: an object
	Nodes       []string        `json:"nodes"`
	Components  []AppComponent  `json:"components"` // each behind those that it consumes from
	Problems    []string        `json:"problems,omitempty"`
}

// AppComponent is a component on a node.
type AppComponent struct {
	Name     string   `json:"name"` // Shop::Db[eu]
	Node     string   `json:"node"`
	Produces []string `json:"produces"`
	Consumes []string `json:"consumes"`
}

// AppGraphRequest asks for the graph: of all nodes, or of an application's.
type AppGraphRequest struct {
	App string `query:"app"` // a model, Shop, or one instance, Shop[eu]
}

// NodeGraph is which nodes wait for which others. Nodes without edges are not in it, unless
// they are an application's.
type NodeGraph struct {
	Layers   [][]string    `json:"layers"` // the first wait for nobody, the others for some of earlier layers
	Edges    []NodeEdge    `json:"edges"`
	Shared   []SharedNodes `json:"shared,omitempty"`
	Cycle    []string      `json:"cycle,omitempty"` // nodes of which each waits for the next one, the last for the first: there is no order
	Problems []string      `json:"problems,omitempty"`
}

// NodeEdge says that a node waits for another one.
type NodeEdge struct {
	Node     string   `json:"node"`
	WaitsFor string   `json:"waits_for"`
	Why      []string `json:"why"`
}

// SharedNodes is nodes that collect resources of a type from each other: no order follows from that.
type SharedNodes struct {
	Type  string   `json:"type"`
	Nodes []string `json:"nodes"`
}
