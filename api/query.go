package api

import (
	"encoding/json"
	"net/http"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Questions to the inventory.
var (
	ResourceVariants = Op[ResourceVariantsRequest, List[ResourceComparison]]{
		Name: "resource.variants", Method: http.MethodGet, Path: "/resources/{type}/variants",
		Permission: fleet.CatalogRead, Kind: Question,
		Summary: "Say with which parameters nodes have a resource, the one that differs most first",
	}
	QueryRun = Op[QueryRequest, QueryAnswer]{
		Name: "query.run", Method: http.MethodPost, Path: "/query", Permission: fleet.QueryRun, Kind: Question,
		Summary: "Ask the inventory a question in PQL or in PuppetDB's AST language",
	}
)

// queryOperations is the operations of this file, in the order of the reference.
func queryOperations() []Operation {
	return listed(ResourceVariants, QueryRun)
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
