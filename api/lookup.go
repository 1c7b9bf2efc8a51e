package api

import (
	"encoding/json"
	"net/http"

	"github.com/tutti-project/tutti/internal/fleet"
)

// NodeLookup asks Hiera. The permission is that of who may have code of their own compiled for the node: such code can read
// all of Hiera's data, too.
var NodeLookup = op[NodeLookupRequest, LookedUp](Operation{
	Name: "node.lookup", Method: http.MethodPost, Path: "/nodes/{name}/lookup", Permission: fleet.PreviewCreate, Kind: Question,
	Summary: "Ask Hiera what it gives for a node, from the server's code, and why",
})

// NodeLookupRequest is a question to Hiera. It needs the right to read the node's catalog, too.
type NodeLookupRequest struct {
	Name        string   `path:"name" json:"-"`
	Keys        []string `json:"keys"`                  // the first that is found counts
	Environment string   `json:"environment,omitempty"` // instead of the node's
	// Merge is first, unique, hash or deep; empty: as the data's lookup_options say. What follows is for deep.
	Merge            string  `json:"merge,omitempty"`
	KnockoutPrefix   string  `json:"knockout_prefix,omitempty"`
	SortMergedArrays bool    `json:"sort_merged_arrays,omitempty"`
	MergeHashArrays  bool    `json:"merge_hash_arrays,omitempty"`
	Default          *string `json:"default,omitempty"` // when nothing is found
	Explain          bool    `json:"explain,omitempty"`
	Compile          bool    `json:"compile,omitempty"` // compile the node's catalog before: variables of manifests have values then
}

// LookedUp is what Hiera gives.
type LookedUp struct {
	Node        string          `json:"node"`
	Environment string          `json:"environment"`
	Version     string          `json:"version"` // of the code
	Keys        []string        `json:"keys"`
	Found       bool            `json:"found"`            // a value, or the default
	Value       json.RawMessage `json:"value,omitempty"`  // missing: nothing was found
	Hidden      bool            `json:"hidden,omitempty"` // some of it is not shown: it is Sensitive, or eyaml decrypted it
	Explanation string          `json:"explanation,omitempty"`
	Problem     string          `json:"problem,omitempty"` // why there is no value: a mistake in the code or its data
	Logs        []CompileLog    `json:"logs,omitempty"`
}
