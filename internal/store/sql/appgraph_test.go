package sql

import (
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/appgraph/appgraphtest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

func TestAppgraph(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		appgraphtest.RunStore(t, func(t *testing.T, catalogs []appgraphtest.Catalog) appgraph.Store {
			t.Helper()
			s := open(t)
			for _, c := range catalogs {
				saveForGraph(t, s, c)
			}
			return s.Catalogs
		})
	})
}

func saveForGraph(t *testing.T, s *Store, c appgraphtest.Catalog) {
	t.Helper()
	now := time.Now()
	saved := inventory.Catalog{
		Certname: c.Node, Environment: c.Environment, Digest: fleet.DigestOf([]byte(c.Node)), CompiledAt: now, Received: true,
		Origin: inventory.Origin{ProducedAt: now},
	}
	for _, d := range c.Declared {
		saved.Resources = append(saved.Resources, inventory.Resource{Type: d.Type, Title: d.Title, Parameters: d.Parameters})
	}
	for _, one := range c.Collected {
		saved.Collected = append(saved.Collected, inventory.Collected{Type: one.Type, Title: one.Title, Exporter: one.Exporter})
	}
	if err := s.Catalogs.SaveCatalog(t.Context(), saved); err != nil {
		t.Fatal(err)
	}
	if c.Gone {
		if err := s.Nodes.DeactivateNode(t.Context(), c.Node, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}
