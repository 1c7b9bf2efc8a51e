package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Previews: a version compiled for a set of nodes beside what they have, and what it would change.
var (
	PreviewCreate = Operation{"preview.create", http.MethodPost, "/environments/{environment}/previews", fleet.PreviewCreate, "Compile a version for nodes and say what it would change; nothing is released", PreviewCreateRequest{}, Preview{}, false}
	PreviewList   = Operation{"preview.list", http.MethodGet, "/previews", fleet.PreviewRead, "List previews, newest first", PreviewListRequest{}, List[Preview]{}, false}
	PreviewShow   = Operation{"preview.show", http.MethodGet, "/previews/{preview}", fleet.PreviewRead, "Show a preview and its changes, the largest first; while it compiles, those that are known", PreviewShowRequest{}, PreviewReport{}, false}
	PreviewEvents = Operation{"preview.events", http.MethodGet, "/previews/{preview}/events", fleet.PreviewRead, "Stream how far a preview is and the changes that are found, as server-sent events", PreviewEventsRequest{}, PreviewEvent{}, false}
	PreviewNodes  = Operation{"preview.nodes", http.MethodGet, "/previews/{preview}/nodes", fleet.PreviewRead, "List the nodes of a preview, all or those with a change", PreviewNodesRequest{}, List[PreviewNode]{}, false}
	PreviewNodeOf = Operation{"preview.node", http.MethodGet, "/previews/{preview}/nodes/{name}", fleet.PreviewRead, "Say all that a preview changes for one node", PreviewNodeRequest{}, CatalogDifference{}, false}
	PreviewSay    = Operation{"preview.say", http.MethodPost, "/previews/{preview}/remarks", fleet.PreviewCreate, "Acknowledge changes of a preview, withdraw that, or comment on them", PreviewSayRequest{}, List[PreviewRemark]{}, false}
	PreviewCancel = Operation{"preview.cancel", http.MethodPost, "/previews/{preview}/cancel", fleet.PreviewCreate, "Stop working on a preview", PreviewRequest{}, Preview{}, false}
)

// previewOperations is the operations of this file, in the order of the reference.
func previewOperations() []Operation {
	return []Operation{PreviewCreate, PreviewList, PreviewShow, PreviewEvents, PreviewNodes, PreviewNodeOf, PreviewSay, PreviewCancel}
}

// PreviewCreateRequest asks for a preview of code whose files are stored (see blob.upload), or
// of a version that is.
type PreviewCreateRequest struct {
	Environment string          `path:"environment"`
	Manifest    json.RawMessage `json:"manifest,omitempty"` // of code that is not deployed
	Commit      string          `json:"commit,omitempty"`
	Origin      string          `json:"origin,omitempty"`
	Version     string          `json:"version,omitempty"` // instead of a manifest; neither: the current one
	Targets     JobTargets      `json:"targets,omitzero"`  // none: every active node of the environment
	Description string          `json:"description,omitempty"`
}

// PreviewListRequest asks for previews.
type PreviewListRequest struct {
	Environment string `query:"environment"`
	State       string `query:"state"` // compiling, ready or cancelled
	After       string `query:"after"`
	Limit       int    `query:"limit"`
}

// PreviewRequest names a preview.
type PreviewRequest struct {
	Preview string `path:"preview"`
}

// PreviewShowRequest asks for a page of a preview's changes.
type PreviewShowRequest struct {
	Preview string `path:"preview"`
	After   string `query:"after"` // the place of the last change seen
	Limit   int    `query:"limit"`
}

// PreviewEventsRequest asks for a stream. A header Last-Event-ID wins over After.
type PreviewEventsRequest struct {
	Preview string `path:"preview"`
	After   string `query:"after"` // the number of the last event that is known
}

// PreviewEvent is how far a preview is. One that is followed by another one may be left out. The stream ends after the preview
// is ready or cancelled.
type PreviewEvent struct {
	Number  int64         `json:"number"` // grows; the stream can be resumed after it: how many nodes are known, and one more at the end
	Preview Preview       `json:"preview"`
	Changes []ChangeGroup `json:"changes"` // of the largest ones, those that were not sent over this connection yet or have more nodes now; without examples
}

// PreviewNodesRequest asks for nodes of a preview.
type PreviewNodesRequest struct {
	Preview string `path:"preview"`
	State   string `query:"state"`  // of the node's share
	Change  string `query:"change"` // keys of changes, with commas: nodes that have one of them
	After   string `query:"after"`
	Limit   int    `query:"limit"`
}

// PreviewNodeRequest names a node of a preview.
type PreviewNodeRequest struct {
	Preview string `path:"preview"`
	Name    string `path:"name"`
}

// PreviewSayRequest is what somebody says of changes.
type PreviewSayRequest struct {
	Preview string   `path:"preview"`
	Kind    string   `json:"kind"`              // acknowledged, withdrawn or comment
	Changes []string `json:"changes,omitempty"` // keys; of a comment none: the whole preview
	All     bool     `json:"all,omitempty"`     // every change of a ready preview
	Text    string   `json:"text,omitempty"`
}

// Preview is a version compiled for a set of nodes.
type Preview struct {
	ID          string         `json:"id"`
	Environment string         `json:"environment"`
	Version     string         `json:"version"`
	Commit      string         `json:"commit,omitempty"`
	Description string         `json:"description,omitempty"`
	Targets     string         `json:"targets"` // in words
	Author      string         `json:"author"`
	State       string         `json:"state"` // compiling, ready or cancelled
	Reason      string         `json:"reason,omitempty"`
	Nodes       int            `json:"nodes"`
	Counts      map[string]int `json:"counts"`           // nodes by state: waiting, same, reordered, changed, failed, first, unable
	Quiet       int            `json:"quiet,omitempty"`  // of the changed nodes, those of which noise rules hide every change; of a ready preview
	Unseen      []Unseen       `json:"unseen,omitempty"` // what it cannot see
	CreatedAt   time.Time      `json:"created_at"`
	EndedAt     *time.Time     `json:"ended_at,omitempty"`
	Check       *CodeCheck     `json:"check,omitempty"` // in the answer of preview.create: what is wrong with files of a manifest; they are only read
}

// Unseen is something that a preview cannot see, and for how many nodes.
type Unseen struct {
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
}

// PreviewReport is a preview with a page of its changes.
type PreviewReport struct {
	Preview
	Changes []PreviewChange `json:"changes"`
	Hidden  []HiddenChanges `json:"hidden,omitempty"` // by noise rules; the changes are marked
	Remarks []PreviewRemark `json:"remarks"`          // on the whole preview
	Next    string          `json:"next,omitempty"`   // there are more changes: ask with after
}

// HiddenChanges is how many changes a noise rule hides.
type HiddenChanges struct {
	Rule    string `json:"rule"`
	Version int    `json:"version"`
	Changes int    `json:"changes"`
}

// PreviewChange is a change with what was said of it.
type PreviewChange struct {
	ChangeGroup
	Noise        string          `json:"noise,omitempty"`        // the rule that hides it
	Acknowledged string          `json:"acknowledged,omitempty"` // by whom
	Remarks      []PreviewRemark `json:"remarks,omitempty"`
}

// PreviewRemark is what somebody said.
type PreviewRemark struct {
	Change string    `json:"change,omitempty"` // key; empty: the whole preview
	Kind   string    `json:"kind"`
	Text   string    `json:"text,omitempty"`
	Author string    `json:"author"`
	At     time.Time `json:"at"`
}

// PreviewNode is a node's share of a preview.
type PreviewNode struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Catalog  string `json:"catalog,omitempty"` // the previewed one
	Base     string `json:"base,omitempty"`    // what the node had when both were compared
	Reused   bool   `json:"reused,omitempty"`  // nothing was compiled
	Quiet    bool   `json:"quiet,omitempty"`   // it changes, but noise rules hide every change
	Message  string `json:"message,omitempty"` // why it has no catalog
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Volatile string `json:"volatile,omitempty"` // why the catalog may be another one next time
}
