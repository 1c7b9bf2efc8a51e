package sql

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Unsettled implements event.Settler.
func (s *Events) Unsettled(ctx context.Context, reportedBefore time.Time, n int) ([]event.Unsettled, error) {
	runs, err := collect(ctx, s.reads, scanEventRun, "SELECT "+eventRunColumns+` FROM event_runs
		WHERE settled = 0 AND report <> '' AND (last = 0 OR ended_at > 0 OR reported_at < $1) ORDER BY reported_at, node, run LIMIT $2`, micros(reportedBefore), n)
	if err != nil || len(runs) == 0 {
		return nil, explain(err, "list runs that are not settled")
	}
	digests := make([]fleet.Digest, len(runs))
	for i, r := range runs {
		digests[i] = r.Report
	}
	reports, err := s.reportsOf(ctx, digests)
	if err != nil {
		return nil, explain(err, "read the reports of runs")
	}
	all := make([]event.Unsettled, len(runs))
	for i, r := range runs {
		all[i] = event.Unsettled{Run: r, Report: reports[r.Report]}
		if r.Last == 0 {
			continue
		}
		stream, err := collect(ctx, s.reads, scanEvent, `SELECT number, node, run, job_id, reported, stored_at, detail FROM run_events
			WHERE node = $1 AND number >= $2 AND run = $3 AND kind = 'resource' ORDER BY number`, r.Node, r.First, r.ID)
		if err != nil {
			return nil, explain(err, "read the events of a run")
		}
		for _, e := range stream {
			all[i].Stream = append(all[i].Stream, e.RunEvent)
		}
	}
	return all, nil
}

// reportsOf reads what reports say of their runs, from the rows that queries use.
func (s *Events) reportsOf(ctx context.Context, digests []fleet.Digest) (map[fleet.Digest]event.Report, error) {
	f := filter{dialect: s.dialect}
	oneOf(&f, "r.digest", digests)
	type found struct {
		digest fleet.Digest
		event.Report
	}
	heads, err := collect(ctx, s.reads, func(row scanner) (r found, err error) {
		err = row.Scan(&r.digest, &r.Environment, &r.Status, &r.Version, &r.Job, &r.Noop, at(&r.Started), at(&r.Ended))
		return r, err
	}, "SELECT r.digest, r.environment, r.status, r.config_version, r.job_id, r.noop, r.started_at, r.ended_at FROM reports r"+f.where(), f.args...)
	if err != nil {
		return nil, err
	}
	reports := make(map[fleet.Digest]event.Report, len(heads))
	for _, r := range heads {
		reports[r.digest] = r.Report
	}
	type line struct {
		digest fleet.Digest
		pxp.RunEvent
	}
	lines, err := collect(ctx, s.reads, func(row scanner) (l line, err error) {
		var old, now, path string
		err = row.Scan(&l.digest, &l.Type, &l.Title, &l.Property, &l.Name, &l.Status, at(&l.At), &l.Corrective, &l.Message, &old, &now, &l.File, &l.Line, &path)
		l.Old, l.New = rawOf(old), rawOf(now)
		_ = json.Unmarshal([]byte(path), &l.Containment) // a list of texts, or nothing
		return l, err
	}, `SELECT r.digest, e.type, e.title, e.property, e.name, e.status, e.happened_at, e.corrective, e.message, e.previous, e.desired, e.file, e.line,
		e.containment_path FROM reports r JOIN events e ON e.report_id = r.id`+f.where()+" ORDER BY e.report_id, e.position", f.args...)
	for _, l := range lines {
		r := reports[l.digest]
		r.Events = append(r.Events, l.RunEvent)
		reports[l.digest] = r
	}
	return reports, err
}

// SettleRuns implements event.Settler.
func (s *Events) SettleRuns(ctx context.Context, settlements []event.Settlement, now time.Time) (settled []event.Settlement, err error) {
	settlements = slices.Clone(settlements)
	slices.SortFunc(settlements, func(a, b event.Settlement) int {
		return cmp.Or(cmp.Compare(a.Run.Node, b.Run.Node), cmp.Compare(a.Run.ID, b.Run.ID))
	})
	keys := make([]runKey, len(settlements))
	for i, one := range settlements {
		keys[i] = runKey{one.Run.Node, one.Run.ID}
	}
	keys = slices.Compact(keys)
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		var parts []part
		settled = nil
		runs, err := s.lockEventRuns(ctx, q, keys, now)
		if err != nil {
			return err
		}
		for _, one := range settlements {
			was := runs[runKey{one.Run.Node, one.Run.ID}]
			if was.Last != one.Was || was.Settled || was.Report != one.Run.Report {
				continue
			}
			if one.Run.Job == 0 {
				if one.Run.Job, err = jobOfReport(ctx, q, one); err != nil {
					return err
				}
			}
			parts, settled = append(parts, part{one.Run, one.Add, true}), append(settled, one)
		}
		return s.appendEvents(ctx, q, parts, now)
	})
	return settled, explain(err, "settle runs")
}

// jobOfReport is the job that a report names, if it has a run on that node.
func jobOfReport(ctx context.Context, q querier, one event.Settlement) (int64, error) {
	named := event.JobNumber(one.Job)
	if named == 0 {
		return 0, nil
	}
	id, err := oneInt(q.row(ctx, "SELECT job_id FROM job_runs WHERE node = $1 AND job_id = $2 LIMIT 1", one.Run.Node, named))
	return id, err
}

// oneInt is a number, 0 when there is no row.
func oneInt(row scanner) (int64, error) {
	n, err := one[int64](row)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}
