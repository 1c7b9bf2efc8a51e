package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Sources of code: git repositories whose branches are environments.
var (
	SourceList = op[Nothing, List[CodeSource]](Operation{
		Name: "source.list", Method: http.MethodGet, Path: "/sources", Permission: fleet.CodeRead, Kind: Question,
		Summary: "List the git repositories whose branches are environments",
	})
	SourceShow = op[NameRequest, CodeSourceDetail](Operation{
		Name: "source.show", Method: http.MethodGet, Path: "/sources/{name}", Permission: fleet.CodeRead, Kind: Question,
		Summary: "Show a source with its branches, and how the newest deploy of each ended",
	})
	SourceAdd = op[SourceAddRequest, CodeSource](Operation{
		Name: "source.add", Method: http.MethodPut, Path: "/sources/{name}", Permission: fleet.SourceWrite, Kind: Act,
		Summary: "Add a git repository whose branches become environments, or change one",
	})
	SourceRemove = op[NameRequest, Nothing](Operation{
		Name: "source.remove", Method: http.MethodDelete, Path: "/sources/{name}", Permission: fleet.SourceWrite, Kind: Act,
		Summary: "Forget a source and its key; its environments stay as they are",
	})
	SourceSync = op[SourceSyncRequest, SourceSynced](Operation{
		Name: "source.sync", Method: http.MethodPost, Path: "/sources/{name}/sync", Permission: fleet.CodeDeploy, Kind: Act,
		Summary: "Look at a source's repository now and deploy the branches that changed",
	})
	SourceDeploy = op[SourceDeployRequest, List[CodeBranch]](Operation{
		Name: "source.deploy", Method: http.MethodPost, Path: "/deploys", Permission: fleet.CodeDeploy, Kind: Act,
		Summary: "Deploy environments from their branches again, whether or not these changed",
	})
)

// sourceOperations is the operations of this file, in the order of the reference.
func sourceOperations() []Operation {
	return listed(SourceList, SourceShow, SourceAdd, SourceRemove, SourceSync, SourceDeploy)
}

// CodeSource is a git repository whose branches are environments.
type CodeSource struct {
	Name         string     `json:"name"`
	URL          string     `json:"url"` // without a password
	Prefix       string     `json:"prefix,omitempty"`
	Branches     []string   `json:"branches,omitempty"` // patterns; none: all branches
	Submodules   bool       `json:"submodules"`
	NoPuppetfile bool       `json:"no_puppetfile"`
	Purge        bool       `json:"purge"`
	Interval     int64      `json:"interval"` // seconds between two looks at the repository; 0: it is not looked at without being told
	HasKey       bool       `json:"has_key"`
	HasWebhook   bool       `json:"has_webhook"` // it has a secret for webhooks
	AddedAt      time.Time  `json:"added_at"`
	AddedBy      string     `json:"added_by,omitempty"`
	LookedAt     *time.Time `json:"looked_at,omitempty"` // when the repository was looked at last
	Trouble      string     `json:"trouble,omitempty"`   // why that did not succeed
	Refused      []string   `json:"refused,omitempty"`   // branches of which no environment can be made, and why
}

// CodeSourceDetail is a source with its branches.
type CodeSourceDetail struct {
	CodeSource
	Known []CodeBranch `json:"known"`
}

// CodeBranch is an environment that is a branch of a source, and the newest deploy of it.
type CodeBranch struct {
	Environment string     `json:"environment"`
	Source      string     `json:"source"`
	Branch      string     `json:"branch"`
	Commit      string     `json:"commit,omitempty"`  // that was deployed last
	Version     string     `json:"version,omitempty"` // that it became
	DeployedAt  *time.Time `json:"deployed_at,omitempty"`
	ID          int64      `json:"id"` // of the newest deploy
	State       string     `json:"state"`
	Error       string     `json:"error,omitempty"`
	QueuedAt    *time.Time `json:"queued_at,omitempty"`
	Waiting     int64      `json:"waiting,omitempty"` // number of the deploy that waits for this one
	GoneAt      *time.Time `json:"gone_at,omitempty"` // since when the repository has no such branch
}

// SourceAddRequest is a source. What is secret is never shown again.
type SourceAddRequest struct {
	Name          string   `path:"name"`
	URL           string   `json:"url"`
	Prefix        string   `json:"prefix,omitempty"`
	Branches      []string `json:"branches,omitempty"`
	Submodules    bool     `json:"submodules,omitempty"`
	NoPuppetfile  bool     `json:"no_puppetfile,omitempty"`
	Purge         bool     `json:"purge,omitempty"`
	Interval      int64    `json:"interval,omitempty"`       // seconds, at least 10; 0: never
	Key           string   `json:"key,omitempty"`            // private key for ssh
	KnownHosts    string   `json:"known_hosts,omitempty"`    // lines as in ssh's file; without them a host is believed the first time
	WebhookSecret string   `json:"webhook_secret,omitempty"` // what webhooks are signed with
	Replace       bool     `json:"replace,omitempty"`        // there may be a source of this name: its secrets stay unless others are given
}

// SourceSyncRequest asks for a look at a source.
type SourceSyncRequest struct {
	Name  string `path:"name"`
	Purge bool   `json:"purge,omitempty"` // the environments of deleted branches are deleted
	Wait  bool   `json:"wait,omitempty"`  // the answer comes when the deploys have ended
}

// SourceSynced is what a look led to.
type SourceSynced struct {
	Deploys []CodeBranch `json:"deploys"` // that were asked for
	Gone    []CodeBranch `json:"gone"`    // whose branch is not there any more, and that stay
	Purged  []string     `json:"purged"`  // environments that were deleted with their branches
	Refused []string     `json:"refused"` // branches of which no environment can be made, and why
}

// SourceDeployRequest names environments.
type SourceDeployRequest struct {
	Environments []string `json:"environments,omitempty"`
	All          bool     `json:"all,omitempty"`     // all that are branches of sources, and that the caller may deploy
	Wait         bool     `json:"wait,omitempty"`    // the answer comes when the deploys have ended
	DryRun       bool     `json:"dry_run,omitempty"` // says what would be deployed
}
