package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Policies: what may be released, what needs an approval, and when nothing begins.
var (
	PolicyList    = Operation{"policy.list", http.MethodGet, "/policies", fleet.PolicyRead, "List the policies by name", nil, List[Policy]{}, false}
	PolicyShow    = Operation{"policy.show", http.MethodGet, "/policies/{policy}", fleet.PolicyRead, "Show one policy", PolicyNameRequest{}, Policy{}, false}
	PolicySet     = Operation{"policy.set", http.MethodPut, "/policies/{policy}", fleet.PolicyWrite, "Make a policy, or its next version", PolicySetRequest{}, Policy{}, false}
	PolicyRemove  = Operation{"policy.remove", http.MethodDelete, "/policies/{policy}", fleet.PolicyWrite, "Remove a policy; its versions stay", PolicyNameRequest{}, Policy{}, false}
	PolicyHistory = Operation{"policy.history", http.MethodGet, "/policies/{policy}/history", fleet.PolicyRead, "List every version of a policy, newest first", PolicyNameRequest{}, List[Policy]{}, false}
	PolicyTest    = Operation{"policy.test", http.MethodPost, "/previews/{preview}/policies", fleet.PolicyRead, "Say what policies and freezes say of a preview: all of them, one, or one that is not set", PolicyTestRequest{}, PolicyVerdict{}, false}
	FreezeList    = Operation{"freeze.list", http.MethodGet, "/freezes", fleet.PolicyRead, "List the freezes by name, and which hold now", nil, List[Freeze]{}, false}
	FreezeSet     = Operation{"freeze.set", http.MethodPut, "/freezes/{freeze}", fleet.PolicyWrite, "Make a freeze, or its next version", FreezeSetRequest{}, Freeze{}, false}
	FreezeRemove  = Operation{"freeze.remove", http.MethodDelete, "/freezes/{freeze}", fleet.PolicyWrite, "Remove a freeze; its versions stay", FreezeNameRequest{}, Freeze{}, false}
	FreezeHistory = Operation{"freeze.history", http.MethodGet, "/freezes/{freeze}/history", fleet.PolicyRead, "List every version of a freeze, newest first", FreezeNameRequest{}, List[Freeze]{}, false}
)

// policyOperations is the operations of this file, in the order of the reference.
func policyOperations() []Operation {
	return []Operation{PolicyList, PolicyShow, PolicySet, PolicyRemove, PolicyHistory, PolicyTest, FreezeList, FreezeSet, FreezeRemove, FreezeHistory}
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
