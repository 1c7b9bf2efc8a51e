package submit

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/task"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Tasks finds the tasks of environments' current versions.
type Tasks interface {
	// TaskVersion returns an environment's current version; NotFound if it has no code.
	TaskVersion(ctx context.Context, env fleet.Environment) (fleet.Digest, task.Version, error)
}

// Task is a task as somebody asks for it.
type Task struct {
	Name   string            `json:"name"`
	Params json.RawMessage   `json:"params,omitempty"` // an object; nil is an empty one
	Texts  map[string]string `json:"texts,omitempty"`  // parameters whose types decide what their texts mean
	Noop   bool              `json:"noop,omitempty"`
}

// TaskSpec finds a task in the code of an environment as it is now, checks what the task is given, and adds what nodes need to run it.
func TaskSpec(ctx context.Context, tasks Tasks, env fleet.Environment, t Task) (*job.TaskSpec, error) {
	id, version, err := tasks.TaskVersion(ctx, env)
	if err != nil {
		return nil, unknown(UnknownEnvironment, err)
	}
	found, err := task.Find(ctx, version, t.Name)
	if err != nil {
		return nil, unknown(UnknownTask, err)
	}
	spec, err := ordered(ctx, found, version, t)
	if err != nil {
		return nil, refuse(Malformed, err)
	}
	spec.Version = id
	return spec, nil
}

// unknown says which field of an order names a thing that is not there.
func unknown(word Word, err error) error {
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(fault.NotFound, err, "field %s: %s", word, fault.Detail(err))
		return &Refusal{word, err}
	}
	return refuse(Malformed, err)
}

// ordered checks what a task is given, and completes it with what nodes need to run it.
func ordered(ctx context.Context, t task.Task, v task.Version, order Task) (*job.TaskSpec, error) {
	if order.Noop && !t.Metadata.SupportsNoop {
		return nil, fault.New(fault.Invalid, "field noop: the task %s cannot run without changing something: its metadata does not say supports_noop", t.Name)
	}
	if t.Metadata.Remote {
		return nil, fault.New(fault.Invalid, "field task: %s is for targets that no agent runs on (remote): it cannot be run on nodes", t.Name)
	}
	given, err := t.Typed(ctx, v, order.Params, order.Texts)
	if err != nil {
		return nil, err
	}
	if names := task.Reserved(given); len(names) > 0 {
		return nil, fault.New(fault.Invalid, "field params: %.80s is not for people to give; for _noop there is the field noop", names[0])
	}
	if given, err = t.Check(ctx, v, given); err != nil {
		return nil, err
	}
	spec := &job.TaskSpec{Name: t.Name, Noop: order.Noop, Metadata: metadataOf(t.Told())}
	if spec.Parameters, spec.Secret, err = t.Split(given); err != nil {
		return nil, err
	}
	for _, needed := range t.Needed() {
		spec.Files = append(spec.Files, job.FileRef{Name: needed.Filename, Digest: needed.File.Digest, Bytes: needed.File.Bytes})
	}
	return spec, nil
}

// metadataOf is what an agent has to know of a task.
func metadataOf(m task.Metadata) *pxp.TaskMetadata {
	known := &pxp.TaskMetadata{InputMethod: m.InputMethod, Files: m.Files}
	for _, i := range m.Implementations {
		known.Implementations = append(known.Implementations, pxp.TaskImplementation{
			Name: i.Name, Requirements: i.Requirements, Files: i.Files, InputMethod: i.InputMethod,
		})
	}
	return known
}
