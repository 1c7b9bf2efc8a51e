package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Releases: the catalogs of a preview, handed to nodes in waves, and taken back.
var (
	ReleaseCreate = op[ReleaseCreateRequest, ReleaseReport](Operation{
		Name: "release.create", Method: http.MethodPost, Path: "/releases", Permission: fleet.ReleaseCreate, Kind: Act,
		Summary: "Release the catalogs of a preview to its nodes, in waves; or only say what that would be",
	})
	ReleaseRollback = op[RollbackRequest, ReleaseReport](Operation{
		Name: "release.rollback", Method: http.MethodPost, Path: "/rollbacks", Permission: fleet.ReleaseCreate, Kind: Act,
		Summary: "Give nodes catalogs that they had before, in waves; or only say what that would change",
	})
	ReleaseList = op[ReleaseListRequest, List[Release]](Operation{
		Name: "release.list", Method: http.MethodGet, Path: "/releases", Permission: fleet.ReleaseRead, Kind: Question,
		Summary: "List releases, newest first",
	})
	ReleaseShow = op[ReleaseShowRequest, ReleaseReport](Operation{
		Name: "release.show", Method: http.MethodGet, Path: "/releases/{release}", Permission: fleet.ReleaseRead, Kind: Question,
		Summary: "Show a release, its waves, what was decided, and who approved",
	})
	ReleaseTargets = op[ReleaseTargetsRequest, List[ReleaseTarget]](Operation{
		Name: "release.targets", Method: http.MethodGet, Path: "/releases/{release}/targets",
		Permission: fleet.ReleaseRead, Kind: Question,
		Summary: "List the nodes of a release, how each stands and why",
	})
	ReleasePause = op[ReleaseActRequest, Release](Operation{
		Name: "release.pause", Method: http.MethodPost, Path: "/releases/{release}/pause",
		Permission: fleet.ReleaseControl, Kind: Act,
		Summary: "Let nothing more of a release begin; what runs goes on",
	})
	ReleaseResume = op[ReleaseResumeRequest, Release](Operation{
		Name: "release.resume", Method: http.MethodPost, Path: "/releases/{release}/resume",
		Permission: fleet.ReleaseControl, Kind: Act,
		Summary: "Let a paused release go on, perhaps with a larger budget",
	})
	ReleasePromote = op[ReleaseRequest, Release](Operation{
		Name: "release.promote", Method: http.MethodPost, Path: "/releases/{release}/promote",
		Permission: fleet.ReleaseControl, Kind: Act,
		Summary: "Let the next wave of a release begin",
	})
	ReleaseAbort = op[ReleaseAbortRequest, Release](Operation{
		Name: "release.abort", Method: http.MethodPost, Path: "/releases/{release}/abort",
		Permission: fleet.ReleaseControl, Kind: Act,
		Summary: "End a release: nothing more begins; with kill, what runs is ended, too",
	})
	ReleaseApprove = op[ReleaseActRequest, Release](Operation{
		Name: "release.approve", Method: http.MethodPost, Path: "/releases/{release}/approve",
		Permission: fleet.ReleaseApprove, Kind: Act,
		Summary: "Approve a release: exactly these catalogs, nodes and waves",
	})
	ReleaseRefresh = op[ReleaseRequest, ReleaseRefreshed](Operation{
		Name: "release.refresh", Method: http.MethodPost, Path: "/releases/{release}/refresh",
		Permission: fleet.ReleaseCreate, Kind: Act,
		Summary: "Preview the nodes of a release that are superseded again; preview:create is needed, too",
	})
)

// releaseOperations is the operations of this file, in the order of the reference.
func releaseOperations() []Operation {
	return listed(
		ReleaseCreate, ReleaseRollback, ReleaseList, ReleaseShow, ReleaseTargets, ReleasePause, ReleaseResume, ReleasePromote, ReleaseAbort, ReleaseApprove,
		ReleaseRefresh,
	)
}

// ReleaseOptions is how a release goes on.
type ReleaseOptions struct {
	Waves       []string `json:"waves,omitempty"`        // 1% or 10 (of all nodes), @GROUP, rest; none: all at once
	MaxFailures *int     `json:"max_failures,omitempty"` // more failures than this, and it pauses; missing: no bound
	Promote     string   `json:"promote,omitempty"`      // auto, manual, soak; empty: auto
	Soak        int64    `json:"soak,omitempty"`         // seconds between waves, with soak
	NoopFirst   bool     `json:"noop_first,omitempty"`   // each wave runs in noop mode first
	Concurrency int      `json:"concurrency,omitempty"`  // how many runs at the same time; 0: all of a wave
	Timeout     int64    `json:"timeout,omitempty"`      // seconds that a run may take; 0: the server's setting
	WaitOffline int64    `json:"wait_offline,omitempty"` // seconds that a node of a wave may take to connect; 0: it must be there
	ApproveBy   string   `json:"approve_by,omitempty"`   // role: somebody who has it, and is not the author, has to approve
}

// ReleaseCreateRequest asks for a release of a preview that is ready.
type ReleaseCreateRequest struct {
	Preview int64      `json:"preview"`
	Targets JobTargets `json:"targets,omitzero"` // of its nodes; none: all that change
	ReleaseOptions
	Description string `json:"description,omitempty"`
	Refresh     bool   `json:"refresh,omitempty"` // nodes that are superseded are previewed again; they are not in this release
	DryRun      bool   `json:"dry_run,omitempty"`
}

// RollbackRequest takes a release back, or gives nodes an earlier generation.
type RollbackRequest struct {
	Release int64    `json:"release,omitempty"` // or:
	Nodes   []string `json:"nodes,omitempty"`
	To      int64    `json:"to,omitempty"` // generation of these nodes; 0: the one before
	ReleaseOptions
	Description string `json:"description,omitempty"`
	DryRun      bool   `json:"dry_run,omitempty"`
}

// ReleaseRequest names a release.
type ReleaseRequest struct {
	Release string `path:"release"`
}

// ReleaseListRequest asks for releases.
type ReleaseListRequest struct {
	Environment string `query:"environment"`
	State       string `query:"state"`
	After       string `query:"after"`
	Limit       int    `query:"limit"`
}

// ReleaseShowRequest asks for a release.
type ReleaseShowRequest struct {
	Release string `path:"release"`
	Behind  int    `query:"behind"` // a revision: the answer comes when there is a later one, or after about a second
}

// ReleaseTargetsRequest asks for targets.
type ReleaseTargetsRequest struct {
	Release string `path:"release"`
	State   string `query:"state"` // one, or several with commas
	Wave    int    `query:"wave"`
	Since   int    `query:"since"` // those that changed behind this revision
	After   string `query:"after"`
	Limit   int    `query:"limit"`
}

// ReleaseActRequest is an act with a reason.
type ReleaseActRequest struct {
	Release string `path:"release"`
	Why     string `json:"why,omitempty"`
}

// ReleaseResumeRequest lets a release go on.
type ReleaseResumeRequest struct {
	Release     string `path:"release"`
	MaxFailures *int   `json:"max_failures,omitempty"` // its budget from now on; missing: as it is
}

// ReleaseAbortRequest ends a release.
type ReleaseAbortRequest struct {
	Release string `path:"release"`
	Why     string `json:"why,omitempty"`
	Kill    bool   `json:"kill,omitempty"` // what runs, too
}

// Release is catalogs that are handed to nodes.
type Release struct {
	ID          string         `json:"id,omitempty"`         // missing: it was not made
	Kind        string         `json:"kind"`                 // release, rollback
	Preview     string         `json:"preview,omitempty"`    // of a release
	RollsBack   string         `json:"rolls_back,omitempty"` // the release that a roll back takes back
	Environment string         `json:"environment,omitempty"`
	Version     string         `json:"version,omitempty"`
	Description string         `json:"description,omitempty"`
	Author      string         `json:"author"`
	Options     ReleaseOptions `json:"options"`
	State       string         `json:"state"`           // waiting_approval, running, paused, stopping, done, done_with_failures, aborted
	Hold        string         `json:"hold,omitempty"`  // of paused: by_hand, budget, promotion, freeze, policy, trouble
	Until       *time.Time     `json:"until,omitempty"` // when a freeze ends
	Reason      string         `json:"reason,omitempty"`
	Wave        int            `json:"wave"` // that it is at; 0: none has begun
	Waves       []ReleaseWave  `json:"waves"`
	Nodes       int            `json:"nodes"`
	Counts      map[string]int `json:"counts"`   // nodes by state
	Failures    int            `json:"failures"` // that count against the budget
	Digest      string         `json:"digest"`   // of what is given to whom in which wave
	Revision    int64          `json:"revision"`
	CreatedAt   time.Time      `json:"created_at"`
	StartedAt   *time.Time     `json:"started_at,omitempty"`
	EndedAt     *time.Time     `json:"ended_at,omitempty"`
}

// ReleaseWave is some nodes of a release.
type ReleaseWave struct {
	Number    int        `json:"number"`
	Size      string     `json:"size"` // as it was asked for
	Nodes     int        `json:"nodes"`
	State     string     `json:"state"` // waiting, releasing, rehearsing, running, ended
	Round     int        `json:"round"`
	Rehearsal string     `json:"rehearsal,omitempty"` // job
	Job       string     `json:"job,omitempty"`
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	// Its nodes by state; missing: the release was made by a server that did not count them.
	Counts map[string]int `json:"counts,omitempty"`
	First  []string       `json:"first,omitempty"` // its first nodes by name, at most 5; of one that is made
}

// ReleaseReport is a release with what belongs to it.
type ReleaseReport struct {
	Release
	Already    int               `json:"already,omitempty"`    // nodes that are meant and have it already; of one that is made
	Refreshed  string            `json:"refreshed,omitempty"`  // preview of the superseded nodes; of one that is made
	Left       []ReleaseTarget   `json:"left,omitempty"`       // nodes that it cannot be given to, at most 100; of one that is made
	Findings   []ReleaseFinding  `json:"findings,omitempty"`   // of rules; of one that is made
	Frozen     string            `json:"frozen,omitempty"`     // why nothing begins now; of one that is made
	Difference *FleetDifference  `json:"difference,omitempty"` // of a roll back that was only asked about
	Vanishing  *Vanishing        `json:"vanishing,omitempty"`  // of a roll back
	Needs      []ReleaseNeed     `json:"needs,omitempty"`
	Approvals  []ReleaseApproval `json:"approvals,omitempty"`
	Entries    []ReleaseEntry    `json:"entries,omitempty"` // what was decided and what happened
}

// Vanishing is what a roll back cannot undo: resources that are in what nodes have now and not in what they get. They stay
// on the nodes as they are.
type Vanishing struct {
	Resources int `json:"resources"` // each on each node
	Distinct  int `json:"distinct"`
	Nodes     int `json:"nodes"`
}

// ReleaseFinding is what a rule says.
type ReleaseFinding struct {
	Rule    string `json:"rule"`
	Effect  string `json:"effect"` // deny, warn, approve
	Role    string `json:"role,omitempty"`
	Message string `json:"message"`
	Nodes   int    `json:"nodes,omitempty"`
}

// ReleaseNeed is an approval that is needed.
type ReleaseNeed struct {
	Role    string `json:"role"`
	Rule    string `json:"rule,omitempty"` // missing: who made the release wants it
	Message string `json:"message,omitempty"`
	Met     bool   `json:"met"`
}

// ReleaseApproval is somebody's yes.
type ReleaseApproval struct {
	Role string    `json:"role"`
	By   string    `json:"by"`
	Text string    `json:"text,omitempty"`
	At   time.Time `json:"at"`
}

// ReleaseEntry is something that was decided, or that happened.
type ReleaseEntry struct {
	At   time.Time `json:"at"`
	By   string    `json:"by,omitempty"` // missing: the release itself
	Text string    `json:"text"`
}

// ReleaseTarget is a node of a release.
type ReleaseTarget struct {
	Name       string `json:"name"`
	Wave       int    `json:"wave,omitempty"`
	State      string `json:"state"` // waiting, sent, applying, ok, changed, failed, foreign, timed_out, offline, skipped, superseded, refused
	Reason     string `json:"reason,omitempty"`
	Catalog    string `json:"catalog,omitempty"` // that it is given
	Base       string `json:"base,omitempty"`    // that it had
	Generation int64  `json:"generation,omitempty"`
	Report     string `json:"report,omitempty"` // transaction of its run
	Revision   int64  `json:"revision,omitempty"`
}

// ReleaseRefreshed is a new preview.
type ReleaseRefreshed struct {
	Preview string `json:"preview"`
}
