package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Jobs: one order over many nodes. Each kind is an operation of its own, so that
// each names its permission. Whoever may not do it on one of the nodes is told
// which, and nothing starts.
var (
	JobPuppet = op[JobPuppetRequest, JobStarted](Operation{
		Name: "job.puppet", Method: http.MethodPost, Path: "/jobs/puppet", Permission: fleet.PuppetRun, Kind: Act,
		Summary: "Run Puppet on nodes",
	})
	JobTask = op[JobTaskRequest, JobStarted](Operation{
		Name: "job.task", Method: http.MethodPost, Path: "/jobs/task", Permission: fleet.TaskRun, Kind: Act,
		Summary: "Run a task of the deployed code on nodes",
	})
	JobCommand = op[JobCommandRequest, JobStarted](Operation{
		Name: "job.command", Method: http.MethodPost, Path: "/jobs/command", Permission: fleet.CommandRun, Kind: Act,
		Summary: "Run a command on nodes",
	})
	JobScript = op[JobScriptRequest, JobStarted](Operation{
		Name: "job.script", Method: http.MethodPost, Path: "/jobs/script", Permission: fleet.ScriptRun, Kind: Act,
		Summary: "Run an uploaded script on nodes",
	})
	JobFile = op[JobFileRequest, JobStarted](Operation{
		Name: "job.file", Method: http.MethodPost, Path: "/jobs/file", Permission: fleet.FileSend, Kind: Act,
		Summary: "Put uploaded files on nodes",
	})
	JobUpload = upload[JobUploaded](Operation{
		Name: "job.upload", Method: http.MethodPost, Path: "/job-files",
		Permission: fleet.FileSend, Kind: Act, Media: "application/octet-stream",
		Summary: "Store a file for a job; script:run will do, too",
	})

	JobList = op[JobListRequest, List[Job]](Operation{
		Name: "job.list", Method: http.MethodGet, Path: "/jobs", Permission: fleet.JobRead, Kind: Question,
		Summary: "List jobs, newest first",
	})
	JobShow = op[JobRequest, Job](Operation{
		Name: "job.show", Method: http.MethodGet, Path: "/jobs/{job}", Permission: fleet.JobRead, Kind: Question,
		Summary: "Show a job",
	})
	JobRuns = op[JobRunsRequest, List[JobRun]](Operation{
		Name: "job.runs", Method: http.MethodGet, Path: "/jobs/{job}/runs", Permission: fleet.JobRead, Kind: Question,
		Summary: "List a job's runs by node",
	})
	JobOutput = op[JobOutputRequest, List[JobLine]](Operation{
		Name: "job.output", Method: http.MethodGet, Path: "/jobs/{job}/output", Permission: fleet.JobRead, Kind: Question,
		Summary: "List the lines that a job's runs wrote, by node",
	})
	JobEvents = stream[JobEventsRequest, JobEvent](Operation{
		Name: "job.events", Method: http.MethodGet, Path: "/jobs/{job}/events", Permission: fleet.JobRead, Kind: Question,
		Summary: "Stream what becomes of a job and its runs, as server-sent events",
	})
	JobStop = op[JobStopRequest, Job](Operation{
		Name: "job.stop", Method: http.MethodPost, Path: "/jobs/{job}/stop", Permission: fleet.JobStop, Kind: Act,
		Summary: "Begin no more runs of a job; with kill, end those that run",
	})
	JobRerun = op[JobRerunRequest, JobStarted](Operation{
		Name: "job.rerun", Method: http.MethodPost, Path: "/jobs/{job}/rerun", Permission: fleet.JobRead, Kind: Act,
		Summary: "Order a job once more, for all of its nodes or the failed ones; the permission of its kind is needed, too",
	})
)

// jobOperations is the operations of this file, in the order of the reference.
func jobOperations() []Operation {
	return listed(
		JobPuppet, JobTask, JobCommand, JobScript, JobFile, JobUpload,
		JobList, JobShow, JobRuns, JobOutput, JobEvents, JobStop, JobRerun,
	)
}

// JobTargets says which nodes; what is given adds up. All stands alone.
type JobTargets struct {
	Nodes   []string `json:"nodes,omitempty"`
	Group   string   `json:"group,omitempty"`   // name or id
	Query   string   `json:"query,omitempty"`   // PQL that answers with a column certname, or a condition on nodes
	App     string   `json:"app,omitempty"`     // the nodes of an application: its model, Shop, or an instance, Shop[eu]
	All     bool     `json:"all,omitempty"`     // every active node
	Exclude []string `json:"exclude,omitempty"` // of all these, not those
	// Filter takes of all these those for which it holds; missing: all.
	Filter *NodeFilter `json:"filter,omitempty"`
	Limit  string      `json:"limit,omitempty"` // of those, at most so many: N, or a share such as 10%
	Seed   *int64      `json:"seed,omitempty"`  // draws the nodes of limit, the same each time; missing: the first by name
}

// NodeFilter is conditions on nodes as MCollective and Choria have them; all that is given must hold.
type NodeFilter struct {
	Facts   []string `json:"facts,omitempty"`   // NAME OP VALUE, such as os.family=Debian
	Classes []string `json:"classes,omitempty"` // NAME or /RE/ of classes in the node's last catalog
	Modules []string `json:"modules,omitempty"` // NAME or /RE/ of modules that the node has
	Names   []string `json:"names,omitempty"`   // NAME or /RE/ of the node; one of them must hold
	Words   []string `json:"words,omitempty"`   // a word with an operator is a fact, every other one a class
	Select  string   `json:"select,omitempty"`  // an expression; what it asks of nodes is asked now
}

// Any says whether something is meant, besides what is excluded.
func (t JobTargets) Any() bool {
	return t.All || len(t.Nodes) > 0 || t.Group != "" || t.Query != "" || t.App != ""
}

// JobOrder is what all kinds of job have in common.
type JobOrder struct {
	Targets JobTargets `json:"targets"`
	// Ordered lets a node wait for those that it needs: whose exported resources it collects, and whose
	// components produce what its own consume. A run begins when all have succeeded that it waits for; if one
	// of them did not, it is skipped.
	Ordered     bool   `json:"ordered,omitempty"`
	Concurrency int    `json:"concurrency,omitempty"`  // how many runs at the same time; 0: no bound of the job's own
	MaxFailures *int   `json:"max_failures,omitempty"` // more failures than this, and no more runs begin; missing: no bound
	Timeout     int64  `json:"timeout,omitempty"`      // seconds that a run may take; 0: the server's setting
	WaitOffline int64  `json:"wait_offline,omitempty"` // seconds that a node may take to connect; 0: it must be there
	Description string `json:"description,omitempty"`
	DryRun      bool   `json:"dry_run,omitempty"`     // answer with the plan, start nothing
	SkipDenied  bool   `json:"skip_denied,omitempty"` // leave out nodes that the caller may not touch
	// Expect is the digest of a plan: if the nodes are others by now, nothing is started.
	Expect string `json:"expect,omitempty"`
}

// JobPuppetRequest orders Puppet runs.
type JobPuppetRequest struct {
	JobOrder
	Environment   string   `json:"environment,omitempty"` // empty: each node's own
	Noop          *bool    `json:"noop,omitempty"`        // missing: as the node is set
	Tags          []string `json:"tags,omitempty"`
	SkipTags      []string `json:"skip_tags,omitempty"`
	Debug         bool     `json:"debug,omitempty"`
	Trace         bool     `json:"trace,omitempty"`
	EvalTrace     bool     `json:"evaltrace,omitempty"`
	ShowDiff      bool     `json:"show_diff,omitempty"`
	CachedCatalog bool     `json:"use_cached_catalog,omitempty"`
}

// JobTaskRequest orders a task.
type JobTaskRequest struct {
	JobOrder
	Environment string          `json:"environment,omitempty"` // whose code has the task; empty: production
	Task        string          `json:"task"`
	Params      json.RawMessage `json:"params,omitempty"` // an object
	// Texts are parameters as somebody typed them: the task's metadata says whether
	// "7" is a number or a text.
	Texts map[string]string `json:"texts,omitempty"`
	Noop  bool              `json:"noop,omitempty"`
}

// JobCommandRequest orders a command.
type JobCommandRequest struct {
	JobOrder
	Command string `json:"command"` // for the shell of the node
}

// JobScriptRequest orders a script.
type JobScriptRequest struct {
	JobOrder
	Name      string   `json:"name"`   // of the file; the node may choose by its ending how to run it
	Digest    string   `json:"digest"` // of job.upload
	Arguments []string `json:"arguments,omitempty"`
}

// JobFileRequest sends files.
type JobFileRequest struct {
	JobOrder
	Files []JobFileEntry `json:"files"` // made in this order
}

// JobFileEntry is one thing that a node makes.
type JobFileEntry struct {
	Kind        string `json:"kind,omitempty"`   // file (if empty), directory, symlink
	Destination string `json:"destination"`      // absolute path on the node
	Digest      string `json:"digest,omitempty"` // of a file: of job.upload
	Source      string `json:"source,omitempty"` // of a symlink: what it points to
}

// JobUploaded is a stored file.
type JobUploaded struct {
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
}

// JobStarted is a job that was ordered, or the plan of a dry run.
type JobStarted struct {
	Job  *Job    `json:"job,omitempty"` // missing in a dry run
	Plan JobPlan `json:"plan"`          // the targets are listed in a dry run only
}

// JobPlan is what a job would do.
type JobPlan struct {
	Digest  string   `json:"digest"` // of the nodes; see JobOrder.Expect
	Nodes   int      `json:"nodes"`
	Offline []string `json:"offline,omitempty"` // those of the nodes that are not connected
	// NeverConnected is those of the offline nodes from which no agent has ever connected: they need one first.
	NeverConnected []string `json:"never_connected,omitempty"`
	Denied         []string `json:"denied,omitempty"` // nodes that the caller may not touch: they are not in the plan
	// DeniedUnseen is how many more nodes are denied whose names the caller may not see.
	DeniedUnseen int         `json:"denied_unseen,omitempty"`
	Targets      []JobTarget `json:"targets,omitempty"`
	// Of a Puppet run, in a dry run: what leads from the catalogs that nodes applied last to those that they may have now, of nodes with
	// a new catalog. Missing: there are none.
	Changes *FleetDifference `json:"changes,omitempty"`
	// nodes with a new catalog that are not among them: it is not known what they applied, the caller may not read their catalogs, or they are too many
	Uncompared int `json:"uncompared,omitempty"`
}

// JobTarget is a node of a plan.
type JobTarget struct {
	Node      string     `json:"node"`
	Connected *Connected `json:"connected,omitempty"` // missing: it is not
	Layer     int        `json:"layer,omitempty"`     // of an ordered job: 0 waits for nobody, each other one for some of earlier layers
	WaitsFor  []string   `json:"waits_for,omitempty"` // of an ordered job
	Expected  string     `json:"expected,omitempty"`  // of a Puppet run: what is known of it, one of the texts below
}

// A node's next Puppet run, as known from its newest catalog and its latest report.
const (
	ExpectNothing = "nothing new"      // the node applied the catalog that it has now, and that run did not fail
	ExpectCatalog = "new catalog"      // another one than the node applied last
	ExpectNoop    = "changes in noop"  // the latest run was one without changes, and would have made some
	ExpectFailed  = "failed last time" // and there is no other catalog
	ExpectUnknown = "unknown"          // it has never reported
)

// JobListRequest narrows the list of jobs.
type JobListRequest struct {
	State string `query:"state"` // queued, running, stopping, finished, failed, stopped; active: the first three
	Kind  string `query:"kind"`  // puppet, task, action, command, script, file
	Actor string `query:"actor"`
	Node  string `query:"node"` // that have a run on this node
	Task  string `query:"task"`
	After string `query:"after"`
	Limit int    `query:"limit"`
}

// JobRequest names a job.
type JobRequest struct {
	Job string `path:"job"`
}

// JobRunsRequest asks for runs.
type JobRunsRequest struct {
	Job   string `path:"job"`
	State string `query:"state"` // one state; final: all that are over; failing: all that are over and did not succeed
	Node  string `query:"node"`
	After string `query:"after"`
	Limit int    `query:"limit"`
}

// JobOutputRequest asks for output.
type JobOutputRequest struct {
	Job   string `path:"job"`
	Node  string `query:"node"` // empty: of all, by name
	After string `query:"after"`
	Limit int    `query:"limit"`
}

// JobEventsRequest asks for a stream. A header Last-Event-ID wins over After.
type JobEventsRequest struct {
	Job     string `path:"job"`
	After   string `query:"after"`   // the number of the last event that is known
	Summary bool   `query:"summary"` // only the job with its counts, as often as they change, but at most four times a second; no runs
}

// JobStopRequest stops a job.
type JobStopRequest struct {
	Job  string `path:"job"`
	Kill bool   `json:"kill,omitempty"` // also end what runs
}

// JobRerunRequest orders a job again. What is missing stays as it was.
type JobRerunRequest struct {
	Job         string            `path:"job"`
	Only        string            `json:"only,omitempty"`   // failed (if empty), all
	Params      json.RawMessage   `json:"params,omitempty"` // of a task: an object, added to what was given; hidden ones must be given again
	Texts       map[string]string `json:"texts,omitempty"`  // see JobTaskRequest
	Concurrency *int              `json:"concurrency,omitempty"`
	MaxFailures *int              `json:"max_failures,omitempty"`
	Timeout     *int64            `json:"timeout,omitempty"`
	WaitOffline *int64            `json:"wait_offline,omitempty"`
	Noop        *bool             `json:"noop,omitempty"`
	Description string            `json:"description,omitempty"`
	DryRun      bool              `json:"dry_run,omitempty"`
	SkipDenied  bool              `json:"skip_denied,omitempty"`
	Expect      string            `json:"expect,omitempty"`
}

// Job is one order over many nodes.
type Job struct {
	ID          string          `json:"id"`
	Kind        string          `json:"kind"`             // puppet, task, action, command, script, file
	Title       string          `json:"title"`            // what it does, in a word or two: the task, the command
	State       string          `json:"state"`            // queued, running, stopping, finished, failed, stopped
	Reason      string          `json:"reason,omitempty"` // why it was stopped
	Actor       string          `json:"actor"`
	Description string          `json:"description,omitempty"`
	Environment string          `json:"environment,omitempty"`
	Version     string          `json:"version,omitempty"` // of the code that the task is of
	Targets     JobTargets      `json:"targets"`           // as they were asked for
	Order       json.RawMessage `json:"order,omitempty"`   // in job.show: what every node is asked to do; sensitive values are "(hidden)"
	Noop        bool            `json:"noop,omitempty"`
	Ordered     bool            `json:"ordered,omitempty"`
	Concurrency int             `json:"concurrency,omitempty"`
	MaxFailures *int            `json:"max_failures,omitempty"`
	Timeout     int64           `json:"timeout,omitempty"`
	WaitOffline int64           `json:"wait_offline,omitempty"`
	RerunOf     string          `json:"rerun_of,omitempty"`
	CreatedAt   time.Time       `json:"created_at"`
	StartedAt   *time.Time      `json:"started_at,omitempty"`
	FinishedAt  *time.Time      `json:"finished_at,omitempty"`
	Nodes       int             `json:"nodes"`
	Counts      map[string]int  `json:"counts"` // of runs, by state; they add up to Nodes
}

// JobRun is one node's share of a job.
type JobRun struct {
	Job         string `json:"job"`
	Node        string `json:"node"`
	Transaction string `json:"transaction"`
	// waiting, sent, running; or final: succeeded, failed, errored, timed_out, killed, refused, offline, skipped, lost
	State      string        `json:"state"`
	Reason     string        `json:"reason,omitempty"` // of every final state
	ExitCode   *int          `json:"exit_code,omitempty"`
	Puppet     *JobRunPuppet `json:"puppet,omitempty"` // of a Puppet run that ended
	Output     JobRunOutput  `json:"output"`
	SentAt     *time.Time    `json:"sent_at,omitempty"`
	StartedAt  *time.Time    `json:"started_at,omitempty"`
	FinishedAt *time.Time    `json:"finished_at,omitempty"`
}

// JobRunPuppet is what a Puppet run says of itself.
type JobRunPuppet struct {
	Status      string         `json:"status"`                     // changed, unchanged, failed, unknown
	Transaction string         `json:"transaction_uuid,omitempty"` // of its report
	Environment string         `json:"environment,omitempty"`
	Metrics     map[string]int `json:"metrics,omitempty"`
	ErrorType   string         `json:"error_type,omitempty"`

	Report        string `json:"report,omitempty"`         // report.show has it
	Failed        int    `json:"failed,omitempty"`         // resources
	Pending       int    `json:"pending,omitempty"`        // resources that would have been changed
	FirstFailed   string `json:"first_failed,omitempty"`   // the resource that failed first
	Message       string `json:"message,omitempty"`        // why it failed
	Held          string `json:"held,omitempty"`           // why it was given the catalog that it had: the newest one is held
	CachedCatalog bool   `json:"cached_catalog,omitempty"` // it applied the catalog that it had, for want of a new one: the run counts as failed
}

// JobRunOutput is how much a run wrote; job.output has the lines.
type JobRunOutput struct {
	Lines  int    `json:"lines"`
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest,omitempty"` // the same for the same output; missing: there is none
	Cut    bool   `json:"cut,omitempty"`    // there was more than is kept
}

// JobLine is one line of output, without its end.
type JobLine struct {
	Node   string    `json:"node"`
	Stream string    `json:"stream"` // stdout, stderr
	Number int       `json:"number"` // from 1, within a run; standard output first
	At     time.Time `json:"at"`     // when the server had it
	Text   string    `json:"text"`
	More   bool      `json:"more,omitempty"` // the line is long, and goes on in the next one
}

// JobEvent is a change of a job or of one of its runs: how it is now. A change that was
// followed by another one may be left out. The stream ends after the job is over.
type JobEvent struct {
	Number int64   `json:"number"` // grows; the stream can be resumed after it
	Job    *Job    `json:"job,omitempty"`
	Run    *JobRun `json:"run,omitempty"`
}
