package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Previews: a version compiled for a set of nodes beside what they have, and what it would change.
var (
	PreviewCreate = op[PreviewCreateRequest, Preview](Operation{
		Name: "preview.create", Method: http.MethodPost, Path: "/environments/{environment}/previews",
		Permission: fleet.PreviewCreate, Kind: Act,
		Summary: "Compile a version for nodes and say what it would change; nothing is released",
	})
	PreviewList = op[PreviewListRequest, List[Preview]](Operation{
		Name: "preview.list", Method: http.MethodGet, Path: "/previews", Permission: fleet.PreviewRead, Kind: Question,
		Summary: "List previews, newest first",
	})
	PreviewShow = op[PreviewShowRequest, PreviewReport](Operation{
		Name: "preview.show", Method: http.MethodGet, Path: "/previews/{preview}", Permission: fleet.PreviewRead, Kind: Question,
		Summary: "Show a preview and its changes, the largest first; while it compiles, those that are known",
	})
	PreviewEvents = stream[PreviewEventsRequest, PreviewEvent](Operation{
		Name: "preview.events", Method: http.MethodGet, Path: "/previews/{preview}/events",
		Permission: fleet.PreviewRead, Kind: Question,
		Summary: "Stream how far a preview is and the changes that are found, as server-sent events",
	})
	PreviewNodes = op[PreviewNodesRequest, List[PreviewNode]](Operation{
		Name: "preview.nodes", Method: http.MethodGet, Path: "/previews/{preview}/nodes",
		Permission: fleet.PreviewRead, Kind: Question,
		Summary: "List the nodes of a preview, all or those with a change",
	})
	PreviewNodeOf = op[PreviewNodeRequest, CatalogDifference](Operation{
		Name: "preview.node", Method: http.MethodGet, Path: "/previews/{preview}/nodes/{name}",
		Permission: fleet.PreviewRead, Kind: Question,
		Summary: "Say all that a preview changes for one node",
	})
	PreviewWarnings = op[PreviewRequest, PreviewWarned](Operation{
		Name: "preview.warnings", Method: http.MethodGet, Path: "/previews/{preview}/warnings",
		Permission: fleet.PreviewRead, Kind: Question,
		Summary: "List what the compiler warns of in a preview's catalogs, what is new first",
	})
	PreviewSay = op[PreviewSayRequest, List[PreviewRemark]](Operation{
		Name: "preview.say", Method: http.MethodPost, Path: "/previews/{preview}/remarks",
		Permission: fleet.PreviewCreate, Kind: Act,
		Summary: "Acknowledge changes of a preview, withdraw that, or comment on them",
	})
	PreviewCancel = op[PreviewRequest, Preview](Operation{
		Name: "preview.cancel", Method: http.MethodPost, Path: "/previews/{preview}/cancel",
		Permission: fleet.PreviewCreate, Kind: Act,
		Summary: "Stop working on a preview",
	})
)

// previewOperations is the operations of this file, in the order of the reference.
func previewOperations() []Operation {
	return listed(PreviewCreate, PreviewList, PreviewShow, PreviewEvents, PreviewNodes, PreviewNodeOf, PreviewWarnings, PreviewSay, PreviewCancel)
}

// PreviewCreateRequest asks for a preview of code whose files are stored (see blob.upload), or
// of a version that is.
type PreviewCreateRequest struct {
	Environment string          `path:"environment"`
	Manifest    json.RawMessage `json:"manifest,omitempty"` // of code that is not deployed
	Commit      string          `json:"commit,omitempty"`
	Origin      string          `json:"origin,omitempty"`
	Version     string          `json:"version,omitempty"` // instead of a manifest; neither: the current one
	Engine      string          `json:"engine,omitempty"`  // that compiles it; empty: the environment's, default: the server's default
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
	Engine      string         `json:"engine,omitempty"` // the Puppet installation that the version names; empty: the server's default, or a list of previews
	Commit      string         `json:"commit,omitempty"`
	Description string         `json:"description,omitempty"`
	Targets     string         `json:"targets"` // in words
	Author      string         `json:"author"`
	State       string         `json:"state"` // compiling, ready or cancelled
	Reason      string         `json:"reason,omitempty"`
	Nodes       int            `json:"nodes"`
	Counts      map[string]int `json:"counts"`          // nodes by state: waiting, same, reordered, changed, failed, first, unable
	Quiet       int            `json:"quiet,omitempty"` // of the changed nodes, those of which noise rules hide every change; of a ready preview
	// of the changed nodes, those that change in noise of the engine only, beside what noise rules hide; of a ready preview
	EngineOnly int        `json:"engine_only,omitempty"`
	Unseen     []Unseen   `json:"unseen,omitempty"` // what it cannot see
	CreatedAt  time.Time  `json:"created_at"`
	EndedAt    *time.Time `json:"ended_at,omitempty"`
	// in the answer of preview.create: what is wrong with files of a manifest, or of a version for another engine; they are only read
	Check *CodeCheck `json:"check,omitempty"`
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

// PreviewWarned is what the compiler warns of in a preview's catalogs.
type PreviewWarned struct {
	Items   []PreviewWarning `json:"items"`
	Unknown int              `json:"unknown"` // nodes with a catalog of which nobody knows any more what was written for it
}

// PreviewWarning is something that the compiler warns of in a preview's catalogs.
type PreviewWarning struct {
	Level    string   `json:"level"` // warning, or err for what does not stop it
	Message  string   `json:"message"`
	File     string   `json:"file,omitempty"` // relative to the environment's root
	Line     int      `json:"line,omitempty"`
	Nodes    int      `json:"nodes"`
	Examples []string `json:"examples"` // the first of them
	New      bool     `json:"new"`      // it was written for no catalog that these nodes have
}

// PreviewNode is a node's share of a preview.
type PreviewNode struct {
	Name       string `json:"name"`
	State      string `json:"state"`
	Catalog    string `json:"catalog,omitempty"`     // the previewed one
	Base       string `json:"base,omitempty"`        // what the node had when both were compared
	Reused     bool   `json:"reused,omitempty"`      // nothing was compiled
	Quiet      bool   `json:"quiet,omitempty"`       // it changes, but noise rules hide every change
	EngineOnly bool   `json:"engine_only,omitempty"` // it changes in noise of the engine only, beside what noise rules hide
	Message    string `json:"message,omitempty"`     // why it has no catalog
	File       string `json:"file,omitempty"`
	Line       int    `json:"line,omitempty"`
	Volatile   string `json:"volatile,omitempty"` // why the catalog may be another one next time
}
