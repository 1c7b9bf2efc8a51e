package rest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// explainNode says why a node's last run failed.
func (h *nodes) explainNode(ctx context.Context, request api.NameRequest) (answer api.NodeReasons, err error) {
	answer = api.NodeReasons{Node: request.Name, Failed: []api.FailedResource{}, Skipped: []api.SkippedResource{}, Log: []api.ReportLog{}}
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return answer, err
	}
	node, err := h.nodes.Node(ctx, name)
	if err != nil {
		return answer, err
	}
	known := []api.Node{h.nodeOf(node)}
	if err := h.lastRuns(ctx, known); err != nil {
		return answer, err
	}
	answer.State, answer.CompileError = known[0].State, known[0].CompileError
	if node.LatestReport == "" {
		return answer, nil
	}
	report, err := h.reports.Report(ctx, string(node.LatestReport))
	if err != nil {
		return answer, err
	}
	short := reportOf(report)
	answer.Report = &short
	if report.Status != "failed" && answer.CompileError == nil {
		return answer, nil
	}
	if err := h.reasons(ctx, report, &answer); err != nil {
		return answer, err
	}
	answer.LastGood, err = h.lastGood(ctx, name)
	return answer, err
}

// maxReasonLines is how many lines of the log are told.
const maxReasonLines = 20

// reasons adds what failed in a run, and what was skipped for it.
func (h *nodes) reasons(ctx context.Context, report inventory.Report, answer *api.NodeReasons) error {
	var failed, skipped []string
	places := map[string]inventory.ResourceStatus{}
	for _, r := range report.Resources {
		resource := r.Type + "[" + r.Title + "]"
		switch statusOf(r) {
		case "failed":
			failed = append(failed, resource)
			answer.Failed = append(answer.Failed, failureOf(resource, r, report))
		case "skipped":
			skipped = append(skipped, resource)
			places[resource] = r
		}
	}
	slices.SortStableFunc(answer.Failed, func(a, b api.FailedResource) int { return a.Time.Compare(b.Time) })
	answer.FailedCount, answer.SkippedCount = len(failed), len(skipped)
	answer.Failed = answer.Failed[:min(len(answer.Failed), api.MaxReasons)]
	for _, line := range report.Logs {
		if line.Level == "err" && len(failed) == 0 && len(answer.Log) < maxReasonLines {
			answer.Log = append(answer.Log, api.ReportLog{
				Time: line.Time.UTC(), Level: line.Level, Source: line.Source, Message: line.Message, File: line.File, Line: line.Line,
			})
		}
	}
	if len(skipped) == 0 {
		return nil
	}
	catalog, err := h.catalogs.Catalog(ctx, report.Certname)
	if err != nil && fault.Of(err) != fault.NotFound {
		return err
	}
	answer.OtherCatalog = err != nil || report.CatalogUUID != "" && catalog.UUID != report.CatalogUUID
	because := inventory.Because(failed, skipped, catalog.Edges)
	for _, resource := range skipped[:min(len(skipped), api.MaxReasons)] {
		r := places[resource]
		answer.Skipped = append(answer.Skipped, api.SkippedResource{Resource: resource, Because: because[resource], File: r.File, Line: r.Line})
	}
	return nil
}

// failureOf is what a failed resource said: its first failure, or the line of the log that is about it.
func failureOf(resource string, r inventory.ResourceStatus, report inventory.Report) api.FailedResource {
	failure := api.FailedResource{Resource: resource, File: r.File, Line: r.Line, Time: report.EndedAt.UTC()}
	for _, e := range r.Events {
		if e.Status == "failure" {
			failure.Property, failure.Message, failure.Time = e.Property, e.Message, e.Time.UTC()
			break
		}
	}
	if failure.Message == "" {
		for _, line := range report.Logs {
			if line.Level == "err" && hasResource(line.Source, resource) {
				failure.Message, failure.Time = line.Message, line.Time.UTC()
				break
			}
		}
	}
	failure.Message = cmp.Or(failure.Message, "it failed; its run says no more")
	return failure
}

// lastGood is the newest report that tells of no failure.
func (h *nodes) lastGood(ctx context.Context, name fleet.Certname) (*api.Report, error) {
	var newest *api.Report
	for _, status := range []string{"changed", "unchanged"} {
		reports, err := h.reports.Reports(ctx, inventory.ReportFilter{Certname: name, Status: status, Page: inventory.Page{Limit: 1}})
		if err != nil {
			return nil, err
		}
		if len(reports) > 0 && (newest == nil || reports[0].ReceivedAt.After(newest.ReceivedAt)) {
			report := reportOf(reports[0])
			newest = &report
		}
	}
	return newest, nil
}

// hasResource says whether the source of a line, a path such as /Stage[main]/Web/File[/etc/motd]/ensure, is of a resource.
func hasResource(source, resource string) bool {
	at := strings.Index(source, "/"+resource)
	rest := at + len(resource) + 1
	return at >= 0 && (rest == len(source) || source[rest] == '/')
}
