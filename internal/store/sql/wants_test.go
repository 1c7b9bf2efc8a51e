package sql

import (
	"context"
	"testing"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

func TestWants(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		compiletest.RunWants(t, func(t *testing.T) compiletest.WantsBackend {
			t.Helper()
			s := open(t)
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			return compiletest.WantsBackend{
				ReuseBackend: compiletest.ReuseBackend{
					Backend:   compiletest.Backend{Queue: s.Queue, History: s.Queue, SetFacts: func(node fleet.Certname, seq int64) { setFacts(t, s, node, seq) }},
					Reusables: s.Reusables,
					Gave: func(c compile.Compilation) {
						check(s.Catalogs.SaveCatalog(t.Context(), inventory.Catalog{
							Certname: c.Node, Environment: c.Environment, Digest: c.Catalog, Version: c.Version, UUID: c.UUID, CompiledAt: c.FinishedAt, Compilation: c.ID,
						}))
					},
				},
				Wants: s.Wants, Standings: s.Wants, Readings: s.Reusables,
				Home: func(node fleet.Certname, env fleet.Environment) {
					_, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: node, Environment: env, Values: []byte(`{"a":1}`)})
					check(err)
				},
				Note: func(kind compile.ChangeKind, node fleet.Certname, details ...string) {
					check(s.write(t.Context(), func(ctx context.Context, q querier) error { return s.note(ctx, q, kind, node, details) }))
				},
				Hold: func(c compile.Compilation) {
					check(s.Deliveries.NoteLoss(t.Context(), deliver.Loss{Node: c.Node, Ruling: deliver.Hold, Kept: deliver.Catalog{Digest: c.Catalog}, At: c.FinishedAt}))
				},
			}
		})
	})
}

func TestWhatIsStoredNotesChanges(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		hints := 0
		s.Wants.OnChange(func() { hints++ })
		facts := func(values string) {
			t.Helper()
			if _, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: "a.example", Environment: "production", Values: []byte(values)}); err != nil {
				t.Fatal(err)
			}
		}
		catalog := func(compilation int64, resources ...inventory.Resource) {
			t.Helper()
			err := s.Catalogs.SaveCatalog(t.Context(), inventory.Catalog{
				Certname: "a.example", Environment: "production", Digest: fleet.DigestOf([]byte{byte(compilation)}), Compilation: compilation, Resources: resources,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		expect := func(what string, kind compile.ChangeKind, details ...string) {
			t.Helper()
			changes, err := s.Wants.NotedChanges(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			ok := kind == "" && len(changes) == 0 || len(changes) == 1 && changes[0].Kind == kind && len(changes[0].Details) == len(details)
			for i := range details {
				ok = ok && changes[0].Details[i] == details[i]
			}
			if !ok {
				t.Errorf("%s: %+v", what, changes)
			}
			if err := s.Wants.Settle(t.Context(), changes, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		facts(`{"os":{"family":"Debian","name":"Debian"},"up":1}`)
		expect("first facts", compile.FactsChanged, "os", "up")
		facts(`{"os":{"family":"RedHat","name":"CentOS"},"up":1}`)
		expect("some facts", compile.FactsChanged, "os")
		facts(`{"os":{"family":"RedHat","name":"CentOS"},"up":1}`)
		expect("the same facts", "")
		own := inventory.Resource{Type: "File", Title: "/a"}
		offered := inventory.Resource{Type: "Host", Title: "a", Exported: true}
		catalog(1, own)
		expect("nothing exported", "")
		catalog(2, own, offered)
		expect("something exported", compile.ExportsChanged, "Host")
		catalog(3, offered)
		expect("something else changed", "")
		if err := s.Nodes.PurgeNode(t.Context(), "a.example"); err != nil {
			t.Fatal(err)
		}
		expect("purged", compile.ExportsChanged, compile.Anything)
		if hints == 0 {
			t.Error("nobody was told")
		}
	})
}
