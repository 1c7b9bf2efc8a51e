package api

import (
	"encoding/json"
	"time"
)

// CatalogDiffRequest compares a node's newest catalog, the old side, with exactly one
// other: another node's newest, a stored one, or one that is sent.
type CatalogDiffRequest struct {
	Name     string          `path:"name"`
	Node     string          `json:"node,omitempty"`     // the newest catalog of this node
	Digest   string          `json:"digest,omitempty"`   // a stored catalog; needs the permission for all nodes
	Document json.RawMessage `json:"document,omitempty"` // a catalog as agents are given it; no file that it names is read
}

// CatalogDifference is what leads from one catalog to another. Secrets are never in
// it. What differs in order only (before, require, notify, subscribe, tag, tags,
// edges, keys of a hash) is marked or stands under order.
type CatalogDifference struct {
	Old            CatalogSide          `json:"old"`
	New            CatalogSide          `json:"new"`
	Same           bool                 `json:"same"` // nothing differs, not even in order
	Added          int                  `json:"added"`
	Removed        int                  `json:"removed"`
	Changed        int                  `json:"changed"` // without those that differ in order only
	ClassesAdded   []string             `json:"classes_added,omitempty"`
	ClassesRemoved []string             `json:"classes_removed,omitempty"`
	Resources      []ResourceDifference `json:"resources"`
	NotListed      int                  `json:"not_listed,omitempty"` // resources that differ, too: there are too many
	Order          OrderDifference      `json:"order"`
	NotCompared    bool                 `json:"not_compared,omitempty"` // the new catalog was sent: what the old one hides was left out
}

// CatalogSide is one of two catalogs that are compared.
type CatalogSide struct {
	Name        string     `json:"name,omitempty"` // of the node
	Environment string     `json:"environment,omitempty"`
	Digest      string     `json:"digest,omitempty"`
	Version     string     `json:"version,omitempty"` // of the code
	CompiledAt  *time.Time `json:"compiled_at,omitempty"`
}

// ResourceDifference is one resource that differs.
type ResourceDifference struct {
	Change      string                `json:"change"` // added, removed or changed
	Type        string                `json:"type"`
	Title       string                `json:"title"`
	Exported    bool                  `json:"exported,omitempty"`
	OrderOnly   bool                  `json:"order_only,omitempty"`
	File        string                `json:"file,omitempty"` // where it is declared, or was
	Line        int                   `json:"line,omitempty"`
	Parameters  []ParameterDifference `json:"parameters,omitempty"`
	NotListed   int                   `json:"not_listed,omitempty"` // parameters and places that differ, too
	Noise       string                `json:"noise,omitempty"`      // of a preview: the rule that hides it
	TagsAdded   []string              `json:"tags_added,omitempty"`
	TagsRemoved []string              `json:"tags_removed,omitempty"`
}

// ParameterDifference is one place in a parameter that differs. The content of a File
// is under "content", wherever it comes from.
type ParameterDifference struct {
	Name        string          `json:"name"`
	Path        string          `json:"path,omitempty"` // within the value: .key, [0]; of a directory: the file below it
	Change      string          `json:"change"`         // added, removed, changed or reordered
	OrderOnly   bool            `json:"order_only,omitempty"`
	Hidden      bool            `json:"hidden,omitempty"`       // a secret: nothing else is said of its value
	EngineNoise []string        `json:"engine_noise,omitempty"` // of a preview by another engine: the parameter is the same value in these other forms
	Old         json.RawMessage `json:"old,omitempty"`          // of a long one: a string, its beginning
	New         json.RawMessage `json:"new,omitempty"`
	Text        string          `json:"text,omitempty"` // of text of several lines: a unified diff
	Binary      bool            `json:"binary,omitempty"`
	OldDigest   string          `json:"old_digest,omitempty"` // of content: type and checksum
	NewDigest   string          `json:"new_digest,omitempty"`
	Note        string          `json:"note,omitempty"` // what could not be shown, and why
}

// OrderDifference is what differs between resources, but in none of them.
type OrderDifference struct {
	Resources   int              `json:"resources"` // that differ in order only
	Edges       []EdgeDifference `json:"edges,omitempty"`
	EdgeCount   int              `json:"edge_count"` // without those of resources that were added or removed
	Moved       int              `json:"moved"`      // resources that come earlier or later
	TagsAdded   []string         `json:"tags_added,omitempty"`
	TagsRemoved []string         `json:"tags_removed,omitempty"`
}

// EdgeDifference is an edge of containment that differs.
type EdgeDifference struct {
	Change  string `json:"change"` // added or removed
	Source  string `json:"source"`
	Target  string `json:"target"`
	Implied bool   `json:"implied,omitempty"` // one of its ends was added or removed, too
}

// FleetDifference is how the catalogs of many nodes differ: one group for each
// change, compile errors first, then what lost most of its resources, then by number of nodes, then noise of the engine, order only last.
type FleetDifference struct {
	Nodes     int           `json:"nodes"`
	Changed   int           `json:"changed"`    // nodes with a difference that is more than order
	Errors    int           `json:"errors"`     // nodes whose catalog did not compile
	Same      int           `json:"same"`       // nodes with no difference, or with one of order only
	OrderOnly int           `json:"order_only"` // of these, the latter
	Groups    []ChangeGroup `json:"groups"`
	NotListed int           `json:"not_listed,omitempty"` // changes of nodes that found no room among the groups
}

// ChangeGroup is one change and the nodes that have it.
type ChangeGroup struct {
	Key        string   `json:"key"`    // the same for the same change, as long as the server's key is
	Change     string   `json:"change"` // error, lost-all, lost-most, added, removed, changed, node (classes, environment), edge
	Type       string   `json:"type,omitempty"`
	Title      string   `json:"title,omitempty"` // a node's own name in it is <node>, its host name <host>
	Exported   bool     `json:"exported,omitempty"`
	OrderOnly  bool     `json:"order_only,omitempty"`
	Parameters []string `json:"parameters,omitempty"` // that changed
	// nothing but the form of values differs, and another engine compiled the new catalog: the forms, such as a number as text
	EngineNoise []string            `json:"engine_noise,omitempty"`
	Message     string              `json:"message,omitempty"` // of an error
	File        string              `json:"file,omitempty"`
	Line        int                 `json:"line,omitempty"`
	Nodes       int                 `json:"nodes"`
	Examples    []string            `json:"examples"`          // the first nodes
	Example     *ResourceDifference `json:"example,omitempty"` // the change as the first node has it
}
