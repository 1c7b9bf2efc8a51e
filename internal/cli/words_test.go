package cli

import (
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/agent"
)

// TestWordsForRuns holds that a run which would change something, or which had no catalog of its own, is never shown as one that had nothing to do.
func TestWordsForRuns(t *testing.T) {
	t.Parallel()
	dueAt := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	broken := &api.NodeError{Message: "Syntax error at '}'", File: "web.pp", Line: 12}
	for want, got := range map[string]string{
		"unchanged, 3 would change":            nodeStatus(api.Node{Status: "unchanged", Noop: true, Pending: 3}),
		"unchanged, noop":                      nodeStatus(api.Node{Status: "unchanged", Noop: true}),
		"changed, 1 would change":              nodeStatus(api.Node{Status: "changed", Pending: 1}),
		"unchanged, cached catalog":            nodeStatus(api.Node{Status: "unchanged", CachedCatalog: true}),
		"web.pp:12: Syntax error at '}'":       compileErrorOf(api.Node{CompileError: broken}),
		"":                                     compileErrorOf(api.Node{}),
		"joined, never run":                    nodeStatus(api.Node{}),
		"locked until 2026-03-01 12:00:00 UTC": listedState(api.User{State: "locked", LockedUntil: &dueAt}),
		"locked by failed logins; tutti user edit ann --unlock ends it at once": userState(api.User{Name: "ann", State: "locked"}),
		"changed, certificate revoked":                                          nodeStatus(api.Node{Status: "changed", Certificate: "revoked"}),
		"no report":                                                             nodeStatus(api.Node{CatalogAt: new(time.Time)}),
		"unchanged, 2 would change": reportStatus(api.Report{
			Status: "unchanged", Noop: true, NoopPending: true, Counts: api.ReportCounts{Noop: 2},
		}),
		"changed, 2 would change": reportStatus(api.Report{Status: "changed", NoopPending: true, Counts: api.ReportCounts{Noop: 2}}),
		"unchanged, noop ":        reportStatus(api.Report{Status: "unchanged", Noop: true}) + " ",
		"web-1: unchanged, 3 would change": runLine(api.JobRun{
			Node: "web-1", State: "succeeded", Reason: "Puppet ran", Puppet: &api.JobRunPuppet{Status: "unchanged", Pending: 3},
		}),
		"does not compile, unchanged, cached catalog":               nodeStatus(api.Node{Status: "unchanged", CachedCatalog: true, CompileError: broken}),
		"does not compile, no report":                               nodeStatus(api.Node{CompileError: broken}),
		"unchanged, with the cached catalog: it was given no other": reportStatus(api.Report{Status: "unchanged", CachedCatalog: "on_failure", Noop: true}),
		"web-1: failed: its catalog does not compile (web.pp:12: x); it applied the one it had": runLine(api.JobRun{
			Node: "web-1", State: "failed", Reason: "its catalog does not compile (web.pp:12: x); it applied the one it had",
			Puppet: &api.JobRunPuppet{Status: "unchanged"},
		}),
		"run ends, 3 would change (production)": eventText(api.Event{Kind: "end", Status: "unchanged", Environment: "production", Noop: true, Pending: 3}),
		"run ends, 1 would change (production)": eventText(api.Event{Kind: "end", Status: "changed", Environment: "production", Pending: 1}),
		"run ends, noop (production)":           eventText(api.Event{Kind: "end", Status: "unchanged", Environment: "production", Noop: true}),
		"run ends (production)":                 eventText(api.Event{Kind: "end", Status: "changed", Environment: "production"}),
		"unchanged, 2 would change, never":      lastRunText(agent.ScheduledRun{Status: "unchanged", Pending: 2}, time.Time{}),
		"not done, never: locked":               lastRunText(agent.ScheduledRun{Status: "not done", Detail: "locked"}, time.Time{}),
		"every 30m, next due now (retry)":       scheduleText(agent.Runs{Scheduled: true, Interval: "30m", Next: new(dueAt), Why: "retry"}, dueAt.Add(3*time.Second)),
		"every 30m, next in 1m30s (scheduled)": scheduleText(agent.Runs{Scheduled: true, Interval: "30m", Next: new(dueAt.Add(90 * time.Second)), Why: "scheduled"},
			dueAt),
		"every 30m, one is running":       scheduleText(agent.Runs{Scheduled: true, Interval: "30m", Next: new(dueAt), Running: true}, dueAt),
		"not submitted yet, next due now": factsRows(agent.FactsStatus{Interval: "5m", Next: new(dueAt)}, dueAt.Add(time.Second))[0][1],
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
