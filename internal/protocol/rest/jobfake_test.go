package rest_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/target"
	"github.com/tutti-project/tutti/internal/task"
	"github.com/tutti-project/tutti/internal/task/tasktest"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// jobParts is what a job.Service needs besides its store: web-1 is connected and in the
// group Web, web-2 and db-1 are not.
type jobParts struct{}

func (jobParts) Order(context.Context, fleet.Certname, pxp.Request) error { return nil }
func (jobParts) Ask(context.Context, fleet.Certname, pxp.Request) error   { return nil }

func (jobParts) Connected(node fleet.Certname) (job.Link, bool) {
	return job.Link{Agent: "agent/1"}, node == "web-1"
}

func (jobParts) Resolve(_ context.Context, t job.Targets) ([]fleet.Certname, error) {
	all := []fleet.Certname{"db-1", "web-1", "web-2"}
	var nodes []fleet.Certname
	for _, node := range all {
		if t.All || slices.Contains(t.Nodes, node) || t.Group == "Web" && node == "web-1" {
			nodes = append(nodes, node)
		}
	}
	nodes = slices.DeleteFunc(nodes, func(n fleet.Certname) bool { return slices.Contains(t.Exclude, n) })
	return target.Limit(nodes, t.Limit, t.Seed)
}

func (jobParts) Refused(ctx context.Context, actor fleet.Actor, s job.Spec, nodes []fleet.Certname) (map[fleet.Certname]string, error) {
	refused := map[fleet.Certname]string{}
	inside, err := fakeScopes{}.Inside(ctx, webCondition, nodes)
	for _, node := range nodes {
		object := fleet.Object{Node: node, Environment: s.Environment}
		if inside[node] {
			object.Inside = []string{webCondition}
		}
		if err := rbac.Allow(actor, target.Permissions()[s.Kind], object); err != nil {
			refused[node] = fault.Detail(err)
		}
	}
	return refused, err
}

func (jobParts) Seal(plain []byte) ([]byte, error)  { return append([]byte("sealed "), plain...), nil }
func (jobParts) Open(sealed []byte) ([]byte, error) { return sealed[len("sealed "):], nil }

// newJobs is a service over a store in memory; nothing is dispatched.
func newJobs(t *testing.T) (*job.Service, *jobtest.Store) {
	t.Helper()
	store := jobtest.NewStore()
	var last atomic.Int64
	service, err := job.New(job.Parts{
		Store: store, Sender: jobParts{}, Resolver: jobParts{}, Graph: jobtest.Edges{}, Gate: jobParts{}, Sealer: jobParts{}, Ends: jobtest.Ends{},
		NewID: func() string { return fmt.Sprintf("run-%d", last.Add(1)) }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}, job.DefaultSettings())
	check(t, err)
	return service, store
}

// someTasks is rest.Tasks with the tasks of one version, in production.
type someTasks struct{}

var taskFiles = withStock(tasktest.Version{
	"db/tasks/passwd.json": `{"input_method": "stdin", "supports_noop": true, "files": ["db/lib/"], "parameters": {"user": {"type": "String[1]"},
		"password": {"type": "String", "sensitive": true}, "tries": {"type": "Integer", "default": 3}, "salt": {"type": "Sensitive[String]", "default": "of the code"}}}`,
	"db/tasks/passwd.sh":   "#!/bin/sh\n",
	"db/lib/helper.rb":     "",
	"db/tasks/free.sh":     "#!/bin/sh\n",
	"db/tasks/remote.json": `{"remote": true}`,
	"db/tasks/remote.sh":   "",
	"db/tasks/broken.json": `{"description": 5}`,
	"db/tasks/broken.sh":   "",
})

func withStock(v tasktest.Version) tasktest.Version {
	maps.Copy(v, stockTasks)
	return v
}

func (someTasks) TaskVersion(_ context.Context, env fleet.Environment) (fleet.Digest, task.Version, error) {
	if env != "production" {
		return "", nil, fault.New(fault.NotFound, "environment %s has no code", env)
	}
	return "version-1", taskFiles, nil
}

// end makes runs of a job end.
func end(t *testing.T, store *jobtest.Store, id int64, outcome func(node fleet.Certname) (int, string)) {
	t.Helper()
	runs, err := store.Runs(t.Context(), id, job.RunPage{Limit: 1000})
	check(t, err)
	var events []job.Event
	for _, r := range runs {
		code, text := outcome(r.Node)
		state := job.Succeeded
		if code != 0 {
			state = job.RunFailed
		}
		output, chunks := job.EncodeLines(text, strings.Repeat("warning\n", code), time.Now())
		events = append(events,
			job.Event{Run: r.ID, What: job.WasSent, At: time.Now(), Due: time.Now().Add(time.Hour)},
			job.Event{Run: r.ID, Node: r.Node, What: job.Accepted, At: time.Now(), Due: time.Now().Add(time.Hour)},
			job.Event{
				Run: r.ID, Node: r.Node, What: job.Ended, At: time.Now(), State: state, Reason: fmt.Sprintf("exit code %d", code), Outcome: &job.Outcome{
					ExitCode: code, Output: output, Chunks: chunks,
				},
			})
	}
	_, err = store.Apply(t.Context(), events)
	check(t, err)
}
