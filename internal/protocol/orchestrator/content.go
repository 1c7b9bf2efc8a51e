package orchestrator

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/task"
)

// content is the code of an environment, for who may see its tasks.
func (h *base) content(r *http.Request, name string) (fleet.Environment, task.Version, error) {
	ctx := r.Context()
	env, err := fleet.ParseEnvironment(name)
	if err != nil {
		return "", nil, h.invalid("environment", "%s", fault.Detail(err))
	}
	actor := fleet.ActorFrom(ctx)
	if err := rbac.Allow(actor, fleet.TaskRead, fleet.Object{Environment: env}); err != nil {
		return env, nil, h.explained(ctx, actor, fleet.TaskRead, err)
	}
	_, version, err := h.Tasks.TaskVersion(ctx, env)
	return env, version, h.missing(unknownEnvironment, map[string]string{"environment": name}, err)
}

// taskLink is where a task is described: that of a module is called init.
func taskLink(l links, name string) string {
	module, short, found := strings.Cut(name, "::")
	if !found {
		short = "init"
	}
	return l.to("tasks", module, short)
}

func (h *contents) listTasks(w http.ResponseWriter, r *http.Request) error {
	env, version, err := h.content(r, cmp.Or(r.URL.Query().Get("environment"), defaultEnvironment))
	if err != nil {
		return err
	}
	tasks, err := task.List(r.Context(), version)
	if err != nil {
		return err
	}
	type item struct {
		named
		Permitted bool `json:"permitted"`
	}
	actor, items := fleet.ActorFrom(r.Context()), []item{}
	for _, t := range tasks {
		if t.Private || t.Err != nil { // they are not listed there either
			continue
		}
		object := fleet.Object{Environment: env, Task: t.Name}
		permitted := rbac.Allow(actor, fleet.TaskRun, object) == nil || len(rbac.NodeScopes(actor, fleet.TaskRun)) > 0
		items = append(items, item{named{ID: taskLink(linksOf(r), t.Name), Name: t.Name}, permitted})
	}
	pejson.Write(w, http.StatusOK, map[string]any{"environment": map[string]any{"name": string(env), "code_id": nil}, "items": items})
	return nil
}

func (h *contents) showTask(w http.ResponseWriter, r *http.Request) error {
	env, version, err := h.content(r, cmp.Or(r.URL.Query().Get("environment"), defaultEnvironment))
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(r.PathValue("module")+"::"+r.PathValue("task"), "::init")
	t, err := task.Find(r.Context(), version, name)
	if err != nil {
		return h.missing(unknownTask, map[string]string{"task": name, "environment": string(env)}, err)
	}
	pejson.Write(w, http.StatusOK, map[string]any{
		"id": taskLink(linksOf(r), t.Name), "name": t.Name, "environment": map[string]any{"name": string(env), "code_id": nil},
		"metadata": metadataView(t.Metadata), "files": filesView(t, env),
	})
	return nil
}

// metadataView is the metadata of a task with those of its keys that clients look for, whether it has them or not.
func metadataView(m task.Metadata) map[string]any {
	parameters := map[string]any{}
	for name, p := range m.Parameters {
		view := map[string]any{"type": cmp.Or(p.Type, "Any"), "description": p.Description}
		if p.Default != nil {
			view["default"] = p.Default
		}
		if p.Secret() {
			view["sensitive"] = true
		}
		parameters[name] = view
	}
	view := map[string]any{
		"description": m.Description, "private": m.Private, "supports_noop": m.SupportsNoop, "input_method": cmp.Or(m.InputMethod, "both"),
		"parameters": parameters, "extensions": struct{}{},
	}
	if len(m.Extensions) > 0 {
		view["extensions"] = m.Extensions
	}
	if len(m.Implementations) > 0 {
		view["implementations"] = m.Implementations
	}
	if len(m.Files) > 0 {
		view["files"] = m.Files
	}
	return view
}

func filesView(t task.Task, env fleet.Environment) []any {
	files := []any{}
	for _, f := range t.Files {
		kind := "modules"
		if f.Kind == "tasks" {
			kind = "tasks"
		}
		path := "/puppet/v3/file_content/" + kind + "/" + f.Module + "/" + f.Path
		files = append(files, map[string]any{
			"filename": f.Name(), "sha256": f.Digest, "size_bytes": f.Bytes,
			"uri": map[string]any{"path": path, "params": map[string]string{"environment": string(env)}},
		})
	}
	return files
}

// environmentView is an environment as it is listed. Its settings are those of every environment here.
func environmentView(l links, env fleet.Environment) map[string]any {
	return map[string]any{
		"id": l.to("environments", string(env)), "name": string(env),
		"applications": named{ID: l.to("environments", string(env), "applications")}, "instances": named{ID: l.to("environments", string(env), "instances")},
		"settings": map[string]any{"modulepath": []string{"modules"}, "manifest": "manifests", "environment_timeout": "unlimited", "config_version": ""},
	}
}

// environments is those that who asks may see, by name.
func (h *contents) environments(r *http.Request) (names []fleet.Environment, err error) {
	all, err := h.Environments.Environments(r.Context())
	actor := fleet.ActorFrom(r.Context())
	for _, env := range slices.Sorted(maps.Keys(all)) {
		if rbac.Allow(actor, fleet.CodeRead, fleet.Object{Environment: env}) == nil {
			names = append(names, env)
		}
	}
	return names, err
}

func (h *contents) listEnvironments(w http.ResponseWriter, r *http.Request) error {
	names, err := h.environments(r)
	if err != nil {
		return err
	}
	items := []any{}
	for _, env := range names {
		items = append(items, environmentView(linksOf(r), env))
	}
	pejson.Write(w, http.StatusOK, map[string]any{"items": items})
	return nil
}

func (h *contents) showEnvironment(w http.ResponseWriter, r *http.Request) error {
	names, err := h.environments(r)
	if err != nil {
		return err
	}
	env := fleet.Environment(r.PathValue("environment"))
	if !slices.Contains(names, env) {
		return h.noEnvironment(string(env))
	}
	pejson.Write(w, http.StatusOK, environmentView(linksOf(r), env))
	return nil
}

func (h *contents) noEnvironment(name string) error {
	return h.bad(unknownEnvironment, map[string]string{"environment": name}, "the environment %.80q has no code", name)
}

// applications is those of the environment that a path names.
func (h *contents) applications(r *http.Request) ([]appgraph.Application, error) {
	env := fleet.Environment(r.PathValue("environment"))
	all, err := h.Environments.Environments(r.Context())
	if err != nil {
		return nil, err
	}
	if _, there := all[env]; !there {
		return nil, h.noEnvironment(string(env))
	}
	return h.Applications.Applications(r.Context(), "", env)
}

func (h *contents) listApplications(w http.ResponseWriter, r *http.Request) error {
	apps, err := h.applications(r)
	if err != nil {
		return err
	}
	items, seen := []any{}, map[string]bool{}
	for _, a := range apps {
		if !seen[a.Name.Type] {
			items = append(items, map[string]any{"name": a.Name.Type, "kind": "application", "file": nil, "line": nil, "parameters": struct{}{}})
		}
		seen[a.Name.Type] = true
	}
	pejson.Write(w, http.StatusOK, map[string]any{
		"items": items, "instances": named{ID: linksOf(r).to("environments", r.PathValue("environment"), "instances")},
	})
	return nil
}

func (h *contents) listInstances(w http.ResponseWriter, r *http.Request) error {
	apps, err := h.applications(r)
	if err != nil {
		return err
	}
	type component struct {
		Type     string         `json:"type"`
		Title    string         `json:"title"`
		Node     fleet.Certname `json:"node"`
		Produces []string       `json:"produces"`
		Consumes []string       `json:"consumes"`
	}
	items := []any{}
	for _, a := range apps {
		components := []component{}
		for _, c := range a.Components {
			components = append(components, component{c.Name.Type, c.Name.Title, c.Node, refs(c.Produces), refs(c.Consumes)})
		}
		items = append(items, map[string]any{"type": a.Name.Type, "title": a.Name.Title, "components": components})
	}
	pejson.Write(w, http.StatusOK, map[string]any{"items": items})
	return nil
}

func refs(list []appgraph.Ref) []string {
	texts := make([]string, len(list))
	for i, ref := range list {
		texts[i] = ref.String()
	}
	return texts
}
