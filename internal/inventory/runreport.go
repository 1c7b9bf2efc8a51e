package inventory

import (
	"context"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fleet"
)

// RunStore finds the reports of runs. Whoever implements ReportStore implements it, too.
type RunStore interface {
	// RunReport is the whole report of a node's run with that transaction_uuid, of several the one that came last;
	// NotFound.
	RunReport(ctx context.Context, node fleet.Certname, transaction string) (Report, error)
	// LatestReports is the latest report of each of the nodes, at most MaxNamed, without resources, logs and metrics.
	// Nodes that have none are left out.
	LatestReports(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]Report, error)
	// PendingNodes is all nodes whose latest report is one of noop that would have changed something, in no order: who counts a whole
	// fleet asks once.
	PendingNodes(ctx context.Context) ([]fleet.Certname, error)
}

// OnFailure is the cached_catalog_status of a run that was given no catalog and applied the one that the node had.
const OnFailure = "on_failure"

// ResourceFailure is a resource that failed, and why.
type ResourceFailure struct {
	Resource string // Type[title]
	Message  string
}

// FirstFailure is the resource of a run that failed first; none is zero. What failed is named before what failed to restart because of
// it. A resource that failed without an event, as one whose provider broke, has its words in the log.
func (r *Report) FirstFailure() ResourceFailure {
	var first *ResourceStatus
	for i := range r.Resources {
		s := &r.Resources[i]
		if !s.Failed && !s.FailedToRestart {
			continue
		}
		if first == nil || first.FailedToRestart && !first.Failed && s.Failed || s.Failed == first.Failed && s.Time.Before(first.Time) {
			first = s
		}
	}
	if first == nil {
		return ResourceFailure{}
	}
	f := ResourceFailure{Resource: first.Type + "[" + first.Title + "]"}
	for _, e := range first.Events {
		if e.Status == "failure" && e.Message != "" {
			f.Message = e.Message
			return f
		}
	}
	at := slices.IndexFunc(r.Logs, func(l RunLog) bool { return severe(l) && strings.Contains(l.Source, f.Resource) })
	if at >= 0 {
		f.Message = r.Logs[at].Message
	}
	return f
}

// noCatalog is how Puppet's words begin for a catalog that it was not given.
const noCatalog = "Could not retrieve catalog from remote server"

// NoCatalog is what Puppet said of the catalog that it was not given; empty if it said nothing.
func (r *Report) NoCatalog() string {
	for _, l := range r.Logs {
		if rest, ok := strings.CutPrefix(l.Message, noCatalog); ok && severe(l) {
			rest = strings.TrimPrefix(rest, ": ")
			if _, said, found := strings.Cut(rest, "Server Error: "); found {
				return said
			}
			return rest
		}
	}
	return ""
}

func severe(l RunLog) bool {
	return slices.Contains([]string{"err", "alert", "emerg", "crit"}, l.Level)
}
