package sqlstore

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/bucket"
	"github.com/tutti-project/tutti/internal/fleet"
)

// SaveBackup implements bucket.Store.
func (s *Store) SaveBackup(ctx context.Context, b bucket.Backup) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO backups (algorithm, sum, node, path_digest, path, blob, size, saved_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (algorithm, sum, node, path_digest) DO UPDATE
			SET saved_at = CASE WHEN excluded.saved_at > backups.saved_at THEN excluded.saved_at ELSE backups.saved_at END`,
			b.Algorithm, b.Sum, b.Node, fleet.DigestOf([]byte(b.Path)), clean(b.Path), b.Blob, b.Size, micros(b.At))
		return err
	})
	return explain(err, "save a backup of %s", b.Node)
}

// Blob implements bucket.Store.
func (s *Store) Blob(ctx context.Context, algorithm, sum string) (blob fleet.Digest, size int64, err error) {
	err = s.reads.row(ctx, "SELECT blob, size FROM backups WHERE algorithm = $1 AND sum = $2 LIMIT 1", algorithm, sum).Scan(&blob, &size)
	return blob, size, explain(missing(err, "nothing was backed up under {%s}%s", algorithm, sum), "find a backup")
}

// Backups implements bucket.Store.
func (s *Store) Backups(ctx context.Context, node fleet.Certname, from, to time.Time, limit int) ([]bucket.Backup, error) {
	last := int64(1<<63 - 1)
	if !to.IsZero() {
		last = micros(to)
	}
	list, err := collect(ctx, s.reads, func(row scanner) (b bucket.Backup, err error) {
		err = row.Scan(&b.Algorithm, &b.Sum, &b.Blob, &b.Size, &b.Node, &b.Path, at(&b.At))
		return b, err
	}, `SELECT algorithm, sum, blob, size, node, path, saved_at FROM backups WHERE node = $1 AND saved_at >= $2 AND saved_at <= $3
		ORDER BY saved_at DESC, path LIMIT $4`, node, micros(from), last, max(limit, 0))
	return list, explain(err, "list backups of %s", node)
}

// Blobs implements bucket.Store.
func (s *Store) Blobs(ctx context.Context) ([]fleet.Digest, error) {
	list, err := collect(ctx, s.reads, one[fleet.Digest], "SELECT DISTINCT blob FROM backups ORDER BY blob")
	return list, explain(err, "list backed up blobs")
}

// PruneBackups implements bucket.Store.
func (s *Store) PruneBackups(ctx context.Context, before time.Time) (int, error) {
	var count int64
	err := s.write(ctx, func(ctx context.Context, q querier) (err error) {
		count, err = q.exec(ctx, "DELETE FROM backups WHERE saved_at < $1", micros(before))
		return err
	})
	return int(count), explain(err, "prune backups")
}
