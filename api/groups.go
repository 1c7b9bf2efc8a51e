package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Groups, which classify nodes.
var (
	GroupList = op[Nothing, List[Group]](Operation{
		Name: "group.list", Method: http.MethodGet, Path: "/groups", Permission: fleet.GroupRead, Kind: Question,
		Summary: "List classification groups, parents before children",
	})
	GroupShow = op[GroupRequest, Group](Operation{
		Name: "group.show", Method: http.MethodGet, Path: "/groups/{group}", Permission: fleet.GroupRead, Kind: Question,
		Summary: "Show one group, by name or id",
	})
	GroupCreate = op[GroupCreateRequest, Group](Operation{
		Name: "group.create", Method: http.MethodPost, Path: "/groups", Permission: fleet.GroupWrite, Kind: Act,
		Summary: "Create a group",
	})
	GroupEdit = op[GroupEditRequest, Group](Operation{
		Name: "group.edit", Method: http.MethodPut, Path: "/groups/{group}", Permission: fleet.GroupWrite, Kind: Act,
		Summary: "Replace what a group matches and gives",
	})
	GroupDelete = op[GroupDeleteRequest, Nothing](Operation{
		Name: "group.delete", Method: http.MethodDelete, Path: "/groups/{group}", Permission: fleet.GroupWrite, Kind: Act,
		Summary: "Delete a group that has no others below it",
	})
	GroupNodes = op[GroupNodesRequest, List[GroupNode]](Operation{
		Name: "group.nodes", Method: http.MethodGet, Path: "/groups/{group}/nodes", Permission: fleet.GroupRead, Kind: Question,
		Summary: "List the nodes that are in a group, by name",
	})
	GroupApply = op[GroupApplyRequest, GroupApplyResponse](Operation{
		Name: "group.apply", Method: http.MethodPost, Path: "/groups/apply", Permission: fleet.GroupWrite, Kind: Act,
		Summary: "Create, update and delete groups so that they are as described, all or none",
	})
	GroupExplain = op[NameRequest, GroupExplanation](Operation{
		Name: "group.explain", Method: http.MethodGet, Path: "/nodes/{name}/groups", Permission: fleet.GroupRead, Kind: Question,
		Summary: "Say what groups give a node, which group gave what, and why",
	})
)

// groupOperations is the operations of this file, in the order of the reference.
func groupOperations() []Operation {
	return listed(GroupList, GroupShow, GroupCreate, GroupEdit, GroupDelete, GroupNodes, GroupApply, GroupExplain)
}

// GroupRequest names a group.
type GroupRequest struct {
	Group string `path:"group"` // name or id
}

// GroupSpec is what a group matches and gives, as people write it.
type GroupSpec struct {
	ID               string                                `json:"id,omitempty"` // empty: the name tells which group it is
	Name             string                                `json:"name"`
	Parent           string                                `json:"parent,omitempty"` // name or id; empty: All Nodes
	Description      string                                `json:"description,omitempty"`
	Environment      string                                `json:"environment,omitempty"`       // a name, agent-specified, or empty: what the parent says
	EnvironmentGroup bool                                  `json:"environment_group,omitempty"` // the environment outvotes those of other groups
	Rule             json.RawMessage                       `json:"rule,omitempty"`              // a text, or the classifier's array
	Nodes            []string                              `json:"nodes,omitempty"`             // pinned
	Classes          map[string]map[string]json.RawMessage `json:"classes,omitempty"`
	Variables        map[string]json.RawMessage            `json:"variables,omitempty"`
	Data             map[string]map[string]json.RawMessage `json:"data,omitempty"`
}

// GroupCreateRequest asks for a new group.
type GroupCreateRequest struct {
	Spec GroupSpec `json:"group"`
}

// GroupEditRequest replaces a group.
type GroupEditRequest struct {
	Group    string    `path:"group"`
	Spec     GroupSpec `json:"group"`
	Revision int64     `json:"revision,omitempty"` // the one that the change is based on; 0: no check
}

// GroupDeleteRequest names a group to delete.
type GroupDeleteRequest struct {
	Group    string `path:"group"`
	Revision int    `query:"revision"` // the one that was looked at; 0: no check
}

// Group is a classification group.
type Group struct {
	ID               string                                `json:"id"`
	Name             string                                `json:"name"`
	Parent           string                                `json:"parent"` // name
	ParentID         string                                `json:"parent_id"`
	Description      string                                `json:"description,omitempty"`
	Environment      string                                `json:"environment,omitempty"`
	EnvironmentGroup bool                                  `json:"environment_group"`
	Rule             json.RawMessage                       `json:"rule,omitempty"`      // the classifier's array
	RuleText         string                                `json:"rule_text,omitempty"` // the same for people
	Nodes            []string                              `json:"nodes,omitempty"`
	Classes          map[string]map[string]json.RawMessage `json:"classes,omitempty"`
	Variables        map[string]json.RawMessage            `json:"variables,omitempty"`
	Data             map[string]map[string]json.RawMessage `json:"data,omitempty"`
	Revision         int64                                 `json:"revision"`
	ChangedAt        *time.Time                            `json:"changed_at,omitempty"`
	ChangedBy        string                                `json:"changed_by,omitempty"`
	Defect           string                                `json:"defect,omitempty"`   // why the group, as stored, matches nothing
	Warnings         []string                              `json:"warnings,omitempty"` // what the group names and neither code nor nodes have
}

// GroupNodesRequest asks which nodes are in a group. A page may have fewer than its
// limit, even none, and still a Next.
type GroupNodesRequest struct {
	Group string `path:"group"`
	After string `query:"after"`
	Limit int    `query:"limit"`
}

// GroupNode is a known node that is in a group.
type GroupNode struct {
	Name   string `json:"name"`
	Pinned bool   `json:"pinned"` // it would be in the group without the rule, too
}

// GroupApplyRequest describes all groups. Those that are not described are
// deleted; All Nodes stays as it is if it is not described.
type GroupApplyRequest struct {
	Groups   []GroupSpec `json:"groups"`
	DryRun   bool        `json:"dry_run,omitempty"`
	Revision int64       `json:"revision,omitempty"` // of the tree that a dry run showed; 0: no check
}

// GroupApplyResponse is what changes.
type GroupApplyResponse struct {
	Changes  []GroupChange `json:"changes"`
	Applied  bool          `json:"applied"`            // false for a dry run
	Revision int64         `json:"revision"`           // of the tree that the changes are based on
	Warnings []string      `json:"warnings,omitempty"` // what the created and updated groups name and neither code nor nodes have
}

// GroupChange is what happens to one group.
type GroupChange struct {
	Kind        string            `json:"kind"` // create, update, delete
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Differences []GroupDifference `json:"differences"`
}

// GroupDifference is one field that changes.
type GroupDifference struct {
	Field string `json:"field"`         // like rule, or classes.apache.port
	Old   string `json:"old,omitempty"` // empty: it was not there
	New   string `json:"new,omitempty"` // empty: it will not be there
}

// GroupExplanation is what groups give a node, and why.
type GroupExplanation struct {
	Node         string                                `json:"node"`
	FactsKnown   bool                                  `json:"facts_known"`
	TrustedKnown bool                                  `json:"trusted_known"`
	Environment  string                                `json:"environment,omitempty"` // empty: no group says
	Classes      map[string]map[string]json.RawMessage `json:"classes"`
	Variables    map[string]json.RawMessage            `json:"variables"`
	Data         map[string]map[string]json.RawMessage `json:"data"`
	Conflicts    []GroupConflict                       `json:"conflicts"`
	Origins      []GroupOrigin                         `json:"origins"` // every value that reaches the node or was overridden
	Groups       []GroupMembership                     `json:"groups"`  // all, parents before children
}

// GroupConflict is a thing that groups disagree about; the node gets none of it.
type GroupConflict struct {
	Kind    string        `json:"kind"`
	Class   string        `json:"class,omitempty"`
	Name    string        `json:"name,omitempty"`
	Origins []GroupOrigin `json:"origins"`
}

// GroupOrigin is a value and the group that it is written in.
type GroupOrigin struct {
	Kind    string          `json:"kind"` // environment, class, parameter, variable, data
	Class   string          `json:"class,omitempty"`
	Name    string          `json:"name,omitempty"`
	Value   json.RawMessage `json:"value"`
	Group   string          `json:"group"` // name
	GroupID string          `json:"group_id"`
	Via     []string        `json:"via"`   // the names of the groups that inherit it and have the node
	State   string          `json:"state"` // used, overridden, conflicting, outvoted
}

// GroupMembership is how a node stands to a group.
type GroupMembership struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Depth     int            `json:"depth"`
	Member    bool           `json:"member"`
	Leaf      bool           `json:"leaf"` // a member that is in no group below
	Pinned    bool           `json:"pinned"`
	StoppedBy string         `json:"stopped_by,omitempty"` // the group whose condition keeps the node out
	Why       []GroupFinding `json:"why"`
	Defect    string         `json:"defect,omitempty"`
}

// GroupFinding is a condition that decided, and what it found.
type GroupFinding struct {
	Condition string          `json:"condition"`
	Holds     bool            `json:"holds"`
	Found     json.RawMessage `json:"found,omitempty"` // missing: the node has no such value
}
