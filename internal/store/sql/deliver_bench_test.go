package sql

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/deliver/delivertest"
	"github.com/tutti-project/tutti/internal/fleet"
)

// BenchmarkStanding is what a node that asks for its pointer costs the store: all of a
// thousand nodes are in released mode.
func BenchmarkStanding(b *testing.B) {
	s := openTest(b, Config{Path: filepath.Join(b.TempDir(), "tutti.db")})
	name := func(i int) fleet.Certname { return fleet.Certname(fmt.Sprintf("node-%d.example", i%1000)) }
	for i := range 1000 {
		g := deliver.Generation{Node: name(i), Number: 1, Catalog: delivertest.CatalogOf(fmt.Sprint(i))}
		if err := s.Deliveries.Take(b.Context(), deliver.Step{Node: name(i), From: deliver.Live, To: deliver.Released, Next: &g}); err != nil {
			b.Fatal(err)
		}
	}
	i := 0
	for b.Loop() {
		i++
		if standing, err := s.Deliveries.Standing(b.Context(), name(i)); err != nil || standing.Head == nil {
			b.Fatal(standing, err)
		}
	}
}
