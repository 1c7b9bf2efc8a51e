package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Modules of nodes, and the actions that can be asked of them.
var (
	ActionList = op[ActionListRequest, List[ActionModule]](Operation{
		Name: "action.list", Method: http.MethodGet, Path: "/actions", Permission: fleet.NodeRead, Kind: Question,
		Summary: "List the modules that nodes have, with their actions, and why some cannot be used",
	})
	ActionShow = op[ActionShowRequest, ActionModule](Operation{
		Name: "action.show", Method: http.MethodGet, Path: "/actions/{module}", Permission: fleet.NodeRead, Kind: Question,
		Summary: "Show a module: what its actions take and give, and which nodes have which version",
	})
)

// actionOperations is the operations of this file, in the order of the reference.
func actionOperations() []Operation { return listed(ActionList, ActionShow) }

// ActionListRequest narrows the list of modules.
type ActionListRequest struct {
	Node     string `query:"node"`     // only what this node has
	Problems bool   `query:"problems"` // only modules that some nodes cannot use
}

// ActionShowRequest names a module.
type ActionShowRequest struct {
	Module string `path:"module"`
}

// ActionModule is a module that nodes have. Only nodes that the caller may see count. What it says of itself is that of the newest version.
type ActionModule struct {
	Module        string                `json:"module"`
	Description   string                `json:"description,omitempty"`
	Nodes         int                   `json:"nodes"`                   // that can use it
	Versions      []ActionModuleVersion `json:"versions"`                // the newest first
	Problems      []ActionModuleProblem `json:"problems,omitempty"`      // that most nodes have first
	Author        string                `json:"author,omitempty"`        // in action.show, as the next
	License       string                `json:"license,omitempty"`       //
	URL           string                `json:"url,omitempty"`           //
	Configuration json.RawMessage       `json:"configuration,omitempty"` // schema of its configuration file on nodes
	Actions       []Action              `json:"actions"`                 // by name; none: no node has told yet what it can do
}

// ActionModuleVersion is one state of a module.
type ActionModuleVersion struct {
	Version  string `json:"version,omitempty"`
	Digest   string `json:"digest"`   // of its metadata
	Provider string `json:"provider"` // built-in, external, choria or code
	Nodes    int    `json:"nodes"`    // that have it
}

// ActionModuleProblem is why nodes cannot use a module, or not all of it.
type ActionModuleProblem struct {
	Problem  string   `json:"problem"`
	Version  string   `json:"version,omitempty"`
	Provider string   `json:"provider"`
	Nodes    int      `json:"nodes"`
	Examples []string `json:"examples"` // the first of these nodes
}

// Action is one thing that a module does. A list has only the first three fields.
type Action struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	ReadOnly    bool            `json:"read_only,omitempty"`  // it changes nothing on the node
	Display     string          `json:"display,omitempty"`    // which answers people see: ok, failed or always
	Timeout     float64         `json:"timeout,omitempty"`    // seconds that it may take; 0: as long as any order
	Input       json.RawMessage `json:"input,omitempty"`      // JSON schema
	Results     json.RawMessage `json:"results,omitempty"`    // JSON schema
	Inputs      []ActionField   `json:"inputs,omitempty"`     // the properties of the input, in the order in which they are asked for
	Outputs     []ActionField   `json:"outputs,omitempty"`    // those of the results
	Aggregates  []ActionSum     `json:"aggregates,omitempty"` // how the answers of many nodes are summed up
}

// ActionField is a property of an input or of results.
type ActionField struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description,omitempty"`
	Type        string          `json:"type,omitempty"`   // of JSON; empty: several, or any
	Format      string          `json:"format,omitempty"` // that a text must have
	Values      []string        `json:"values,omitempty"` // all that are allowed
	Default     json.RawMessage `json:"default,omitempty"`
	Required    bool            `json:"required,omitempty"`
	MaxLength   int             `json:"max_length,omitempty"` // of a text
	Sensitive   bool            `json:"sensitive,omitempty"`  // its values are secret: no record of a call has them
}

// ActionSum is how one field of answers is summed up.
type ActionSum struct {
	Function string            `json:"function"` // summary, average, sum, boolean_summary or distribution
	Field    string            `json:"field"`
	Format   string            `json:"format,omitempty"` // printf's, of one line; missing: the usual one
	Labels   map[string]string `json:"labels,omitempty"` // what true and false are called
}

// AgentTold is what a node's agent says of itself.
type AgentTold struct {
	Version string       `json:"version"`
	OS      string       `json:"os"`
	Arch    string       `json:"arch"`
	Told    time.Time    `json:"told"`    // since when it says so
	Modules []NodeModule `json:"modules"` // empty: it has not told yet which it has
}

// NodeModule is a module of a node.
type NodeModule struct {
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"`
	Provider string `json:"provider"`
	Problem  string `json:"problem,omitempty"` // why it cannot be used, or not all of it
}
