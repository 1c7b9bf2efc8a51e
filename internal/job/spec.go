package job

import (
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/graph"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Kind is what a job orders its nodes to do.
type Kind string

// The kinds. Each has its part in a Spec.
const (
	Puppet  Kind = "puppet"
	Task    Kind = "task"
	Command Kind = "command"
	Script  Kind = "script"
	File    Kind = "file"
	Action  Kind = "action"
)

// Spec is one order over many nodes, as somebody gave it. It is stored with its job,
// except for what is secret in it.
type Spec struct {
	Kind    Kind         `json:"kind"`
	Puppet  *PuppetSpec  `json:"puppet,omitempty"` // of these, the one of Kind is there
	Task    *TaskSpec    `json:"task,omitempty"`
	Command *CommandSpec `json:"command,omitempty"`
	Script  *ScriptSpec  `json:"script,omitempty"`
	File    *FileSpec    `json:"file,omitempty"`
	Action  *ActionSpec  `json:"action,omitempty"`

	Targets     Targets           `json:"targets"`
	Environment fleet.Environment `json:"environment,omitempty"` // of a Puppet run and of a task; empty: the node's own
	Description string            `json:"description,omitempty"`
	// Key is for orders that must not be given twice: ordered again under it, it is the same job. Empty: it has none.
	Key string `json:"key,omitempty"`
	// Userdata is an object of the client that gave the order. It is shown as it came; nobody here looks into it.
	Userdata json.RawMessage `json:"userdata,omitempty"`
	Plan     int64           `json:"plan,omitempty"`     // the plan of a client that ordered it; 0: none
	Schedule int64           `json:"schedule,omitempty"` // the schedule that ordered it; 0: none

	// Ordered lets a run begin only when all those have succeeded that it waits for: the edges
	// among the targets when the job is created. If one of them ends otherwise, it is skipped.
	Ordered bool `json:"ordered,omitempty"`

	Concurrency int           `json:"concurrency,omitempty"`  // runs at once; 0: as many as there are
	MaxFailures *int          `json:"max_failures,omitempty"` // more end the job; nil: no budget
	Timeout     time.Duration `json:"timeout,omitempty"`      // of each run; 0: the server's
	WaitOffline time.Duration `json:"wait_offline,omitempty"` // how long, from its creation, the job waits for nodes that are not connected
}

// PuppetSpec is a Puppet run.
type PuppetSpec struct {
	Noop             bool     `json:"noop,omitempty"`
	NoNoop           bool     `json:"no_noop,omitempty"` // also where the node's own setting is noop
	Tags             []string `json:"tags,omitempty"`
	SkipTags         []string `json:"skip_tags,omitempty"`
	Debug            bool     `json:"debug,omitempty"`
	Trace            bool     `json:"trace,omitempty"`
	Evaltrace        bool     `json:"evaltrace,omitempty"`
	ShowDiff         bool     `json:"show_diff,omitempty"`
	UseCachedCatalog bool     `json:"use_cached_catalog,omitempty"`
	NoCachedCatalog  bool     `json:"no_cached_catalog,omitempty"` // also where the node's own setting is to use it

	// What few orders say; without it the node's settings count.
	Ordering             string `json:"ordering,omitempty"` // manifest, title-hash, random
	UseCacheOnFailure    *bool  `json:"use_cache_on_failure,omitempty"`
	FileTimeout          *int   `json:"file_timeout,omitempty"` // these four are seconds
	HTTPConnectTimeout   *int   `json:"http_connect_timeout,omitempty"`
	HTTPKeepaliveTimeout *int   `json:"http_keepalive_timeout,omitempty"`
	HTTPReadTimeout      *int   `json:"http_read_timeout,omitempty"`
}

// TaskSpec is a task of a version of code. Whoever makes it has found the task and
// checked the parameters.
type TaskSpec struct {
	Name       string            `json:"name"`
	Version    fleet.Digest      `json:"version,omitempty"`
	Files      []FileRef         `json:"files"`
	Metadata   *pxp.TaskMetadata `json:"metadata,omitempty"`
	Noop       bool              `json:"noop,omitempty"`
	Parameters json.RawMessage   `json:"parameters,omitempty"` // an object, without what is secret; nil is an empty one
	// Secret is an object with the sensitive parameters. It is sealed, never stored
	// or shown, and forgotten when the job has ended; Hidden keeps their names.
	Secret json.RawMessage `json:"-"`
	Hidden []string        `json:"hidden,omitempty"`
}

// CommandSpec is a line for the shell.
type CommandSpec struct {
	Command string `json:"command"`
}

// ScriptSpec is an uploaded file that is run.
type ScriptSpec struct {
	Script    FileRef  `json:"script"`
	Arguments []string `json:"arguments,omitempty"`
}

// ActionSpec is an action of a module that nodes have. Whoever makes it has checked the input as far as the module is known.
type ActionSpec struct {
	Module string          `json:"module"`
	Action string          `json:"action"`
	Input  json.RawMessage `json:"input,omitempty"` // an object; nil is an empty one
}

// FileSpec is what is put on nodes, in this order.
type FileSpec struct {
	Entries []FileEntry `json:"entries"`
}

// FileEntry is a file, a directory or a symbolic link.
type FileEntry struct {
	Kind        string  `json:"kind"` // file, directory, symlink
	Destination string  `json:"destination"`
	File        FileRef `json:"file,omitzero"` // of a file
	LinkSource  string  `json:"link_source,omitempty"`
}

// FileRef is content that nodes fetch from the server.
type FileRef struct {
	Name   string       `json:"name"` // of a task: an executable's plain name, module/directory/path of other files
	Digest fleet.Digest `json:"digest"`
	Bytes  int64        `json:"bytes,omitempty"`
}

// Targets is which nodes: all that one of these names, without those excluded.
type Targets struct {
	Nodes   []fleet.Certname `json:"nodes,omitempty"`
	Group   string           `json:"group,omitempty"` // its name or id
	Query   string           `json:"query,omitempty"` // PQL with a column certname, or a condition on nodes
	App     string           `json:"app,omitempty"`   // the nodes of an application's components: its name
	All     bool             `json:"all,omitempty"`   // that the inventory knows or that are connected
	Exclude []fleet.Certname `json:"exclude,omitempty"`
	Filter  *filter.Filter   `json:"filter,omitempty"` // of all these, those for which it holds; nil: all
	Limit   string           `json:"limit,omitempty"`  // of those, at most N or P%
	Seed    *int64           `json:"seed,omitempty"`   // of the draw for Limit; nil: the first by name
	// Settled is whom a plan found for all of this, sorted: a job gets them as they are, and nobody is looked for again. nil: nobody was looked for.
	Settled []fleet.Certname `json:"-"`
}

// Plan is what a job would do.
type Plan struct {
	Spec    Spec // with the server's defaults filled in, without secrets
	Targets []Target
	// Of an ordered job, which targets wait for which others, and in which layers they run: each
	// as soon as those are done that it waits for, whatever else of their layer still runs.
	Edges  []graph.Edge[fleet.Certname]
	Layers [][]fleet.Certname
}

// Target is a node of a plan, in the order of names.
type Target struct {
	Node      fleet.Certname
	Connected bool
	Agent     string // how its agent calls itself, if it is connected
	Denied    string // what who asks lacks; empty: nothing
}

// Denied counts the targets that who asks may not touch.
func (p Plan) Denied() int {
	n := 0
	for _, t := range p.Targets {
		if t.Denied != "" {
			n++
		}
	}
	return n
}

// Files is all content that nodes fetch for this order.
func (s Spec) Files() []FileRef {
	switch s.Kind {
	case Task:
		return s.Task.Files
	case Script:
		return []FileRef{s.Script.Script}
	case File:
		var files []FileRef
		for _, entry := range s.File.Entries {
			if entry.Kind == "file" {
				files = append(files, entry.File)
			}
		}
		return files
	case Puppet, Command, Action:
	}
	return nil
}

// Bulk is what may be large in an order.
type Bulk struct {
	Parameters json.RawMessage  `json:"parameters,omitempty"` // of a task; of an action, its input
	Nodes      []fleet.Certname `json:"nodes,omitempty"`      // that are targets by their name
	Exclude    []fleet.Certname `json:"exclude,omitempty"`
}

// Apart is an order without its bulk, and that.
func (s Spec) Apart() (Spec, Bulk) {
	bulk := Bulk{Nodes: s.Targets.Nodes, Exclude: s.Targets.Exclude}
	s.Targets.Nodes, s.Targets.Exclude = nil, nil
	if s.Kind == Task {
		t := *s.Task
		bulk.Parameters = t.Parameters
		t.Parameters, s.Task = nil, &t
	}
	if s.Kind == Action {
		a := *s.Action
		bulk.Parameters = a.Input
		a.Input, s.Action = nil, &a
	}
	return s, bulk
}

// With is the inverse of Apart.
func (s Spec) With(bulk Bulk) Spec {
	s.Targets.Nodes, s.Targets.Exclude = bulk.Nodes, bulk.Exclude
	if s.Kind == Task {
		t := *s.Task
		t.Parameters, s.Task = bulk.Parameters, &t
	}
	if s.Kind == Action {
		a := *s.Action
		a.Input, s.Action = bulk.Parameters, &a
	}
	return s
}
