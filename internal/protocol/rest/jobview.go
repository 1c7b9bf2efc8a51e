package rest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// wholeJob is a job with what every node is asked to do.
func wholeJob(j job.Job) api.Job {
	shown := jobOf(j)
	shown.Order = orderOf(j.Spec)
	return shown
}

// jobOf is a job as the API lists it.
func jobOf(j job.Job) api.Job {
	s := j.Spec
	shown := api.Job{
		ID: strconv.FormatInt(j.ID, 10), Kind: string(s.Kind), Title: titleOf(s), State: string(j.Status), Reason: j.Reason, Actor: j.Actor,
		Description: s.Description, Environment: string(s.Environment), Noop: isNoop(s),
		Targets: api.JobTargets{
			Nodes: certnames(s.Targets.Nodes), Group: s.Targets.Group, Query: s.Targets.Query, App: s.Targets.App, All: s.Targets.All,
			Exclude: certnames(s.Targets.Exclude), Filter: (*api.NodeFilter)(s.Targets.Filter), Limit: s.Targets.Limit, Seed: s.Targets.Seed,
		},
		Ordered: s.Ordered, Concurrency: s.Concurrency, MaxFailures: s.MaxFailures, Timeout: int64(s.Timeout / time.Second),
		WaitOffline: int64(s.WaitOffline / time.Second),
		CreatedAt:   j.CreatedAt.UTC(), StartedAt: timeOf(j.StartedAt), FinishedAt: timeOf(j.FinishedAt), Nodes: j.Counts.Total(), Counts: map[string]int{},
	}
	if s.Kind == job.Task {
		shown.Version = string(s.Task.Version)
	}
	if j.RerunOf != 0 {
		shown.RerunOf = strconv.FormatInt(j.RerunOf, 10)
	}
	for state, n := range j.Counts {
		shown.Counts[string(state)] = n
	}
	return shown
}

func certnames(nodes []fleet.Certname) []string {
	var names []string
	for _, node := range nodes {
		names = append(names, string(node))
	}
	return names
}

// maxTitle is how much of a command names its job, in runes.
const maxTitle = 80

// titleOf is what a job does, in a word or two.
func titleOf(s job.Spec) string {
	title := ""
	switch s.Kind {
	case job.Task:
		title = s.Task.Name
	case job.Command:
		title = s.Command.Command
	case job.Script:
		title = s.Script.Script.Name
	case job.File:
		if len(s.File.Entries) > 0 {
			title = s.File.Entries[len(s.File.Entries)-1].Destination
		}
		if more := len(s.File.Entries) - 1; more > 0 {
			title += fmt.Sprintf(" and %d more", more)
		}
	case job.Action:
		title = s.Action.Module + " " + s.Action.Action
	case job.Puppet:
	}
	if runes := []rune(title); len(runes) > maxTitle {
		title = string(runes[:maxTitle-1]) + "…"
	}
	return title
}

func isNoop(s job.Spec) bool {
	return s.Kind == job.Puppet && s.Puppet.Noop || s.Kind == job.Task && s.Task.Noop
}

// hidden stands for a value that is not shown.
const hidden = `"(hidden)"`

// orderOf is what every node is asked to do.
func orderOf(s job.Spec) json.RawMessage {
	var order any
	switch s.Kind {
	case job.Puppet:
		order = s.Puppet
	case job.Task:
		order = taskView(*s.Task)
	case job.Command:
		order = s.Command
	case job.Script:
		order = s.Script
	case job.File:
		order = s.File
	case job.Action:
		order = struct {
			Module string                     `json:"module"`
			Action string                     `json:"action"`
			Input  map[string]json.RawMessage `json:"input"`
		}{s.Action.Module, s.Action.Action, withHidden(s.Action.Input, s.Action.Hidden)}
	}
	text, err := json.Marshal(order)
	if err != nil {
		return nil
	}
	return text
}

// taskView is a task and its parameters.
func taskView(t job.TaskSpec) any {
	return struct {
		Task       string                     `json:"task"`
		Parameters map[string]json.RawMessage `json:"parameters"`
	}{t.Name, withHidden(t.Parameters, t.Hidden)}
}

// withHidden are the members of an object, with the names alone of those that are hidden.
func withHidden(object json.RawMessage, names []string) map[string]json.RawMessage {
	members := map[string]json.RawMessage{}
	if len(object) > 0 {
		_ = json.Unmarshal(object, &members) // it is an object: it was checked
	}
	for _, name := range names {
		members[name] = json.RawMessage(hidden)
	}
	return members
}

// runOf is a run as the API shows it.
func runOf(id int64, r job.Run) api.JobRun {
	shown := api.JobRun{
		Job: strconv.FormatInt(id, 10), Node: string(r.Node), Transaction: r.ID, State: string(r.State), Reason: r.Reason, ExitCode: r.ExitCode,
		Output: api.JobRunOutput{Lines: r.Output.Lines, Bytes: r.Output.Bytes, Digest: string(r.Output.Digest), Cut: r.Output.Cut},
		SentAt: timeOf(r.SentAt), StartedAt: timeOf(r.StartedAt), FinishedAt: timeOf(r.FinishedAt),
	}
	if r.Puppet != nil {
		shown.Puppet = &api.JobRunPuppet{
			Status: r.Puppet.Status, Transaction: r.Puppet.Transaction, Environment: r.Puppet.Environment, Metrics: r.Puppet.Metrics, ErrorType: r.Puppet.ErrorType,
			Report: r.Puppet.Report, Failed: r.Puppet.Failed, Pending: r.Puppet.Pending,
			FirstFailed: r.Puppet.First, Message: r.Puppet.Message, CachedCatalog: r.Puppet.Cached, Held: r.Puppet.Held,
		}
	}
	return shown
}

// placeText is where a page of output ends, as the next page is asked for.
func placeText(p job.Place) string { return fmt.Sprintf("%d.%d", p.Run, p.Line) }

func parsePlace(text string) (p job.Place, ok bool) {
	if text == "" {
		return p, true
	}
	run, line, found := strings.Cut(text, ".")
	var errs [2]error
	p.Run, errs[0] = strconv.Atoi(run)
	p.Line, errs[1] = strconv.Atoi(line)
	return p, found && errs[0] == nil && errs[1] == nil && p.Run >= 0 && p.Line >= 0
}
