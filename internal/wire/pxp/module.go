package pxp

import (
	"github.com/go-json-experiment/json/jsontext"
)

// The modules that every agent has; Puppet is external in the original agent.
const (
	Ping        = "ping"
	Echo        = "echo"
	Status      = "status"
	Command     = "command"
	Script      = "script"
	Task        = "task"
	File        = "file"
	Puppet      = "pxp-module-puppet"
	Transaction = "transaction"
)

// The actions of those modules. Ping's and echo's are called like the module.
const (
	Query    = "query"    // status
	Run      = "run"      // command, script, task, pxp-module-puppet
	Download = "download" // file
	Cancel   = "cancel"   // transaction
)

// PingParams are the parameters of ping.
type PingParams struct {
	Sent string `json:"sender_timestamp,omitzero"`
}

// PingResults are the results of ping.
type PingResults struct {
	Hops []jsontext.Value `json:"request_hops"` // of PCP 1; always empty
}

// EchoParams are the parameters of echo.
type EchoParams struct {
	Argument string `json:"argument"`
}

// EchoResults are the results of echo.
type EchoResults struct {
	Outcome string `json:"outcome"`
}

// CommandParams are the parameters of command run.
type CommandParams struct {
	Command string `json:"command"` // for the shell of the user that the agent runs as
}

// Outcome is the results of command, script, task and file.
type Outcome struct {
	ExitCode int    `json:"exitcode"`
	Stdout   string `json:"stdout,omitzero"` // UTF-8 without a byte 0
	Stderr   string `json:"stderr,omitzero"`
	Ended    string `json:"ended,omitzero"` // Tutti's own: why the agent ended it, one of the words below
}

// Why an agent ended a program before it ended by itself.
const (
	EndedByOrder = "cancelled" // a transaction cancel
	EndedByTime  = "timeout"   // it ran longer than the node allows
)

// Source is where an agent gets a file: a path and parameters below the address of one of its servers.
type Source struct {
	Path   string            `json:"path"`
	Params map[string]string `json:"params"`
}

// FileSource is a file that a task or script needs.
type FileSource struct {
	Filename string `json:"filename"` // of a task: an executable's plain name, module/directory/path of other files
	SHA256   string `json:"sha256"`
	URI      Source `json:"uri"`
	Bytes    int64  `json:"size_bytes,omitzero"`
}

// TaskParams are the parameters of task run.
type TaskParams struct {
	Task        string         `json:"task"`
	Input       jsontext.Value `json:"input"` // an object
	InputMethod string         `json:"input_method,omitzero"`
	Features    []string       `json:"features,omitzero"`
	Metadata    *TaskMetadata  `json:"metadata,omitzero"` // if it is there, input_method and features beside it mean nothing
	Files       []FileSource   `json:"files"`             // one at least
}

// TaskMetadata is what an agent has to know of a task.
type TaskMetadata struct {
	InputMethod     string               `json:"input_method,omitzero"`
	Features        []string             `json:"features,omitzero"`
	Files           []string             `json:"files,omitzero"`
	Implementations []TaskImplementation `json:"implementations,omitzero"`
}

// TaskImplementation is one executable of a task, with what a node must have for it.
type TaskImplementation struct {
	Name         string   `json:"name"`
	Requirements []string `json:"requirements,omitzero"`
	Files        []string `json:"files,omitzero"`
	InputMethod  string   `json:"input_method,omitzero"`
}

// ScriptParams are the parameters of script run.
type ScriptParams struct {
	Script    FileSource `json:"script"`
	Arguments []string   `json:"arguments"`
}

// FileParams are the parameters of file download; entries are handled in order.
type FileParams struct {
	Files []FileEntry `json:"files"`
}

// FileEntry is one thing that file download makes. All keys are always written: the original wants them.
type FileEntry struct {
	Kind        string `json:"kind"` // file, directory, symlink
	Destination string `json:"destination"`
	LinkSource  string `json:"link_source"` // what a symlink points to
	URI         Source `json:"uri"`
	SHA256      string `json:"sha256"`
}

// PuppetParams are the parameters of pxp-module-puppet run.
type PuppetParams struct {
	Env   []string `json:"env"`   // means nothing; the original wants it
	Flags []string `json:"flags"` // of puppet agent; a value is an element of its own
	Job   string   `json:"job,omitzero"`
}

// PuppetResults are the results of pxp-module-puppet run.
type PuppetResults struct {
	Kind            string         `json:"kind,omitzero"`
	Time            string         `json:"time"`
	TransactionUUID string         `json:"transaction_uuid"` // of the report
	Environment     string         `json:"environment"`
	Status          string         `json:"status"` // changed, unchanged, failed; unknown
	Metrics         map[string]int `json:"metrics"`
	ExitCode        int            `json:"exitcode"` // -1: puppet was not run
	Version         int            `json:"version"`
	ErrorType       string         `json:"error_type,omitzero"`
	Error           string         `json:"error,omitzero"`
	Catalog         string         `json:"catalog,omitzero"` // Tutti's own: digest of the kept catalog that was applied
	Pending         int            `json:"pending,omitzero"` // Tutti's own: resources that noop kept from changing
	Stderr          string         `json:"stderr,omitzero"`  // Tutti's own: the end of what Puppet printed on standard error, if it failed
}

// PuppetOrder is what the program gets on standard input that does a Puppet run,
// as every external module does.
type PuppetOrder struct {
	Input         jsontext.Value      `json:"input"` // PuppetParams
	Configuration PuppetConfiguration `json:"configuration"`
}

// PuppetConfiguration is the configuration of pxp-module-puppet.
type PuppetConfiguration struct {
	Puppet  string         `json:"puppet_bin,omitzero"`
	Catalog *PuppetCatalog `json:"catalog,omitzero"` // to be applied; nil: puppet finds one
	Plugins string         `json:"plugins,omitzero"` // path of the file that says which plugins were synced last
	// Settings is the path of the file that keeps what Puppet says of its settings; empty: it is asked each time.
	Settings string `json:"settings,omitzero"`
	Reports  string `json:"reports,omitzero"` // directory for reports that no server took; empty: they are lost

	Events      string `json:"events,omitzero"`         // directory in which the run writes its events; empty: it does not
	Transaction string `json:"transaction_id,omitzero"` // that ordered the run
}

// The error types of a Puppet run.
const (
	InvalidJSON          = "invalid_json"
	NoPuppetBin          = "no_puppet_bin"
	NoLastRunReport      = "no_last_run_report"
	InvalidLastRunReport = "invalid_last_run_report"
	AgentDisabled        = "agent_disabled"
	AgentLocked          = "agent_locked"
	AgentFailedToStart   = "agent_failed_to_start"
	AgentExitNonZero     = "agent_exit_non_zero"
)

// StatusParams are the parameters of status query.
type StatusParams struct {
	Transaction string `json:"transaction_id"`
}

// StatusResults are the results of status query. That it has an exit code says
// that the transaction ended; output alone does not.
type StatusResults struct {
	Transaction string `json:"transaction_id"`
	Status      string `json:"status"`
	ExitCode    *int   `json:"exitcode,omitzero"`
	Stdout      string `json:"stdout,omitzero"`
	Stderr      string `json:"stderr,omitzero"`
}

// The states of a transaction, as status query says them.
const (
	Running = "running"
	Success = "success"
	Failed  = "failure"
	Unknown = "unknown" // it never came, its results are gone, or nobody knows how it ended
)

// CancelParams are the parameters of transaction cancel.
type CancelParams struct {
	Transaction string `json:"transaction_id"`
	Reason      string `json:"reason,omitzero"` // for the agent's log
}

// CancelResults are the results of transaction cancel: what the agent found. The
// transaction's own outcome follows when its processes are gone.
type CancelResults struct {
	Transaction string `json:"transaction_id"`
	Status      string `json:"status"` // running: its processes are being stopped; success, failure: it was over; unknown
}

// How the descriptions of failures begin that a controller tells apart.
const (
	UnknownModule = "unknown module"                       // the agent does not have the module
	UnknownAction = "unknown action"                       // nor the action
	InvalidInput  = "invalid input for"                    // what was given does not fit the action
	Refused       = "refused by this node's policy"        // whose owner does not allow it
	Cancelled     = "cancelled"                            // by a transaction cancel, before it gave results
	Vanished      = "task process is not running"          // and nobody knows how it ended
	TimedOut      = "stopped after its longest time"       // before it gave results
	TooLarge      = "Message size: "                       // of the answer; the agent keeps it to itself
	Full          = "this node has too much to do already" // nothing ran; try again later with a new transaction
)
