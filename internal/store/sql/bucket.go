package sql

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// Backups is what agents keep before they change a file.
type Backups struct{ *base }

// SaveBackup implements filebucket.Store.
func (s *Backups) SaveBackup(ctx context.Context, b filebucket.Backup, quota filebucket.Quota) error {
	path := fleet.DigestOf([]byte(b.Path))
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if quota != (filebucket.Quota{}) {
			if err := admitBackup(ctx, q, b, path, quota); err != nil {
				return err
			}
		}
		_, err := q.exec(ctx, `INSERT INTO backups (algorithm, sum, node, path_digest, path, blob, size, saved_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (algorithm, sum, node, path_digest) DO UPDATE
			SET saved_at = CASE WHEN excluded.saved_at > backups.saved_at THEN excluded.saved_at ELSE backups.saved_at END`,
			b.Algorithm, b.Sum, b.Node, path, query.Clean(b.Path), b.Blob, b.Size, micros(b.At))
		return err
	})
	return explain(err, "save a backup of %s", b.Node)
}

// admitBackup looks whether there is room for a backup that its node does not have yet.
func admitBackup(ctx context.Context, q querier, b filebucket.Backup, path fleet.Digest, quota filebucket.Quota) error {
	var kept, content int
	err := q.row(ctx, `SELECT (SELECT COUNT(*) FROM backups WHERE algorithm = $1 AND sum = $2 AND node = $3 AND path_digest = $4),
		(SELECT COUNT(*) FROM (SELECT 1 FROM backups WHERE node = $3 AND blob = $5 LIMIT 1) AS first)`,
		b.Algorithm, b.Sum, b.Node, path, b.Blob).Scan(&kept, &content)
	if err != nil || kept > 0 {
		return err
	}
	use, err := backupUse(ctx, q, b.Node)
	if err != nil {
		return err
	}
	more := b.Size
	if content > 0 {
		more = 0
	}
	return quota.Admit(b.Node, use, more)
}

// BackupUse implements filebucket.Store.
func (s *Backups) BackupUse(ctx context.Context, node fleet.Certname) (filebucket.Use, error) {
	use, err := backupUse(ctx, s.reads, node)
	return use, explain(err, "count the backups of %s", node)
}

func backupUse(ctx context.Context, q querier, node fleet.Certname) (use filebucket.Use, err error) {
	err = q.row(ctx, `SELECT CAST(COALESCE(SUM(files), 0) AS BIGINT), CAST(COALESCE(SUM(bytes), 0) AS BIGINT)
		FROM (SELECT COUNT(*) AS files, MAX(size) AS bytes FROM backups WHERE node = $1 GROUP BY blob) AS contents`, node).Scan(&use.Files, &use.Bytes)
	return use, err
}

// Blob implements filebucket.Store.
func (s *Backups) Blob(ctx context.Context, node fleet.Certname, algorithm, sum string) (blob fleet.Digest, size int64, err error) {
	query, args := "SELECT blob, size FROM backups WHERE algorithm = $1 AND sum = $2 LIMIT 1", []any{algorithm, sum}
	if node != "" {
		query, args = "SELECT blob, size FROM backups WHERE algorithm = $1 AND sum = $2 AND node = $3 LIMIT 1", append(args, node)
	}
	err = s.reads.row(ctx, query, args...).Scan(&blob, &size)
	return blob, size, explain(missing(err, "nothing was backed up under {%s}%s", algorithm, sum), "find a backup")
}

// Backups implements filebucket.Store.
func (s *Backups) Backups(ctx context.Context, node fleet.Certname, from, to time.Time, limit int) ([]filebucket.Backup, error) {
	last := int64(1<<63 - 1)
	if !to.IsZero() {
		last = micros(to)
	}
	list, err := collect(ctx, s.reads, func(row scanner) (b filebucket.Backup, err error) {
		err = row.Scan(&b.Algorithm, &b.Sum, &b.Blob, &b.Size, &b.Node, &b.Path, at(&b.At))
		return b, err
	}, `SELECT algorithm, sum, blob, size, node, path, saved_at FROM backups WHERE node = $1 AND saved_at >= $2 AND saved_at <= $3
		ORDER BY saved_at DESC, path LIMIT $4`, node, micros(from), last, max(limit, 0))
	return list, explain(err, "list backups of %s", node)
}

// Blobs implements filebucket.Store.
func (s *Backups) Blobs(ctx context.Context) ([]fleet.Digest, error) {
	list, err := collect(ctx, s.reads, one[fleet.Digest], "SELECT DISTINCT blob FROM backups ORDER BY blob")
	return list, explain(err, "list backed up blobs")
}

// PruneBackups implements filebucket.Store.
func (s *Backups) PruneBackups(ctx context.Context, before time.Time) (int, error) {
	var count int64
	err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
		count, err = q.exec(ctx, "DELETE FROM backups WHERE saved_at < $1", micros(before))
		return err
	})
	return int(count), explain(err, "prune backups")
}
