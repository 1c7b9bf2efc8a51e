package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Policies: what may be released, what needs an approval, and when nothing begins.
var (
	PolicyList = op[Nothing, List[Policy]](Operation{
		Name: "policy.list", Method: http.MethodGet, Path: "/policies", Permission: fleet.PolicyRead, Kind: Question,
		Summary: "List the policies by name",
	})
	PolicyShow = op[PolicyNameRequest, Policy](Operation{
		Name: "policy.show", Method: http.MethodGet, Path: "/policies/{policy}", Permission: fleet.PolicyRead, Kind: Question,
		Summary: "Show one policy",
	})
	PolicySet = op[PolicySetRequest, Policy](Operation{
		Name: "policy.set", Method: http.MethodPut, Path: "/policies/{policy}", Permission: fleet.PolicyWrite, Kind: Act,
		Summary: "Make a policy, or its next version",
	})
	PolicyRemove = op[PolicyNameRequest, Policy](Operation{
		Name: "policy.remove", Method: http.MethodDelete, Path: "/policies/{policy}", Permission: fleet.PolicyWrite, Kind: Act,
		Summary: "Remove a policy; its versions stay",
	})
	PolicyHistory = op[PolicyNameRequest, List[Policy]](Operation{
		Name: "policy.history", Method: http.MethodGet, Path: "/policies/{policy}/history",
		Permission: fleet.PolicyRead, Kind: Question,
		Summary: "List every version of a policy, newest first",
	})
	PolicyTest = op[PolicyTestRequest, PolicyVerdict](Operation{
		Name: "policy.test", Method: http.MethodPost, Path: "/previews/{preview}/policies",
		Permission: fleet.PolicyRead, Kind: Question,
		Summary: "Say what policies and freezes say of a preview: all of them, one, or one that is not set",
	})
	FreezeList = op[Nothing, List[Freeze]](Operation{
		Name: "freeze.list", Method: http.MethodGet, Path: "/freezes", Permission: fleet.PolicyRead, Kind: Question,
		Summary: "List the freezes by name, and which hold now",
	})
	FreezeSet = op[FreezeSetRequest, Freeze](Operation{
		Name: "freeze.set", Method: http.MethodPut, Path: "/freezes/{freeze}", Permission: fleet.PolicyWrite, Kind: Act,
		Summary: "Make a freeze, or its next version",
	})
	FreezeRemove = op[FreezeNameRequest, Freeze](Operation{
		Name: "freeze.remove", Method: http.MethodDelete, Path: "/freezes/{freeze}", Permission: fleet.PolicyWrite, Kind: Act,
		Summary: "Remove a freeze; its versions stay",
	})
	FreezeHistory = op[FreezeNameRequest, List[Freeze]](Operation{
		Name: "freeze.history", Method: http.MethodGet, Path: "/freezes/{freeze}/history",
		Permission: fleet.PolicyRead, Kind: Question,
		Summary: "List every version of a freeze, newest first",
	})
)

// policyOperations is the operations of this file, in the order of the reference.
func policyOperations() []Operation {
	return listed(PolicyList, PolicyShow, PolicySet, PolicyRemove, PolicyHistory, PolicyTest, FreezeList, FreezeSet, FreezeRemove, FreezeHistory)
}

// PolicyDefinition is what a policy says.
type PolicyDefinition struct {
	Environments []string `json:"environments,omitempty"` // none: all
	Effect       string   `json:"effect"`                 // deny, approve or warn
	Role         string   `json:"role,omitempty"`         // of approve: who approves
	AuthorMay    bool     `json:"author_may,omitempty"`   // of approve: the author's own approval is good enough
	Message      string   `json:"message"`                // what people should know
	When         string   `json:"when"`                   // an expression over a change
	Zone         string   `json:"zone,omitempty"`         // of time in the expression; default UTC
}

// Policy is a version of a policy.
type Policy struct {
	Name    string    `json:"name"`
	Version int       `json:"version"`
	Author  string    `json:"author"`
	At      time.Time `json:"at"`
	Removed bool      `json:"removed,omitempty"`
	PolicyDefinition
}

// PolicyNameRequest names a policy.
type PolicyNameRequest struct {
	Policy string `path:"policy"`
}

// PolicySetRequest says what a policy says from now on.
type PolicySetRequest struct {
	Policy     string           `path:"policy"`
	Definition PolicyDefinition `json:"definition"`
}

// PolicyTestRequest asks what policies say of all nodes of a ready preview.
type PolicyTestRequest struct {
	Preview    string            `path:"preview"`
	Policy     string            `json:"policy,omitempty"`     // only this one
	Definition *PolicyDefinition `json:"definition,omitempty"` // only this one, which is not set
	At         *time.Time        `json:"at,omitempty"`         // as if it was then; default now
}

// PolicyVerdict is what policies and freezes say.
type PolicyVerdict struct {
	Findings []PolicyFinding `json:"findings"`
	Frozen   *Frozen         `json:"frozen,omitempty"`
}

// PolicyFinding is what one policy found.
type PolicyFinding struct {
	Policy    string   `json:"policy"`
	Version   int      `json:"version,omitempty"`
	Effect    string   `json:"effect"`
	Role      string   `json:"role,omitempty"`
	AuthorMay bool     `json:"author_may,omitempty"`
	Message   string   `json:"message"`
	Nodes     int      `json:"nodes"`
	Found     int      `json:"found,omitempty"`   // changes
	Changes   []string `json:"changes,omitempty"` // keys of the first ones
	Broken    string   `json:"broken,omitempty"`  // why it could not be judged; then it counts as found
}

// Frozen is that nothing begins.
type Frozen struct {
	Until   time.Time `json:"until"`
	Why     string    `json:"why"`
	Freezes []string  `json:"freezes"`
}

// FreezeDefinition says when nothing begins: from from to to, or every week.
type FreezeDefinition struct {
	Environments []string   `json:"environments,omitempty"` // none: all
	From         *time.Time `json:"from,omitempty"`
	To           *time.Time `json:"to,omitempty"`
	Weekly       string     `json:"weekly,omitempty"` // mon-fri 18:00-06:00, fri 16:00-mon 06:00, daily 22:00-23:30
	Zone         string     `json:"zone"`             // Europe/Berlin, UTC
	Why          string     `json:"why"`
}

// Freeze is a version of a freeze.
type Freeze struct {
	Name    string     `json:"name"`
	Version int        `json:"version"`
	Author  string     `json:"author"`
	At      time.Time  `json:"at"`
	Removed bool       `json:"removed,omitempty"`
	Until   *time.Time `json:"until,omitempty"` // it holds now, and ends then
	FreezeDefinition
}

// FreezeNameRequest names a freeze.
type FreezeNameRequest struct {
	Freeze string `path:"freeze"`
}

// FreezeSetRequest says what a freeze is from now on.
type FreezeSetRequest struct {
	Freeze     string           `path:"freeze"`
	Definition FreezeDefinition `json:"definition"`
}
