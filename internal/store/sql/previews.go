package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
)

// Previews is what versions would change, what people remarked on it, and which changes are noise.
type Previews struct{ *base }

const previewColumns = `id, environment, version, git_commit, description, targets, author, author_kind, state, reason, counts, unseen, created_at, ended_at, reach`

func scanPreview(row scanner) (p preview.Preview, err error) {
	var counts, unseen string
	err = row.Scan(&p.ID, &p.Environment, &p.Version, &p.Commit, &p.Description, &p.Targets, &p.Author, &p.AuthorKind, &p.State, &p.Reason,
		&counts, &unseen, at(&p.CreatedAt), at(&p.EndedAt), &p.Reach)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal([]byte(counts), &p.Counts); err != nil {
		return p, fmt.Errorf("counts of preview %d: %w", p.ID, err)
	}
	if err := json.Unmarshal([]byte(unseen), &p.Unseen); err != nil {
		return p, fmt.Errorf("what preview %d does not see: %w", p.ID, err)
	}
	return p, nil
}

// CreatePreview implements preview.Store.
func (s *Previews) CreatePreview(ctx context.Context, p preview.Preview, shares []preview.Share) (preview.Preview, error) {
	counts, err := json.Marshal(p.Counts)
	if err != nil {
		return preview.Preview{}, explain(err, "create a preview")
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		id, err := one[int64](q.row(ctx, `INSERT INTO previews
			(environment, version, git_commit, description, targets, author, author_kind, state, reason, counts, unseen, created_at, ended_at, reach)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', $9, '[]', $10, 0, $11) RETURNING id`,
			p.Environment, p.Version, p.Commit, p.Description, p.Targets, p.Author, p.AuthorKind, p.State, string(counts), micros(p.CreatedAt), p.Reach))
		if err != nil {
			return err
		}
		p.ID = id
		return s.putShares(ctx, q, id, shares)
	})
	return p, explain(err, "create a preview")
}

// lockPreview reads a preview's state, which stays as it is while the transaction lasts.
func (s *Previews) lockPreview(ctx context.Context, q querier, id int64) (preview.Preview, error) {
	p, err := scanPreview(q.row(ctx, "SELECT "+previewColumns+" FROM previews WHERE id = $1"+s.dialect.forUpdate, id))
	return p, missing(err, "there is no preview %d", id)
}

// lockOpenPreview is lockPreview for one that must compile.
func (s *Previews) lockOpenPreview(ctx context.Context, q querier, id int64) (preview.Preview, error) {
	p, err := s.lockPreview(ctx, q, id)
	if err == nil && p.State != preview.Compiling {
		err = fault.New(fault.Conflict, "preview %d is %s", id, p.State)
	}
	return p, err
}

// Preview implements preview.Store.
func (s *Previews) Preview(ctx context.Context, id int64) (preview.Preview, error) {
	p, err := scanPreview(s.reads.row(ctx, "SELECT "+previewColumns+" FROM previews WHERE id = $1", id))
	return p, explain(missing(err, "there is no preview %d", id), "read preview %d", id)
}

// Previews implements preview.Store.
func (s *Previews) Previews(ctx context.Context, page preview.Page) ([]preview.Preview, error) {
	previews, err := newest(ctx, s.base, scanPreview, "SELECT "+previewColumns+" FROM previews", page)
	return previews, explain(err, "list previews")
}

// OpenPreviews implements preview.Store.
func (s *Previews) OpenPreviews(ctx context.Context) ([]preview.Preview, error) {
	previews, err := collect(ctx, s.reads, scanPreview, "SELECT "+previewColumns+" FROM previews WHERE state = 'compiling' ORDER BY id")
	return previews, explain(err, "list previews that compile")
}

// CancelPreview implements preview.Store.
func (s *Previews) CancelPreview(ctx context.Context, p preview.Preview) (now preview.Preview, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		before, err := s.lockPreview(ctx, q, p.ID)
		if now = before; err != nil || before.State != preview.Compiling {
			return err
		}
		now, err = scanPreview(q.row(ctx, "UPDATE previews SET state = 'cancelled', reason = $1, ended_at = $2 WHERE id = $3 RETURNING "+previewColumns,
			p.Reason, micros(p.EndedAt), p.ID))
		return err
	})
	return now, explain(err, "cancel preview %d", p.ID)
}

// AddRemarks implements preview.Store.
func (s *Previews) AddRemarks(ctx context.Context, id int64, remarks []preview.Remark) (added []preview.Remark, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		added = nil
		if _, err := s.lockPreview(ctx, q, id); err != nil {
			return err
		}
		for _, r := range remarks {
			var err error
			r.ID, err = one[int64](q.row(ctx, `INSERT INTO preview_remarks (preview_id, change_key, kind, text, author, said_at)
				VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`, id, r.Group, r.Kind, r.Text, r.Author, micros(r.At)))
			if err != nil {
				return err
			}
			added = append(added, r)
		}
		return nil
	})
	return added, explain(err, "store remarks on preview %d", id)
}

// Remarks implements preview.Store.
func (s *Previews) Remarks(ctx context.Context, id int64) ([]preview.Remark, error) {
	remarks, err := collect(ctx, s.reads, func(row scanner) (r preview.Remark, err error) {
		err = row.Scan(&r.ID, &r.Group, &r.Kind, &r.Text, &r.Author, at(&r.At))
		return r, err
	}, "SELECT id, change_key, kind, text, author, said_at FROM preview_remarks WHERE preview_id = $1 ORDER BY id", id)
	return remarks, explain(err, "read the remarks on preview %d", id)
}

// PrunePreviews implements preview.Store.
func (s *Previews) PrunePreviews(ctx context.Context, before time.Time) (count int, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		ids, err := collect(ctx, q, one[int64], `SELECT id FROM previews WHERE state <> 'compiling' AND ended_at < $1
			AND id NOT IN (SELECT preview_id FROM releases WHERE ended_at = 0)`, micros(before))
		if err != nil {
			return err
		}
		for _, id := range ids {
			for _, table := range []string{
				"preview_shares WHERE preview_id", "preview_groups WHERE preview_id", "preview_remarks WHERE preview_id", "previews WHERE id",
			} {
				if _, err := q.exec(ctx, "DELETE FROM "+table+" = $1", id); err != nil {
					return err
				}
			}
		}
		count = len(ids)
		return nil
	})
	return count, explain(err, "prune previews")
}

// PreviewDigests implements preview.Store.
func (s *Previews) PreviewDigests(ctx context.Context) ([]fleet.Digest, error) {
	digests, err := collect(ctx, s.reads, one[fleet.Digest],
		"SELECT fresh FROM preview_shares WHERE fresh <> '' UNION SELECT base FROM preview_shares WHERE base <> '' ORDER BY 1")
	return digests, explain(err, "list the catalogs of previews")
}
