package preview

import (
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
)

// State of a preview.
type State string

// The states; see the package comment.
const (
	Compiling State = "compiling"
	Ready     State = "ready"
	Cancelled State = "cancelled"
)

// States is every state of a preview.
func States() []State { return []State{Compiling, Ready, Cancelled} }

// Preview is a version compiled for a set of nodes.
type Preview struct {
	ID          int64
	Environment fleet.Environment
	Version     fleet.Digest
	Commit      string // of the version, where there is one
	Description string
	Targets     string // which nodes were asked for, in words
	Author      string
	AuthorKind  fleet.ActorKind
	Reach       string // which nodes the inventory may tell the code of, as a condition on nodes: those that the author may see; empty: all
	State       State
	Reason      string // why it was cancelled
	Counts      Counts
	Unseen      []Unseen // of a ready one: the commonest first
	CreatedAt   time.Time
	EndedAt     time.Time // ready or cancelled
}

// ShareState is how a node's share of a preview stands.
type ShareState string

// The states of a share; see the package comment.
const (
	Waiting   ShareState = "waiting"
	Same      ShareState = "same"
	Reordered ShareState = "reordered" // the same but for order
	Changed   ShareState = "changed"
	Failed    ShareState = "failed" // the version does not compile for it
	First     ShareState = "first"  // it compiles; there is nothing to compare with
	Unable    ShareState = "unable" // it cannot be compiled for
)

// ShareStates is every state of a share.
func ShareStates() []ShareState {
	return []ShareState{Waiting, Same, Reordered, Changed, Failed, First, Unable}
}

// Final says whether a share stays as it is.
func (s ShareState) Final() bool { return s != Waiting }

// Counts is how many shares are in each state.
type Counts map[ShareState]int

// Total is all of them.
func (c Counts) Total() int {
	n := 0
	for _, count := range c {
		n += count
	}
	return n
}

// Known is how many of them do not wait.
func (c Counts) Known() int { return c.Total() - c[Waiting] }

// Share is what a preview says of one node.
type Share struct {
	Number      uint32 // its place among the preview's nodes by name, from 0
	Node        fleet.Certname
	State       ShareState
	Compilation int64        // what gives its catalog; 0: not asked for yet
	Fresh       fleet.Digest // the previewed catalog
	Base        fleet.Digest // what the node has, when both were compared
	BaseEngine  string       // the engine that compiled Base; empty: not known
	Reused      bool         // nothing was compiled: the stored catalog stands
	Failure     Failure      // of a failed or unable one
	Volatile    string       // why Fresh may be another one when it is compiled again
}

// Failure is why a share has no catalog.
type Failure struct {
	Message string `json:"message,omitempty"`
	File    string `json:"file,omitempty"` // relative to the environment's root
	Line    int    `json:"line,omitempty"`
}

// Unseen is something that a preview cannot see, and for how many nodes.
type Unseen struct {
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
}

// Group is a change and the nodes that have it.
type Group struct {
	Change api.ChangeGroup // its Key names the group
	Nodes  []uint32        // numbers of shares, in order
}

// Remark is what somebody said of a group, or of a whole preview.
type Remark struct {
	ID     int64
	Group  string // key; empty: the whole preview
	Kind   RemarkKind
	Text   string
	Author string
	At     time.Time
}

// RemarkKind is what a remark does.
type RemarkKind string

// The kinds of remarks. The last one of Acknowledged and Withdrawn holds.
const (
	Acknowledged RemarkKind = "acknowledged" // somebody has seen the change and wants it
	Withdrawn    RemarkKind = "withdrawn"    // not any more
	Comment      RemarkKind = "comment"
)

// The bounds of what people say.
const (
	MaxTargets     = 100_000
	MaxDescription = 2000 // bytes
	MaxRemarkBytes = 4000
	MaxRemarkKeys  = 1000 // groups that one remark is about
)
