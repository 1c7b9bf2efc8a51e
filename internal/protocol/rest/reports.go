package rest

import (
	"context"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// reports answers the operations of reports.
type reports struct {
	gate    *gate
	reports inventory.ReportStore
}

func (h *reports) bindings() []binding {
	return []binding{
		each(answer(api.ReportList, h.listReports)),
		each(answer(api.ReportShow, h.showReport)),
	}
}

func (h *reports) listReports(ctx context.Context, request api.ReportListRequest) (api.List[api.Report], error) {
	list := api.List[api.Report]{Items: []api.Report{}}
	page, err := pageOf(request.After, request.Limit)
	if err != nil {
		return list, err
	}
	filter := inventory.ReportFilter{Status: request.Status, Page: page}
	if request.Name != "" {
		if filter.Certname, err = fleet.ParseCertname(request.Name); err != nil {
			return list, err
		}
	}
	switch request.Status {
	case "", "failed", "changed", "unchanged":
	default:
		return list, fault.New(fault.Invalid, "status must be failed, changed or unchanged, not %.40q", request.Status)
	}
	reports, err := h.reports.Reports(ctx, filter)
	if err != nil {
		return list, err
	}
	visible, err := seen(ctx, h.gate, fleet.ReportRead, reports, func(r inventory.Report) fleet.Object {
		return fleet.Object{Node: r.Certname, Environment: r.Environment}
	})
	if err != nil {
		return list, err
	}
	for _, report := range visible {
		list.Items = append(list.Items, reportOf(report))
	}
	if len(reports) == page.Limit {
		list.Next = string(reports[len(reports)-1].ID)
	}
	return list, nil
}

func (h *reports) showReport(ctx context.Context, request api.ReportRequest) (api.Report, error) {
	report, err := h.reports.Report(ctx, request.ID)
	if err != nil {
		return api.Report{}, err
	}
	if err := h.gate.allow(ctx, fleet.ReportRead, fleet.Object{Node: report.Certname, Environment: report.Environment}); err != nil {
		return api.Report{}, err
	}
	answer := reportOf(report)
	answer.Metrics = report.Metrics
	for _, line := range report.Logs {
		answer.Logs = append(answer.Logs, api.ReportLog{
			Time: line.Time.UTC(), Level: line.Level, Source: line.Source, Message: line.Message, File: line.File, Line: line.Line,
		})
	}
	for _, resource := range report.Resources {
		answer.Resources = append(answer.Resources, resourceOf(resource))
	}
	return answer, nil
}

func reportOf(r inventory.Report) api.Report {
	return api.Report{
		Short: r.Short,
		ID:    string(r.ID), Name: string(r.Certname), Environment: string(r.Environment), Status: r.Status,
		Noop: r.Noop, NoopPending: r.NoopPending, Corrective: r.CorrectiveChange, Completed: r.Completed,
		PuppetVersion: r.PuppetVersion, Version: r.ConfigVersion, TransactionUUID: r.TransactionUUID, CatalogUUID: r.CatalogUUID,
		CachedCatalog: r.CachedCatalog, JobID: r.JobID, StartedAt: r.StartedAt.UTC(), Seconds: r.EndedAt.Sub(r.StartedAt).Seconds(),
		ReceivedAt: r.ReceivedAt.UTC(), Counts: api.ReportCounts(r.Counts),
	}
}

func resourceOf(r inventory.ResourceStatus) api.ReportResource {
	answer := api.ReportResource{
		Type: r.Type, Title: r.Title, Status: statusOf(r), File: r.File, Line: r.Line,
		Corrective: r.CorrectiveChange, Seconds: r.EvaluationTime,
	}
	for _, e := range r.Events {
		answer.Events = append(answer.Events, api.ReportEvent{
			Property: e.Property, Status: e.Status, Previous: e.Previous, Desired: e.Desired, Message: e.Message, Time: e.Time.UTC(),
		})
	}
	return answer
}

// statusOf is the one word for what became of a resource; the worst counts.
func statusOf(r inventory.ResourceStatus) string {
	switch {
	case r.Failed || r.FailedToRestart:
		return "failed"
	case r.Skipped:
		return "skipped"
	case r.Changed:
		return "changed"
	}
	for _, e := range r.Events {
		if e.Status == "noop" {
			return "noop"
		}
	}
	return "unchanged"
}
