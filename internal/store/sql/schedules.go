package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/job/schedule"
)

// Schedules is orders that are given at a time.
type Schedules struct{ *base }

const scheduleColumns = "id, revision, next_run_at, enabled, content, sealed"

func (s *Schedules) scanEntry(row scanner) (e schedule.Entry, err error) {
	var packed []byte
	if err = row.Scan(&e.ID, &e.Revision, at(&e.NextRun), &e.Enabled, &packed, &e.Sealed); err != nil {
		return e, err
	}
	if err = s.unpackJSON(packed, &e.Content); err != nil {
		err = fmt.Errorf("content of schedule %d: %w", e.ID, err)
	}
	return e, err
}

// CreateSchedule implements schedule.Store.
func (s *Schedules) CreateSchedule(ctx context.Context, e schedule.Entry) (schedule.Entry, error) {
	packed, err := s.packJSON(e.Content)
	if err != nil {
		return e, explain(err, "create a scheduled job")
	}
	e.Revision = 1
	err = s.write(ctx, func(ctx context.Context, q querier) (err error) {
		e.ID, err = one[int64](q.row(ctx, "INSERT INTO schedules (revision, next_run_at, enabled, content, sealed) VALUES ($1, $2, $3, $4, $5) RETURNING id",
			e.Revision, micros(e.NextRun), bit(e.Enabled), packed, e.Sealed))
		return err
	})
	return e, explain(err, "create a scheduled job")
}

// SaveSchedule implements schedule.Store.
func (s *Schedules) SaveSchedule(ctx context.Context, e schedule.Entry) (schedule.Entry, error) {
	packed, err := s.packJSON(e.Content)
	if err != nil {
		return e, explain(err, "change a scheduled job")
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		there, err := one[int64](q.row(ctx, "SELECT revision FROM schedules WHERE id = $1"+s.dialect.forUpdate, e.ID))
		if err != nil {
			return missing(err, "there is no scheduled job %d", e.ID)
		}
		if there != e.Revision {
			return fault.New(fault.Conflict, "somebody changed scheduled job %d meanwhile; look at it again", e.ID)
		}
		_, err = q.exec(ctx, "UPDATE schedules SET revision = $1, next_run_at = $2, enabled = $3, content = $4, sealed = $5 WHERE id = $6",
			e.Revision+1, micros(e.NextRun), bit(e.Enabled), packed, e.Sealed, e.ID)
		return err
	})
	if err == nil {
		e.Revision++
	}
	return e, explain(err, "change scheduled job %d", e.ID)
}

// Schedule implements schedule.Store.
func (s *Schedules) Schedule(ctx context.Context, id int64) (schedule.Entry, error) {
	e, err := s.scanEntry(s.reads.row(ctx, "SELECT "+scheduleColumns+" FROM schedules WHERE id = $1", id))
	return e, explain(missing(err, "there is no scheduled job %d", id), "read scheduled job %d", id)
}

// Schedules implements schedule.Store.
func (s *Schedules) Schedules(ctx context.Context) ([]schedule.Entry, error) {
	list, err := collect(ctx, s.reads, s.scanEntry, "SELECT "+scheduleColumns+" FROM schedules ORDER BY id")
	return list, explain(err, "list scheduled jobs")
}

// DueSchedules implements schedule.Store.
func (s *Schedules) DueSchedules(ctx context.Context, now time.Time, n int) ([]schedule.Entry, error) {
	list, err := collect(ctx, s.reads, s.scanEntry, "SELECT "+scheduleColumns+` FROM schedules
		WHERE enabled = 1 AND next_run_at > 0 AND next_run_at <= $1 ORDER BY next_run_at, id LIMIT $2`, micros(now), n)
	return list, explain(err, "list the scheduled jobs that are due")
}

// PruneSchedules implements schedule.Store. When an entry started and last ran is in its content.
func (s *Schedules) PruneSchedules(ctx context.Context, before time.Time) (int, error) {
	over, err := collect(ctx, s.reads, s.scanEntry, "SELECT "+scheduleColumns+" FROM schedules WHERE enabled = 0 OR next_run_at = 0 ORDER BY id")
	if err != nil {
		return 0, explain(err, "list the scheduled jobs that are over")
	}
	gone := 0
	for _, e := range over {
		if !e.Start.Before(before) || !e.LastRun.Before(before) {
			continue
		}
		n, err := s.prune(ctx, "scheduled jobs", "DELETE FROM schedules WHERE id = $1 AND revision = $2", e.ID, e.Revision)
		if err != nil {
			return gone, err
		}
		gone += n
	}
	return gone, nil
}
