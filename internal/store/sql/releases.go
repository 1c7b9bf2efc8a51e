package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// Releases is versions on their way to nodes, wave by wave.
type Releases struct{ *base }

const releaseColumns = `id, kind, preview_id, of_release, environment, version, description, author, author_kind, options, state, hold, held_until, reason,
	killed, wave, waves, needs, digest, counts, revision, created_at, started_at, ended_at`

func scanRelease(row scanner) (r release.Release, err error) {
	var options, waves, needs, counts string
	err = row.Scan(&r.ID, &r.Kind, &r.Preview, &r.Of, &r.Environment, &r.Version, &r.Description, &r.Author, &r.AuthorKind, &options, &r.State, &r.Hold,
		at(&r.Until), &r.Reason, &r.Kill, &r.Wave, &waves, &needs, &r.Digest, &counts, &r.Revision, at(&r.CreatedAt), at(&r.StartedAt), at(&r.EndedAt))
	for _, part := range []struct {
		text string
		to   any
	}{{options, &r.Options}, {waves, &r.Waves}, {needs, &r.Needs}, {counts, &r.Counts}} {
		if err == nil {
			err = json.Unmarshal([]byte(part.text), part.to)
		}
	}
	if err != nil {
		return r, fmt.Errorf("release %d: %w", r.ID, err)
	}
	return r, nil
}

// releaseTexts are the parts of a release that are stored as JSON.
type releaseTexts struct{ options, waves, needs, counts string }

func textsOf(r release.Release) (t releaseTexts, err error) {
	for _, part := range []struct {
		from any
		to   *string
	}{
		{r.Options, &t.options},
		{append([]release.Wave{}, r.Waves...), &t.waves},
		{append([]release.Need{}, r.Needs...), &t.needs},
		{r.Counts, &t.counts},
	} {
		text, err := json.Marshal(part.from)
		if err != nil {
			return t, err
		}
		*part.to = string(text)
	}
	return t, nil
}

// CreateRelease implements release.Store.
func (s *Releases) CreateRelease(ctx context.Context, r release.Release, targets []release.Target, entries []release.Entry) (release.Release, error) {
	r.Tally(release.CountWaves(targets))
	r.Revision = 1
	t, err := textsOf(r)
	if err != nil {
		return r, explain(err, "create a release")
	}
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		id, err := one[int64](q.row(ctx, `INSERT INTO releases (kind, preview_id, of_release, environment, version, description, author, author_kind, options,
			state, hold, held_until, reason, killed, wave, waves, needs, digest, counts, revision, created_at, started_at, ended_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23) RETURNING id`,
			r.Kind, r.Preview, r.Of, r.Environment, r.Version, query.Clean(r.Description), query.Clean(r.Author), r.AuthorKind, t.options,
			r.State, r.Hold, micros(r.Until), query.Clean(r.Reason), bit(r.Kill), r.Wave, t.waves, t.needs, r.Digest, t.counts, r.Revision,
			micros(r.CreatedAt), micros(r.StartedAt), micros(r.EndedAt)))
		if err != nil {
			return err
		}
		r.ID = id
		if err := s.putTargets(ctx, q, id, r.Revision, targets); err != nil {
			return err
		}
		return putEntries(ctx, q, id, entries)
	})
	return r, explain(err, "create a release")
}

func putEntries(ctx context.Context, q querier, id int64, entries []release.Entry) error {
	for _, e := range entries {
		if _, err := q.exec(ctx, "INSERT INTO release_entries (release_id, noted_at, who, text) VALUES ($1, $2, $3, $4)", id,
			micros(e.At), query.Clean(e.By), query.Clean(e.Text)); err != nil {
			return err
		}
	}
	return nil
}

// Release implements release.Store.
func (s *Releases) Release(ctx context.Context, id int64) (release.Release, error) {
	r, err := scanRelease(s.reads.row(ctx, "SELECT "+releaseColumns+" FROM releases WHERE id = $1", id))
	return r, explain(missing(err, "there is no release %d", id), "read release %d", id)
}

// Releases implements release.Store.
func (s *Releases) Releases(ctx context.Context, page release.Page) ([]release.Release, error) {
	list, err := newest(ctx, s.base, scanRelease, "SELECT "+releaseColumns+" FROM releases", page)
	return list, explain(err, "list releases")
}

// OpenReleases implements release.Store.
func (s *Releases) OpenReleases(ctx context.Context) ([]release.Release, error) {
	list, err := collect(ctx, s.reads, scanRelease, "SELECT "+releaseColumns+" FROM releases WHERE ended_at = 0 ORDER BY id")
	return list, explain(err, "list open releases")
}

// SaveRelease implements release.Store.
func (s *Releases) SaveRelease(ctx context.Context, c release.Change) (now release.Release, err error) {
	id := c.Release.ID
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		before, err := scanRelease(q.row(ctx, "SELECT "+releaseColumns+" FROM releases WHERE id = $1"+s.dialect.forUpdate, id))
		if err != nil {
			return missing(err, "there is no release %d", id)
		}
		if before.Revision != c.Base {
			return fault.New(fault.Conflict, "release %d is another by now", id)
		}
		if err := s.putTargets(ctx, q, id, c.Base+1, c.Targets); err != nil {
			return err
		}
		if err := putEntries(ctx, q, id, c.Entries); err != nil {
			return err
		}
		r := c.Release
		r.Options = before.Options
		r.MaxFailures = c.Release.MaxFailures
		r.Counted(before)
		if len(c.Targets) > 0 {
			waves, err := countTargets(ctx, q, id)
			if err != nil {
				return err
			}
			r.Tally(waves)
		}
		t, err := textsOf(r)
		if err != nil {
			return err
		}
		now, err = scanRelease(q.row(ctx, `UPDATE releases SET options = $1, state = $2, hold = $3, held_until = $4, reason = $5, killed = $6, wave = $7, waves = $8,
			needs = $9, counts = $10, revision = $11, started_at = $12, ended_at = $13 WHERE id = $14 RETURNING `+releaseColumns,
			t.options, r.State, r.Hold, micros(r.Until), query.Clean(r.Reason), bit(r.Kill), r.Wave, t.waves, t.needs, t.counts, c.Base+1,
			micros(r.StartedAt), micros(r.EndedAt), id))
		return err
	})
	return now, explain(err, "save release %d", id)
}

// Entries implements release.Store.
func (s *Releases) Entries(ctx context.Context, id int64) ([]release.Entry, error) {
	list, err := collect(ctx, s.reads, func(row scanner) (e release.Entry, err error) {
		err = row.Scan(&e.Number, at(&e.At), &e.By, &e.Text)
		return e, err
	}, "SELECT id, noted_at, who, text FROM release_entries WHERE release_id = $1 ORDER BY id", id)
	return list, explain(err, "read what happened in release %d", id)
}

// AddApproval implements release.Store.
func (s *Releases) AddApproval(ctx context.Context, id int64, a release.Approval) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := one[int64](q.row(ctx, "SELECT id FROM releases WHERE id = $1"+s.dialect.forUpdate, id)); err != nil {
			return missing(err, "there is no release %d", id)
		}
		_, err := q.exec(ctx, `INSERT INTO release_approvals (release_id, role, who, text, digest, approved_at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (release_id, role, who) DO UPDATE SET text = excluded.text, digest = excluded.digest, approved_at = excluded.approved_at`,
			id, a.Role, query.Clean(a.By), query.Clean(a.Text), a.Digest, micros(a.At))
		return err
	})
	return explain(err, "approve release %d", id)
}

// Approvals implements release.Store.
func (s *Releases) Approvals(ctx context.Context, id int64) ([]release.Approval, error) {
	list, err := collect(ctx, s.reads, func(row scanner) (a release.Approval, err error) {
		err = row.Scan(&a.Role, &a.By, &a.Text, &a.Digest, at(&a.At))
		return a, err
	}, "SELECT role, who, text, digest, approved_at FROM release_approvals WHERE release_id = $1 ORDER BY approved_at, role, who", id)
	return list, explain(err, "read the approvals of release %d", id)
}

// PruneReleases implements release.Store.
func (s *Releases) PruneReleases(ctx context.Context, before time.Time) (count int, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		ids, err := collect(ctx, q, one[int64], "SELECT id FROM releases WHERE ended_at > 0 AND ended_at < $1", micros(before))
		if err != nil {
			return err
		}
		for _, id := range ids {
			for _, table := range []string{
				"release_targets WHERE release_id", "release_entries WHERE release_id",
				"release_approvals WHERE release_id", "releases WHERE id",
			} {
				if _, err := q.exec(ctx, "DELETE FROM "+table+" = $1", id); err != nil {
					return err
				}
			}
		}
		count = len(ids)
		return nil
	})
	return count, explain(err, "prune releases")
}

// ReleaseDigests implements release.Store.
func (s *Releases) ReleaseDigests(ctx context.Context) ([]fleet.Digest, error) {
	digests, err := collect(ctx, s.reads, one[fleet.Digest], `SELECT DISTINCT t.catalog FROM release_targets t JOIN releases r ON r.id = t.release_id
		WHERE r.ended_at = 0 AND t.catalog <> '' ORDER BY t.catalog`)
	return digests, explain(err, "list the catalogs of releases")
}
