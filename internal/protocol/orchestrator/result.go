package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tutti-project/tutti/internal/job"
)

// problemView is the error in a node's result.
type problemView struct {
	Kind    string         `json:"kind"`
	Message string         `json:"msg"`
	Details map[string]any `json:"details"`
}

// result is what became of a run; an object always, with _error unless it went well.
func (h *jobs) result(ctx context.Context, j job.Job, run job.Run) (map[string]any, error) {
	switch {
	case !run.State.Final():
		return map[string]any{}, nil
	case run.State != job.Succeeded && run.State != job.RunFailed:
		return noResult(run), nil
	case j.Spec.Kind == job.Puppet:
		return puppetResult(j, run), nil
	}
	written, err := h.Jobs.Written(ctx, run)
	if err != nil {
		return nil, err
	}
	return writtenResult(j.Spec.Kind, run, written), nil
}

// noResult is that of a run of which there is none.
func noResult(run job.Run) map[string]any {
	kind := "puppetlabs.orchestrator/" + executionFailure
	switch run.State {
	case job.Skipped:
		kind = "puppetlabs.tasks/skipped-node"
	case job.TimedOut:
		kind = "puppetlabs.orchestrator/timeout"
	case job.Killed:
		kind = "puppetlabs.orchestrator/stopped"
	case job.Offline:
		kind = "puppetlabs.orchestrator/not-connected"
	case job.Waiting, job.Sent, job.Running, job.Succeeded, job.RunFailed, job.Errored, job.Refused, job.Lost:
	}
	details := map[string]any{"state": run.State}
	p := problemView{kind, cmp.Or(run.Reason, "there is no result"), details}
	return map[string]any{"kind": p.Kind, "msg": p.Message, "details": details, "_error": p}
}

// puppetMetrics is the names of what clients read, and what it is called in reports of Puppet runs.
var puppetMetrics = []string{
	"total", "failed", "changed", "corrective_change", "skipped", "restarted", "scheduled", "out_of_sync", "failed_to_restart",
}

func metrics(counted map[string]int) map[string]int {
	all := map[string]int{}
	for _, name := range puppetMetrics {
		all[name] = counted[name]
	}
	return all
}

// puppetResult is that of a Puppet run.
func puppetResult(j job.Job, run job.Run) map[string]any {
	result := map[string]any{"noop": map[string]bool{"noop": j.Spec.Puppet.Noop, "no_noop": j.Spec.Puppet.NoNoop}}
	if p := run.Puppet; p != nil {
		result["status"], result["hash"], result["environment"], result["transaction_uuid"] = p.Status, p.Report, p.Environment, p.Transaction
		result["metrics"], result["configuration_version"] = metrics(p.Metrics), ""
	}
	if run.State == job.RunFailed {
		result["_error"] = problemView{"puppetlabs.orchestrator/puppet-run-failed", cmp.Or(run.Reason, "the Puppet run failed"), exitCode(run)}
	}
	return result
}

func exitCode(run job.Run) map[string]any {
	if run.ExitCode == nil {
		return map[string]any{}
	}
	return map[string]any{"exit_code": *run.ExitCode}
}

// maxErrorText is how much of what a program wrote as errors is in a message, in bytes.
const maxErrorText = 4 << 10

// writtenResult is that of a program: the object that it wrote, or its text.
func writtenResult(kind job.Kind, run job.Run, written map[job.Stream]string) map[string]any {
	stdout, stderr := written[job.Stdout], written[job.Stderr]
	var result map[string]any
	if kind == job.Command || kind == job.Script {
		result = map[string]any{"stdout": stdout, "stderr": stderr, "exit_code": run.ExitCode}
	} else if text := strings.TrimSpace(stdout); !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &result) != nil {
		result = map[string]any{"_output": stdout}
	}
	if _, told := result["_error"]; run.State == job.RunFailed && !told {
		message := cmp.Or(run.Reason, "it failed")
		if run.ExitCode != nil && stderr != "" {
			message = fmt.Sprintf("The %s exited with %d: %s", kind, *run.ExitCode, stderr[:min(len(stderr), maxErrorText)])
		}
		result["_error"] = problemView{"puppetlabs.tasks/task-error", strings.ToValidUTF8(strings.TrimSpace(message), ""), exitCode(run)}
	}
	return result
}
