package sql

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Reports is what runs reported.
type Reports struct {
	*base
	together *gathering[storedReport] // PostgreSQL
}

const reportColumns = `r.digest, n.certname, r.environment, r.status, r.noop, r.noop_pending, r.corrective, r.completed,
	r.puppet_version, r.report_format, r.config_version, r.transaction_uuid, r.catalog_uuid, r.code_id, r.job_id, r.cached_catalog, r.server,
	r.started_at, r.ended_at, r.received_at, r.resources, r.changed, r.failed, r.skipped, r.unchanged, r.noops, r.correctives,
	r.produced_at, r.producer, r.kind, r.short`

func reportFields(r *inventory.Report) []any {
	return []any{
		&r.ID, &r.Certname, &r.Environment, &r.Status, &r.Noop, &r.NoopPending, &r.CorrectiveChange, &r.Completed,
		&r.PuppetVersion, &r.ReportFormat, &r.ConfigVersion, &r.TransactionUUID, &r.CatalogUUID, &r.CodeID, &r.JobID, &r.CachedCatalog, &r.Server,
		at(&r.StartedAt), at(&r.EndedAt), at(&r.ReceivedAt), &r.Counts.Resources, &r.Counts.Changed, &r.Counts.Failed, &r.Counts.Skipped,
		&r.Counts.Unchanged, &r.Counts.Noop, &r.Counts.Corrective, at(&r.ProducedAt), &r.Producer, &r.Type, &r.Short,
	}
}

// Reports implements inventory.ReportStore.
func (s *Reports) Reports(ctx context.Context, f inventory.ReportFilter) ([]inventory.Report, error) {
	if err := inventory.CheckPage(f.Page); err != nil {
		return nil, err
	}
	where, args, err := s.narrow(ctx, f)
	if err != nil {
		return nil, explain(err, "list reports")
	}
	reports, err := collect(ctx, s.reads, func(row scanner) (r inventory.Report, err error) {
		err = row.Scan(reportFields(&r)...)
		return r, err
	}, "SELECT "+reportColumns+" FROM reports r JOIN nodes n ON n.id = r.node_id"+where+
		" ORDER BY r.received_at DESC, r.digest DESC LIMIT "+mark(len(args)+1), append(args, f.Page.Limit)...)
	return reports, explain(err, "list reports")
}

// narrow writes the filter's conditions. There are eight forms in all, so the
// statements can stay prepared.
func (s *Reports) narrow(ctx context.Context, f inventory.ReportFilter) (string, []any, error) {
	var where []string
	var args []any
	if f.Certname != "" {
		args = append(args, f.Certname)
		where = append(where, "r.node_id = (SELECT id FROM nodes WHERE certname = "+mark(len(args))+")")
	}
	if f.Status != "" {
		args = append(args, f.Status)
		where = append(where, "r.status = "+mark(len(args)))
	}
	if f.Page.After != "" {
		received, err := one[int64](s.reads.row(ctx, "SELECT received_at FROM reports WHERE digest = $1", f.Page.After))
		if errors.Is(err, sql.ErrNoRows) {
			return "", nil, fault.New(fault.Invalid, "the page should start after report %.64q, which is not stored", f.Page.After)
		}
		if err != nil {
			return "", nil, err
		}
		args = append(args, received, f.Page.After)
		where = append(where, "(r.received_at, r.digest) < ("+mark(len(args)-1)+", "+mark(len(args))+")")
	}
	if len(where) == 0 {
		return "", nil, nil
	}
	return " WHERE " + strings.Join(where, " AND "), args, nil
}

// Report implements inventory.ReportStore.
func (s *Reports) Report(ctx context.Context, id string) (inventory.Report, error) {
	id = strings.ToLower(id)
	if err := inventory.CheckReportID(id); err != nil {
		return inventory.Report{}, err
	}
	type found struct {
		report inventory.Report
		packed []byte
	}
	rows, err := collect(ctx, s.reads, func(row scanner) (f found, err error) {
		err = row.Scan(append(reportFields(&f.report), &f.packed)...)
		return f, err
	}, "SELECT "+reportColumns+`, d.document FROM reports r JOIN nodes n ON n.id = r.node_id JOIN report_documents d ON d.report_id = r.id
		WHERE r.digest >= $1 AND r.digest < $2 LIMIT 2`, id, id+"g")
	switch {
	case err != nil:
		return inventory.Report{}, explain(err, "read report %s", id)
	case len(rows) == 0:
		return inventory.Report{}, fault.New(fault.NotFound, "there is no report %s", id)
	case len(rows) > 1:
		return inventory.Report{}, fault.New(fault.Conflict, "more than one report starts with %s", id)
	}
	document, err := s.packer.unpack(rows[0].packed)
	if err == nil {
		err = inventory.ParseDocument(document, &rows[0].report)
	}
	return rows[0].report, explain(err, "read report %s", id)
}

// pruneBatch is how many reports are forgotten at once, so that writers need not
// wait long.
const pruneBatch = 200

// PruneReports implements inventory.ReportStore.
func (s *Reports) PruneReports(ctx context.Context, before time.Time) (int, error) {
	total := 0
	for {
		var count int
		err := s.write(ctx, func(ctx context.Context, q querier) error {
			ids, err := collect(ctx, q, one[int64], `SELECT r.id FROM reports r JOIN nodes n ON n.id = r.node_id
				WHERE r.received_at < $1 AND r.digest <> n.latest_report ORDER BY r.received_at LIMIT $2`, micros(before), pruneBatch)
			if err != nil {
				return err
			}
			if err := dropReports(ctx, q, ids); err != nil {
				return err
			}
			count = len(ids)
			return nil
		})
		total += count
		if err != nil || count < pruneBatch {
			return total, explain(err, "prune reports")
		}
	}
}

func dropReports(ctx context.Context, q querier, ids []int64) error {
	for _, id := range ids {
		for _, text := range []string{
			"DELETE FROM events WHERE report_id = $1",
			"DELETE FROM report_documents WHERE report_id = $1",
			"DELETE FROM reports WHERE id = $1",
		} {
			if _, err := q.exec(ctx, text, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// ShortenReports implements inventory.ReportStore.
func (s *Reports) ShortenReports(ctx context.Context, before time.Time) (int, error) {
	total := 0
	for {
		var count int
		err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
			count, err = s.shortenReports(ctx, q, before)
			return err
		})
		total += count
		if err != nil || count < pruneBatch {
			return total, explain(err, "keep reports in short")
		}
	}
}

func (s *Reports) shortenReports(ctx context.Context, q querier, before time.Time) (int, error) {
	type whole struct {
		id       int64
		received time.Time
	}
	rows, err := collect(ctx, q, func(row scanner) (w whole, err error) {
		err = row.Scan(&w.id, at(&w.received))
		return w, err
	}, `SELECT r.id, r.received_at FROM reports r JOIN nodes n ON n.id = r.node_id
		WHERE r.short = 0 AND r.received_at < $1 AND r.digest <> n.latest_report ORDER BY r.received_at, r.digest LIMIT $2`, micros(before), pruneBatch)
	if err != nil {
		return 0, err
	}
	for _, w := range rows {
		short := inventory.Report{Logs: []inventory.RunLog{inventory.InShort(inventory.Report{ReceivedAt: w.received})}}
		document := s.packer.packWith(func(dst []byte) []byte { return inventory.AppendDocument(dst, &short) })
		for _, statement := range []struct {
			text string
			args []any
		}{
			{"DELETE FROM events WHERE report_id = $1", []any{w.id}},
			{"UPDATE report_documents SET document = $1 WHERE report_id = $2", []any{document, w.id}},
			{"UPDATE reports SET short = 1 WHERE id = $1", []any{w.id}},
		} {
			if _, err := q.exec(ctx, statement.text, statement.args...); err != nil {
				return 0, err
			}
		}
	}
	return len(rows), nil
}
