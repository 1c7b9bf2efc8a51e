package sql

import (
	"fmt"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// BenchmarkNodeWalk is what a count of all nodes by state costs the store, and a list in another order than by name: ten thousand nodes
// are read, every tenth of which ran in noop, and asked which of them do not compile.
func BenchmarkNodeWalk(b *testing.B) {
	bothEngines(b, func(b *testing.B, s *Store) {
		b.Helper()
		const nodes = 10_000
		for i := range nodes {
			name := fleet.Certname(fmt.Sprintf("n%05d.example", i))
			r := inventory.Report{
				ID: fleet.DigestOf([]byte(name)), Certname: name, Environment: "production", Status: "changed", Noop: i%10 == 0, NoopPending: i%10 == 0,
				ReceivedAt: time.Now(),
			}
			if err := s.Reports.SaveReport(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
		used := processTime()
		for b.Loop() {
			if n := walk(b, s); n != nodes {
				b.Fatalf("%d nodes", n)
			}
		}
		b.ReportMetric(float64((processTime()-used).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	})
}

// walk reads as the API does: all nodes, and then the few of which their rows do not say all.
func walk(b *testing.B, s *Store) (found int) {
	b.Helper()
	for page := (inventory.Page{Limit: inventory.MaxNamed}); ; {
		nodes, err := s.Nodes.Nodes(b.Context(), page)
		if err != nil {
			b.Fatal(err)
		}
		if len(nodes) == 0 {
			break
		}
		found += len(nodes)
		page.After = string(nodes[len(nodes)-1].Certname)
	}
	if _, err := s.Queue.BrokenNodes(b.Context()); err != nil {
		b.Fatal(err)
	}
	if pending, err := s.Reports.PendingNodes(b.Context()); err != nil || len(pending) != found/10 {
		b.Fatalf("%d would change something: %v", len(pending), err)
	}
	return found
}
