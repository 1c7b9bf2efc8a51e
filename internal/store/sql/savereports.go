package sql

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/store/sql/query"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// agentReport is the type of reports of runs; others, such as those of plans, say nothing of a node's state.
const agentReport = "agent"

// storedReport is a report on its way into the database, with its bulk packed.
type storedReport struct {
	inventory.Report
	document []byte
}

func newReports(b *base) *Reports {
	s := &Reports{base: b}
	s.together = newGathering(func(r storedReport) string { return string(r.Certname) }, s.putNewReports)
	return s
}

// SaveReport implements inventory.ReportStore.
func (s *Reports) SaveReport(ctx context.Context, r inventory.Report) error {
	if r.ProducedAt.IsZero() { // reports of this server leave it open
		r.ProducedAt = r.ReceivedAt
	}
	if r.Type == "" {
		r.Type = agentReport
	}
	stored := storedReport{r, s.packer.packWith(func(dst []byte) []byte { return inventory.AppendDocument(dst, &r) })}
	if s.writer != nil { // which lets all that is written share a transaction
		return explain(s.putNewReports(ctx, []storedReport{stored}), "save a report of %s", r.Certname)
	}
	return explain(s.together.do(ctx, stored), "save a report of %s", r.Certname)
}

// errKnown ends a write of which a part is stored already.
var errKnown = errors.New("the report is known")

// putNewReports stores those reports, of different nodes, that are not stored yet. It sorts what it is given.
func (s *Reports) putNewReports(ctx context.Context, reports []storedReport) error {
	// All who write several nodes take their rows in this order, so that they do not wait for each other in a circle.
	slices.SortFunc(reports, func(a, b storedReport) int { return strings.Compare(string(a.Certname), string(b.Certname)) })
	for len(reports) > 0 {
		var unknown []storedReport
		err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
			unknown, err = s.putReports(ctx, q, reports)
			return err
		})
		if !errors.Is(err, errKnown) {
			return err
		}
		reports = unknown // the transaction took back what it had done to the nodes of the others
	}
	return nil
}

var reportRow = []column{
	{"digest", texts},
	{"node_id", ints},
	{"environment", texts},
	{"status", texts},
	{"noop", ints},
	{"noop_pending", ints},
	{"corrective", ints},
	{"completed", ints},
	{"puppet_version", texts},
	{"report_format", ints},
	{"config_version", texts},
	{"transaction_uuid", texts},
	{"catalog_uuid", texts},
	{"code_id", texts},
	{"job_id", texts},
	{"cached_catalog", texts},
	{"server", texts},
	{"started_at", ints},
	{"ended_at", ints},
	{"received_at", ints},
	{"resources", ints},
	{"changed", ints},
	{"failed", ints},
	{"skipped", ints},
	{"unchanged", ints},
	{"noops", ints},
	{"correctives", ints},
	{"produced_at", ints},
	{"producer", texts},
	{"kind", texts},
}

// putReports stores reports with a statement for each table. If some of them are stored already it returns errKnown and the others.
func (s *Reports) putReports(ctx context.Context, q querier, reports []storedReport) (unknown []storedReport, err error) {
	nodes, err := s.putReportNodes(ctx, q, reports)
	if err != nil {
		return nil, err
	}
	heads := make([][]any, len(reports))
	for i, r := range reports {
		heads[i] = []any{
			string(r.ID), nodes[string(r.Certname)], string(r.Environment), r.Status, bit(r.Noop), bit(r.NoopPending), bit(r.CorrectiveChange), bit(r.Completed),
			query.Clean(r.PuppetVersion), int64(r.ReportFormat), query.Clean(r.ConfigVersion), query.Clean(r.TransactionUUID), query.Clean(r.CatalogUUID),
			query.Clean(r.CodeID), query.Clean(r.JobID), query.Clean(r.CachedCatalog), query.Clean(r.Server),
			micros(r.StartedAt), micros(r.EndedAt), micros(r.ReceivedAt),
			int64(r.Counts.Resources), int64(r.Counts.Changed), int64(r.Counts.Failed), int64(r.Counts.Skipped), int64(r.Counts.Unchanged),
			int64(r.Counts.Noop), int64(r.Counts.Corrective), micros(r.ProducedAt), query.Clean(r.Producer), r.Type,
		}
	}
	ids, err := s.dialect.insertKeyed(ctx, q, "reports", reportRow, "ON CONFLICT (digest) DO NOTHING", "digest", heads)
	if err != nil {
		return nil, err
	}
	if len(ids) < len(reports) {
		for _, r := range reports {
			if _, ok := ids[string(r.ID)]; ok {
				unknown = append(unknown, r)
			}
		}
		return unknown, errKnown
	}
	documents := make([][]any, len(reports))
	var events [][]any
	for i, r := range reports {
		id := ids[string(r.ID)]
		documents[i] = []any{id, r.document}
		events = append(events, eventRows(id, &r.Report)...)
	}
	if err := s.dialect.insert(ctx, q, "report_documents", []column{{"report_id", ints}, {"document", blobs}}, "", documents); err != nil {
		return nil, err
	}
	if err := s.noteRuns(ctx, q, reports); err != nil {
		return nil, err
	}
	return nil, s.dialect.insert(ctx, q, "events", eventRow, "", events)
}

var reportNodeRow = []column{
	{"certname", texts},
	{"environment", texts},
	{"created_at", ints},
	{"report_at", ints},
	{"latest_report", texts},
	{"latest_status", texts},
	{"latest_noop", ints},
	{"latest_corrective", ints},
	{"report_produced_at", ints},
}

// putReportNodes makes each report of a run its node's latest one, if it was produced last. It returns the ids of all nodes.
func (s *Reports) putReportNodes(ctx context.Context, q querier, reports []storedReport) (map[string]int64, error) {
	var runs [][]any
	others := map[string]int64{}
	for _, r := range reports {
		name, env, received, produced := string(r.Certname), string(r.Environment), micros(r.ReceivedAt), micros(r.ProducedAt)
		if r.Type == agentReport {
			runs = append(runs, []any{name, env, received, received, string(r.ID), r.Status, bit(r.Noop), bit(r.CorrectiveChange), produced})
			continue
		}
		id, err := one[int64](q.row(ctx, `INSERT INTO nodes (certname, environment, created_at) VALUES ($1, $2, $3)
			ON CONFLICT (certname) DO UPDATE SET `+activate("$4")+` RETURNING id`, name, env, received, produced))
		if err != nil {
			return nil, err
		}
		others[name] = id
	}
	set := []string{"environment = excluded.environment"}
	for _, column := range []string{"latest_report", "latest_status", "latest_noop", "latest_corrective", "report_at", "report_produced_at"} {
		set = append(set, column+" = CASE WHEN excluded.report_produced_at >= nodes.report_produced_at THEN excluded."+column+" ELSE nodes."+column+" END")
	}
	conflict := "ON CONFLICT (certname) DO UPDATE SET " + strings.Join(set, ", ") + ", " + activate("excluded.report_produced_at")
	ids, err := s.dialect.insertKeyed(ctx, q, "nodes", reportNodeRow, conflict, "certname", runs)
	maps.Copy(ids, others)
	return ids, err
}

var reportedRunRow = []column{
	{"node", texts},
	{"run", texts},
	{"report", texts},
	{"reported_at", ints},
	{"touched_at", ints},
}

// noteRuns says of runs that their reports are stored, for those who bring reports and streams of events together.
func (s *Reports) noteRuns(ctx context.Context, q querier, reports []storedReport) error {
	rows := make([][]any, 0, len(reports))
	for _, r := range reports {
		if r.Type == agentReport && pxp.CheckRun(r.TransactionUUID) == nil { // reports of other kinds belong to no run
			at := micros(r.ReceivedAt)
			rows = append(rows, []any{string(r.Certname), r.TransactionUUID, string(r.ID), at, at})
		}
	}
	return s.dialect.insert(ctx, q, "event_runs", reportedRunRow, `ON CONFLICT (node, run) DO UPDATE SET
		report = excluded.report, reported_at = excluded.reported_at, touched_at = excluded.touched_at WHERE event_runs.report = ''`, rows)
}

var eventRow = []column{
	{"report_id", ints},
	{"position", ints},
	{"type", texts},
	{"title", texts},
	{"property", texts},
	{"name", texts},
	{"status", texts},
	{"happened_at", ints},
	{"corrective", ints},
	{"message", texts},
	{"previous", texts},
	{"desired", texts},
	{"file", texts},
	{"line", ints},
	{"containment_path", texts},
}

func eventRows(report int64, r *inventory.Report) [][]any {
	var rows [][]any
	for i := range r.Resources {
		resource := &r.Resources[i]
		events := resource.Happened()
		if len(events) == 0 {
			continue
		}
		path, _ := json.Marshal(resource.ContainmentPath) // strings always marshal
		for _, e := range events {
			rows = append(rows, []any{
				report, int64(len(rows)), query.Clean(resource.Type), query.Clean(resource.Title), query.Clean(e.Property), query.Clean(e.Name),
				query.Clean(e.Status), micros(e.Time),
				bit(e.CorrectiveChange), query.Clean(e.Message), string(e.Previous), string(e.Desired), query.Clean(resource.File), int64(resource.Line), string(path),
			})
		}
	}
	return rows
}
