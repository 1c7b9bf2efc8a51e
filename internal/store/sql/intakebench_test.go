package sql

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/fleet"
)

// BenchmarkFactsBurst is nodes that a server sees for the first time, with a usual set of facts each: how many
// sets it accepts in a second when they are queued, and when each is applied at once.
func BenchmarkFactsBurst(b *testing.B) {
	for _, mode := range []string{"queued", "direct"} {
		b.Run(mode, func(b *testing.B) {
			bothEngines(b, func(b *testing.B, s *Store) {
				b.Helper()
				benchBurst(b, s, mode == "queued")
			})
		})
	}
}

func benchBurst(b *testing.B, s *Store, queued bool) {
	b.Helper()
	facts, err := facts.Parse(sampleFacts("n.example", 0))
	if err != nil {
		b.Fatal(err)
	}
	var count atomic.Int64
	b.SetParallelism(writers)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			name := fleet.Certname(fmt.Sprintf("n%d.example", count.Add(1)))
			set := factqueue.Set{Node: name, Number: 1, Values: facts.Values, Digest: facts.Digest}
			var err error
			if queued {
				_, err = s.FactQueue.EnqueueFacts(b.Context(), set)
			} else {
				_, err = shelf{s}.SaveFacts(b.Context(), set)
			}
			if err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sets/s")
}
