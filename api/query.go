package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Questions to the inventory.
var (
	ResourceVariants = op[ResourceVariantsRequest, List[ResourceComparison]](Operation{
		Name: "resource.variants", Method: http.MethodGet, Path: "/resources/{type}/variants",
		Permission: fleet.CatalogRead, Kind: Question,
		Summary: "Say with which parameters nodes have a resource, the one that differs most first",
	})
	QueryRun = op[QueryRequest, QueryAnswer](Operation{
		Name: "query.run", Method: http.MethodPost, Path: "/query", Permission: fleet.QueryRun, Kind: Question,
		Summary: "Ask the inventory a question in PQL or in PuppetDB's AST language",
	})
	QueryWords = op[QueryWordsRequest, QueryWordList](Operation{
		Name: "query.words", Method: http.MethodGet, Path: "/query-words", Permission: fleet.QueryRun, Kind: Question,
		Summary: "List what may follow the beginning of a query, or of a condition on nodes",
	})
	QueryList = op[Nothing, List[SavedQuery]](Operation{
		Name: "query.list", Method: http.MethodGet, Path: "/queries", Permission: fleet.QueryRun, Kind: Question,
		Summary: "List the saved queries by name: those that are shared, and the caller's own",
	})
	QueryShow = op[SavedQueryRequest, SavedQuery](Operation{
		Name: "query.show", Method: http.MethodGet, Path: "/queries/{saved}", Permission: fleet.QueryRun, Kind: Question,
		Summary: "Show a saved query",
	})
	QuerySave = op[QuerySaveRequest, SavedQuery](Operation{
		Name: "query.save", Method: http.MethodPut, Path: "/queries/{saved}", Permission: fleet.QueryRun, Kind: Act,
		Summary: "Save a query under a name; only its owner can change it",
	})
	QueryRemove = op[SavedQueryRequest, SavedQuery](Operation{
		Name: "query.remove", Method: http.MethodDelete, Path: "/queries/{saved}", Permission: fleet.QueryRun, Kind: Act,
		Summary: "Remove a saved query of one's own",
	})
)

// queryOperations is the operations of this file, in the order of the reference.
func queryOperations() []Operation {
	return listed(ResourceVariants, QueryRun, QueryWords, QueryList, QueryShow, QuerySave, QueryRemove)
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
	Most  int    `json:"most,omitempty"`  // end after so many rows, and say whether there are more; 0: all come
}

// QueryAnswer is what the inventory answers. It comes as it is found, its members in
// this order: Client.Rows reads it row by row.
type QueryAnswer struct {
	Columns []string          `json:"columns"`
	Total   *int64            `json:"total,omitempty"`   // if it was asked for
	Rows    []json.RawMessage `json:"rows"`              // objects with those columns
	More    bool              `json:"more,omitempty"`    // there are more rows than were asked for
	Problem *Problem          `json:"problem,omitempty"` // why the rows ended early; without it they are all
}

// QueryWordsRequest is the beginning of a query, up to where somebody writes.
type QueryWordsRequest struct {
	Text      string `query:"text"`
	Condition bool   `query:"condition"` // it is the beginning of a condition on nodes
}

// QueryWordList is what may stand where a query ends.
type QueryWordList struct {
	Begun string      `json:"begun"` // the end of the text, which a word takes the place of
	Words []QueryWord `json:"words"`
}

// QueryWord is one thing that may stand there.
type QueryWord struct {
	Text string `json:"text"`
	Kind string `json:"kind"` // entity, field, function, operator, word
}

// SavedQueryRequest names a saved query.
type SavedQueryRequest struct {
	Saved string `path:"saved"`
}

// QuerySaveRequest saves a query.
type QuerySaveRequest struct {
	Saved       string `path:"saved"`
	Query       string `json:"query"` // PQL, or JSON of the AST language
	Description string `json:"description,omitempty"`
	Private     bool   `json:"private,omitempty"` // nobody else sees it
}

// SavedQuery is a question that has a name.
type SavedQuery struct {
	Name        string    `json:"name"`
	Query       string    `json:"query"`
	Description string    `json:"description,omitempty"`
	Private     bool      `json:"private,omitempty"`
	Owner       string    `json:"owner"`
	ChangedAt   time.Time `json:"changed_at"`
}
