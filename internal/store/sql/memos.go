package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job/memo"
)

// Memos is what clients of the orchestrator write down: plans that they run, and sets of tasks and nodes.
type Memos struct{ *base }

const planColumns = "id, actor, status, created_at, finished_at, content"

// storedPlan is what is packed of a plan.
type storedPlan struct {
	memo.PlanContent
	ActorKind fleet.ActorKind `json:"actor_kind"`
}

func (s *Memos) scanPlan(row scanner) (p memo.Plan, err error) {
	var packed []byte
	if err = row.Scan(&p.ID, &p.Actor, &p.Status, at(&p.CreatedAt), at(&p.FinishedAt), &packed); err != nil {
		return p, err
	}
	return p, s.unpackPlan(packed, &p)
}

func (s *Memos) unpackPlan(packed []byte, p *memo.Plan) error {
	var stored storedPlan
	if err := s.unpackJSON(packed, &stored); err != nil {
		return fmt.Errorf("content of plan %d: %w", p.ID, err)
	}
	p.PlanContent, p.ActorKind = stored.PlanContent, stored.ActorKind
	return nil
}

func (s *Memos) packPlan(p memo.Plan) ([]byte, error) {
	return s.packJSON(storedPlan{p.PlanContent, p.ActorKind})
}

// CreatePlan implements memo.Store.
func (s *Memos) CreatePlan(ctx context.Context, p memo.Plan) (memo.Plan, error) {
	packed, err := s.packPlan(p)
	if err != nil {
		return p, explain(err, "create a plan")
	}
	err = s.write(ctx, func(ctx context.Context, q querier) (err error) {
		p.ID, err = one[int64](q.row(ctx, "INSERT INTO plan_jobs (actor, status, created_at, finished_at, content) VALUES ($1, $2, $3, $4, $5) RETURNING id",
			p.Actor, p.Status, micros(p.CreatedAt), micros(p.FinishedAt), packed))
		return err
	})
	return p, explain(err, "create a plan")
}

// FinishPlan implements memo.Store.
func (s *Memos) FinishPlan(ctx context.Context, id int64, e memo.End) (p memo.Plan, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		before, err := s.scanPlan(q.row(ctx, "SELECT "+planColumns+" FROM plan_jobs WHERE id = $1"+s.dialect.forUpdate, id))
		if err != nil {
			return missing(err, "there is no plan job %d", id)
		}
		p = before.Ended(e)
		packed, err := s.packPlan(p)
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, "UPDATE plan_jobs SET status = $1, finished_at = $2, content = $3 WHERE id = $4", p.Status, micros(p.FinishedAt), packed, id)
		return err
	})
	return p, explain(err, "finish plan %d", id)
}

// Plan implements memo.Store.
func (s *Memos) Plan(ctx context.Context, id int64) (memo.Plan, error) {
	p, err := s.scanPlan(s.reads.row(ctx, "SELECT "+planColumns+" FROM plan_jobs WHERE id = $1", id))
	return p, explain(missing(err, "there is no plan job %d", id), "read plan %d", id)
}

// Plans implements memo.Store.
func (s *Memos) Plans(ctx context.Context, page memo.Page) (plans []memo.Plan, total int, err error) {
	f := filter{dialect: s.dialect}
	if page.Actor != "" {
		f.add("actor = ?", page.Actor)
	}
	if !page.FinishedFrom.IsZero() {
		f.add("finished_at >= ?", micros(page.FinishedFrom))
	}
	if !page.FinishedUntil.IsZero() {
		f.add("finished_at > 0 AND finished_at <= ?", micros(page.FinishedUntil))
	}
	direction := " DESC"
	if page.Ascending {
		direction = ""
	}
	err = s.snapshot(ctx, func(ctx context.Context, q querier) (err error) {
		if total, err = one[int](q.row(ctx, "SELECT COUNT(*) FROM plan_jobs"+f.where(), f.args...)); err != nil {
			return err
		}
		paged := f
		plans, err = collect(ctx, q, s.scanPlan,
			"SELECT "+planColumns+" FROM plan_jobs"+f.where()+" ORDER BY id"+direction+" LIMIT "+paged.mark(page.Limit)+" OFFSET "+paged.mark(page.Offset),
			paged.args...)
		return err
	})
	return plans, total, explain(err, "list plans")
}

// PrunePlans implements memo.Store.
func (s *Memos) PrunePlans(ctx context.Context, before time.Time) (int, error) {
	return s.prune(ctx, "plans", "DELETE FROM plan_jobs WHERE created_at < $1 AND finished_at < $1", micros(before))
}

func (s *Memos) scanTaskTarget(row scanner) (t memo.TaskTarget, err error) {
	var packed []byte
	if err = row.Scan(&t.ID, &packed); err == nil {
		err = s.unpackJSON(packed, &t.TaskTargetContent)
	}
	return t, err
}

// CreateTaskTarget implements memo.Store.
func (s *Memos) CreateTaskTarget(ctx context.Context, t memo.TaskTarget) (memo.TaskTarget, error) {
	packed, err := s.packJSON(t.TaskTargetContent)
	if err != nil {
		return t, explain(err, "create a task target")
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		n, err := one[int](q.row(ctx, "SELECT COUNT(*) FROM task_targets"))
		if err != nil {
			return err
		}
		if n >= memo.MaxTargets {
			return memo.Full()
		}
		t.ID, err = one[int64](q.row(ctx, "INSERT INTO task_targets (content) VALUES ($1) RETURNING id", packed))
		return err
	})
	return t, explain(err, "create a task target")
}

// TaskTarget implements memo.Store.
func (s *Memos) TaskTarget(ctx context.Context, id int64) (memo.TaskTarget, error) {
	t, err := s.scanTaskTarget(s.reads.row(ctx, "SELECT id, content FROM task_targets WHERE id = $1", id))
	return t, explain(missing(err, "there is no task target %d", id), "read task target %d", id)
}

// TaskTargets implements memo.Store.
func (s *Memos) TaskTargets(ctx context.Context) ([]memo.TaskTarget, error) {
	list, err := collect(ctx, s.reads, s.scanTaskTarget, "SELECT id, content FROM task_targets ORDER BY id")
	return list, explain(err, "list task targets")
}
