package orchestrator

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// runsAtOnce is how many runs are read at a time.
const runsAtOnce = 1000

// runs reads all runs of a job in some states, by name.
func (h *jobs) runs(ctx context.Context, id int64, states []job.State) (all []job.Run, err error) {
	for page := (job.RunPage{Limit: runsAtOnce, States: states}); ; {
		runs, err := h.Jobs.Runs(ctx, id, page)
		if err != nil {
			return nil, err
		}
		all = append(all, runs...)
		if len(runs) < runsAtOnce {
			return all, nil
		}
		page.After = runs[len(runs)-1].Number
	}
}

// runColumns is what the nodes of a job can be ordered by.
var runColumns = map[string]func(a, b job.Run) int{
	"name":             func(a, b job.Run) int { return cmp.Compare(a.Number, b.Number) },
	"state":            func(a, b job.Run) int { return cmp.Compare(runStates[a.State], runStates[b.State]) },
	"start_timestamp":  func(a, b job.Run) int { return a.StartedAt.Compare(b.StartedAt) },
	"finish_timestamp": func(a, b job.Run) int { return a.FinishedAt.Compare(b.FinishedAt) },
	"duration": func(a, b job.Run) int {
		return cmp.Compare(a.FinishedAt.Sub(a.StartedAt), b.FinishedAt.Sub(b.StartedAt))
	},
}

// statesNamed is the states of runs that have one name.
func (h *jobs) statesNamed(name string) (states []job.State, err error) {
	if name == "" || name == "stopping" {
		return nil, nil
	}
	for state, called := range runStates {
		if called == name {
			states = append(states, state)
		}
	}
	if states == nil {
		return nil, h.invalid("state", "it is one of %s, not %.40q", strings.Join(slices.Compact(slices.Sorted(maps.Values(runStates))), ", "), name)
	}
	return states, nil
}

// jobNodes lists the nodes of a job with their results; all of them unless somebody says how many.
func (h *jobs) jobNodes(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	columns := slices.Sorted(maps.Keys(runColumns))
	p, err := h.paging(r, maxAllNodes, columns...)
	if err != nil {
		return err
	}
	states, err := h.statesNamed(r.URL.Query().Get("state"))
	if err != nil {
		return err
	}
	j, err := h.job(ctx, fleet.JobRead, "id", r.PathValue("id"))
	if err != nil {
		return err
	}
	var runs []job.Run
	if r.URL.Query().Get("state") != "stopping" { // no node is in that state here
		if runs, err = h.runs(ctx, j.ID, states); err != nil {
			return err
		}
	}
	if order := runColumns[cmp.Or(p.by, "name")]; p.by != "" || p.order != "" {
		slices.SortStableFunc(runs, order)
		if p.order == "desc" {
			slices.Reverse(runs)
		}
	}
	from := min(p.offset, len(runs))
	runs = runs[from:min(from+p.limit, len(runs))]
	l := linksOf(r)
	return h.stream(w, fmt.Sprintf(`{"next-events":%s,`, nextEvents(l, j.ID, j.Change+1)), "items", runs, func(run job.Run) (any, error) {
		result, err := h.result(ctx, j, run)
		return nodeView(l, j, run, result, h.Now()), err
	})
}

// nextEvents is where the events go on behind what is known.
func nextEvents(l links, id, next int64) []byte {
	text := strconv.FormatInt(next, 10)
	where, _ := json.Marshal(map[string]string{ //nolint:errchkjson // texts can be written
		"id": l.to("jobs", strconv.FormatInt(id, 10), "events") + "?start=" + text, "event": text,
	})
	return where
}

// stream answers with a list that is made while it is sent. An error breaks it off, so that nobody takes half of it for the whole.
func (h *jobs) stream(w http.ResponseWriter, before, key string, runs []job.Run, view func(job.Run) (any, error)) error {
	out := bufio.NewWriterSize(w, 64<<10)
	begun := false
	for i, run := range runs {
		item, err := view(run)
		if err == nil {
			var text []byte
			if text, err = json.Marshal(item); err == nil {
				if !begun {
					w.Header().Set("Content-Type", "application/json; charset=utf-8")
					_, _ = fmt.Fprintf(out, `%s"%s":[`, before, key)
				}
				if i > 0 {
					_ = out.WriteByte(',')
				}
				begun = true
				_, err = out.Write(text)
			}
		}
		if err != nil && !begun {
			return err
		}
		if err != nil {
			panic(http.ErrAbortHandler) // half an answer must not look like a whole one
		}
	}
	if !begun {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = fmt.Fprintf(out, `%s"%s":[`, before, key)
	}
	_, _ = out.WriteString("]}\n")
	_ = out.Flush() // the caller is gone if this fails
	return nil
}

// nodeView is a node of a job.
func nodeView(l links, j job.Job, run job.Run, result any, now time.Time) map[string]any {
	view := map[string]any{
		"name": run.Node, "state": runStates[run.State], "transport": "pcp", "start_timestamp": stamp(run.StartedAt), "finish_timestamp": stamp(run.FinishedAt),
		"duration": nil, "timestamp": stamp(latest(j, run)), "transaction_uuid": run.ID, "latest-event-id": run.Change,
		"details": details(l, j, run, now), "result": result,
	}
	switch {
	case run.StartedAt.IsZero():
	case !run.FinishedAt.IsZero():
		view["duration"] = run.FinishedAt.Sub(run.StartedAt).Seconds()
	default:
		view["duration"] = now.Sub(run.StartedAt).Seconds()
	}
	if run.Puppet != nil && run.Puppet.Transaction != "" {
		view["transaction_uuid"] = run.Puppet.Transaction
	}
	return view
}

// latest is when a run last became something else.
func latest(j job.Job, run job.Run) time.Time {
	at := j.CreatedAt
	for _, later := range []time.Time{run.SentAt, run.StartedAt, run.FinishedAt} {
		if later.After(at) {
			at = later
		}
	}
	return at
}

// details is what is said of a run besides its result.
func details(l links, j job.Job, run job.Run, now time.Time) map[string]any {
	d := map[string]any{"message": message(j, run)}
	switch {
	case run.State == job.Running:
		d["run-time"] = now.Sub(run.StartedAt).Seconds()
	case run.State.Final() && run.State != job.Succeeded:
		d["detail"] = run.Reason
	}
	if run.Puppet != nil { // clients use these without a look whether they are there
		d["metrics"], d["environment"] = metrics(run.Puppet.Metrics), run.Puppet.Environment
		d["report-url"] = l.to("jobs", strconv.FormatInt(j.ID, 10), "report")
		if run.Puppet.Report != "" {
			d["report-url"] = strings.TrimSuffix(l.base, Prefix) + "/api/v1/reports/" + run.Puppet.Report
		}
	}
	return d
}

// message is the words of the latest event of a run.
func message(j job.Job, run job.Run) string {
	what := "puppet run"
	switch j.Spec.Kind {
	case job.Puppet:
	case job.Task:
		what = "task " + j.Spec.Task.Name
	case job.Command, job.Script, job.File, job.Action:
		what = string(j.Spec.Kind)
	}
	switch {
	case !run.State.Final() && run.State != job.Running:
		return ""
	case run.State == job.Running:
		return fmt.Sprintf("Started %s on %s ...", what, run.Node)
	case run.State == job.Succeeded:
		return fmt.Sprintf("Finished %s on %s - Success!", what, run.Node)
	case run.State == job.RunFailed:
		return fmt.Sprintf("Failed %s on %s: %s", what, run.Node, run.Reason)
	case run.State == job.Skipped:
		return fmt.Sprintf("Skipped %s on %s: %s", what, run.Node, run.Reason)
	}
	return fmt.Sprintf("Error running %s on %s: %s", what, run.Node, run.Reason)
}
