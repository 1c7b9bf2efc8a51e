package api

import (
	"encoding/json"
	"net/http"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Tasks of the deployed code.
var (
	TaskList = op[EnvironmentRequest, List[Task]](Operation{
		Name: "task.list", Method: http.MethodGet, Path: "/environments/{environment}/tasks",
		Permission: fleet.TaskRead, Kind: Question,
		Summary: "List the tasks of an environment's current version",
	})
	TaskShow = op[TaskRequest, Task](Operation{
		Name: "task.show", Method: http.MethodGet, Path: "/environments/{environment}/tasks/{task}",
		Permission: fleet.TaskRead, Kind: Question,
		Summary: "Show a task: its parameters and files",
	})
)

// taskOperations is the operations of this file, in the order of the reference.
func taskOperations() []Operation {
	return listed(TaskList, TaskShow)
}

// TaskRequest names a task of an environment.
type TaskRequest struct {
	Environment string `path:"environment"`
	Task        string `path:"task"` // module or module::task
}

// Task is a task of an environment's current version. A list holds no
// parameters and files.
type Task struct {
	Name            string               `json:"name"`
	Environment     string               `json:"environment"`
	Version         string               `json:"version"`
	Description     string               `json:"description,omitempty"`
	Private         bool                 `json:"private,omitempty"`
	Problem         string               `json:"problem,omitempty"` // why the task cannot be run
	SupportsNoop    bool                 `json:"supports_noop,omitempty"`
	InputMethod     string               `json:"input_method,omitempty"` // stdin, environment, both, powershell; empty: by the file's name
	AnyParameters   bool                 `json:"any_parameters,omitempty"`
	Parameters      []TaskParameter      `json:"parameters,omitempty"`
	Implementations []TaskImplementation `json:"implementations,omitempty"`
	Files           []TaskFile           `json:"files,omitempty"`
}

// TaskParameter is a parameter of a task.
type TaskParameter struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"` // a Puppet data type
	Description string          `json:"description,omitempty"`
	Required    bool            `json:"required"`
	Sensitive   bool            `json:"sensitive,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
}

// TaskImplementation is one executable of a task, for nodes that have what it needs.
type TaskImplementation struct {
	Name         string   `json:"name"`
	Requirements []string `json:"requirements,omitempty"` // features of the node
	InputMethod  string   `json:"input_method,omitempty"`
}

// TaskFile is a file that a node needs to run a task.
type TaskFile struct {
	Name   string `json:"name"` // module/tasks/file
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
}
