package rest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/task"
)

// Tasks finds the tasks of environments' current versions.
type Tasks interface {
	// TaskVersion returns an environment's current version; NotFound if it has no code.
	TaskVersion(ctx context.Context, env fleet.Environment) (fleet.Digest, task.Version, error)
}

// tasks answers the operations of tasks.
type tasks struct {
	tasks Tasks
}

func (h *tasks) bindings() []binding {
	return []binding{
		answer(api.TaskList, h.listTasks),
		answer(api.TaskShow, h.showTask),
	}
}

func (h *tasks) listTasks(ctx context.Context, request api.EnvironmentRequest) (api.List[api.Task], error) {
	list := api.List[api.Task]{Items: []api.Task{}}
	env, err := fleet.ParseEnvironment(request.Environment)
	if err != nil {
		return list, err
	}
	id, version, err := h.tasks.TaskVersion(ctx, env)
	if err != nil {
		return list, err
	}
	tasks, err := task.List(ctx, version)
	for _, t := range tasks {
		item := api.Task{Name: t.Name, Environment: string(env), Version: string(id), Description: t.Description, Private: t.Private}
		if t.Err != nil {
			item.Problem = fault.Detail(t.Err)
		}
		list.Items = append(list.Items, item)
	}
	return list, err
}

func (h *tasks) showTask(ctx context.Context, request api.TaskRequest) (api.Task, error) {
	env, err := fleet.ParseEnvironment(request.Environment)
	if err != nil {
		return api.Task{}, err
	}
	id, version, err := h.tasks.TaskVersion(ctx, env)
	if err != nil {
		return api.Task{}, err
	}
	t, err := task.Find(ctx, version, request.Task)
	if err != nil {
		return api.Task{}, err
	}
	shown := taskOf(t)
	shown.Environment, shown.Version = string(env), string(id)
	return shown, nil
}

func taskOf(t task.Task) api.Task {
	m := t.Metadata
	shown := api.Task{
		Name: t.Name, Description: m.Description, Private: m.Private, SupportsNoop: m.SupportsNoop, InputMethod: m.InputMethod,
		AnyParameters: m.Parameters == nil,
	}
	for _, name := range slices.Sorted(maps.Keys(m.Parameters)) {
		p := m.Parameters[name]
		shown.Parameters = append(shown.Parameters, api.TaskParameter{
			Name: name, Type: cmp.Or(p.Type, "Any"), Description: p.Description, Required: p.Required(), Sensitive: p.Secret(), Default: p.Default,
		})
	}
	for _, i := range m.Implementations {
		shown.Implementations = append(shown.Implementations, api.TaskImplementation{Name: i.Name, Requirements: i.Requirements, InputMethod: i.InputMethod})
	}
	for _, f := range t.Files {
		shown.Files = append(shown.Files, api.TaskFile{Name: f.Name(), Digest: string(f.Digest), Bytes: f.Bytes})
	}
	return shown
}
