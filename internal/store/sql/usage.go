package sql

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/store/usage"
)

// Usage is how much the data took, day by day.
type Usage struct{ *base }

func scanSample(row scanner) (s usage.Sample, err error) {
	err = row.Scan(at(&s.At), &s.Area, &s.Bytes)
	return s, err
}

// SaveUsage implements usage.Store.
func (s *Usage) SaveUsage(ctx context.Context, samples []usage.Sample) error {
	if len(samples) == 0 {
		return nil
	}
	day := samples[0].At.Unix() / int64(24*time.Hour/time.Second)
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		n, err := one[int64](q.row(ctx, "SELECT COUNT(*) FROM usage_samples WHERE day = $1", day))
		if err != nil || n > 0 {
			return err
		}
		for _, sample := range samples {
			if _, err := q.exec(ctx, "INSERT INTO usage_samples (day, area, taken_at, bytes) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
				day, sample.Area, micros(sample.At), sample.Bytes); err != nil {
				return err
			}
		}
		return nil
	})
	return explain(err, "save what is used")
}

// UsageSamples implements usage.Store.
func (s *Usage) UsageSamples(ctx context.Context, since time.Time) ([]usage.Sample, error) {
	samples, err := collect(ctx, s.reads, scanSample, `SELECT taken_at, area, bytes FROM usage_samples
		WHERE taken_at >= $1 ORDER BY taken_at, area`, micros(since))
	return samples, explain(err, "read what was used")
}

// PruneUsage implements usage.Store.
func (s *Usage) PruneUsage(ctx context.Context, before time.Time) (int, error) {
	return s.prune(ctx, "what was used", "DELETE FROM usage_samples WHERE taken_at < $1", micros(before))
}

// TableBytes is what each table takes, with its indexes. SQLite reads every page for that.
func (s *Usage) TableBytes(ctx context.Context) (map[string]int64, error) {
	statement := `SELECT m.tbl_name, SUM(p.pgsize) FROM dbstat p JOIN sqlite_schema m ON m.name = p.name WHERE p.aggregate = 1 GROUP BY m.tbl_name`
	if s.dialect.postgres {
		statement = "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
	}
	sizes := map[string]int64{}
	_, err := collect(ctx, s.reads, func(row scanner) (none struct{}, err error) {
		var name string
		var size int64
		err = row.Scan(&name, &size)
		sizes[name] = size
		return none, err
	}, statement)
	return sizes, explain(err, "measure the tables")
}

// BackupBytes is what the contents of all backups take, each counted once.
func (s *Backups) BackupBytes(ctx context.Context) (int64, error) {
	n, err := one[int64](s.reads.row(ctx, `SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT)
		FROM (SELECT MAX(size) AS size FROM backups GROUP BY blob) AS contents`))
	return n, explain(err, "measure the backups")
}
