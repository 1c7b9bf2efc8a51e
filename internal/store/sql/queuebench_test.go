package sql

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// BenchmarkLease measures leasing four rows, and finishing them, while 100 000 are
// wanted: nearly all of one environment, a few of fifty others.
func BenchmarkLease(b *testing.B) {
	const wanted, others = 100_000, 50
	bothEngines(b, func(b *testing.B, s *Store) {
		b.Helper()
		fillQueue(b, s, wanted, others)
		now := time.Now()
		turns := map[fleet.Environment]int{}
		for b.Loop() {
			rows, err := s.Queue.Lease(b.Context(), compile.Offer{
				Worker: "worker", Rows: 4, Worst: compile.Background, Most: 2, Now: now, Until: now.Add(time.Minute),
			})
			if err != nil || len(rows) != 4 {
				b.Fatal(len(rows), err)
			}
			b.StopTimer()
			for _, c := range rows {
				turns[c.Environment]++
				c.State, c.FinishedAt, c.Err = compile.Failed, now, compile.Exhausted(1)
				if err := s.Queue.Finish(b.Context(), c); err != nil {
					b.Fatal(err)
				}
			}
			b.StartTimer()
		}
		b.ReportMetric(float64(len(turns)), "environments")
	})
}

// fillQueue wants rows of the environment "big", and a hundredth as many of each of
// the others together.
func fillQueue(b *testing.B, s *Store, wanted, others int) {
	b.Helper()
	columns := []column{
		{"certname", texts},
		{"environment", texts},
		{"version", texts},
		{"facts_seq", ints},
		{"transaction_uuid", texts},
		{"trusted", texts},
		{"priority", ints},
		{"state", texts},
		{"wanted_at", ints},
	}
	var rows [][]any
	for i := range wanted {
		env := "big"
		if i%100 == 0 {
			env = fmt.Sprintf("other_%02d", i/100%others)
		}
		rows = append(rows, []any{
			fmt.Sprintf("n%06d.example", i), env, "version", int64(1), "", "", int64(compile.NewCode), "wanted", int64(i + 1),
		})
	}
	err := s.write(b.Context(), func(ctx context.Context, q querier) error {
		return s.dialect.insert(ctx, q, "compilations", columns, "", rows)
	})
	if err != nil {
		b.Fatal(err)
	}
}
