package sql

import (
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// TestReleasedCatalogsLeaveWhatStands: a catalog of another version is released to a node. What it had stands for the current version as
// before, so there is nothing to compile.
func TestReleasedCatalogsLeaveWhatStands(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		const node, env = fleet.Certname("a.example"), fleet.Environment("production")
		s, now := open(t), time.Now()
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		current, branch := fleet.DigestOf([]byte("current")), fleet.DigestOf([]byte("branch"))
		compiled := func(version fleet.Digest, p compile.Priority) compile.Compilation {
			t.Helper()
			c, err := s.Queue.Want(t.Context(), compile.Want{Node: node, Environment: env, Version: version, Priority: p, At: now, Staged: p == compile.Previewing})
			check(err)
			rows, err := s.Queue.Lease(t.Context(), compile.Offer{Worker: "test", Rows: 1, Worst: compile.Background, Now: now, Until: now.Add(time.Minute)})
			check(err)
			if len(rows) != 1 || rows[0].ID != c.ID {
				t.Fatalf("leased %+v, want %d", rows, c.ID)
			}
			c = rows[0]
			c.State, c.FinishedAt, c.Catalog, c.UUID = compile.Done, now, fleet.DigestOf([]byte(version+" catalog")), "uuid-"+version.Short()
			c.Inputs = &compile.InputSet{At: now, Engine: "made-up 1"}
			check(s.Queue.Finish(t.Context(), c))
			return c
		}
		shown := func(c compile.Compilation) {
			t.Helper()
			check(s.Catalogs.SaveCatalog(t.Context(), inventory.Catalog{
				Certname: node, Environment: env, Digest: c.Catalog, Version: c.Version, UUID: c.UUID, CompiledAt: c.FinishedAt, Compilation: c.ID,
			}))
		}
		stands := func(what string, plain, staged fleet.Digest) {
			t.Helper()
			all, err := s.Wants.Standings(t.Context(), env)
			check(err)
			if len(all) != 1 || all[0].Plain.Version != plain || all[0].Staged.Version != staged {
				t.Errorf("%s: %+v; want %s, staged %s", what, all, plain.Short(), staged.Short())
			}
		}
		_, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: node, Environment: env, Values: []byte(`{"a":1}`)})
		check(err)
		shown(compiled(current, compile.NewCode))
		check(s.Wants.Consider(t.Context(), compile.Step{To: compile.Mark{Environment: env, Version: current, Done: true}}))
		stands("live", current, "")

		previewed := compiled(branch, compile.Previewing)
		released := func(number int64, c compile.Compilation) {
			t.Helper()
			g := deliver.Generation{Node: node, Number: number, Catalog: deliver.Catalog{
				Digest: c.Catalog, Environment: env, Version: c.Version, UUID: c.UUID, Compilation: c.ID, CompiledAt: c.FinishedAt,
			}}
			from := deliver.Released
			if number == 1 {
				from = deliver.Live
			}
			check(s.Deliveries.Take(t.Context(), deliver.Step{Node: node, From: from, To: deliver.Released, Base: number - 1, Next: &g}))
			row, err := s.Deliveries.Reinstate(t.Context(), g, now)
			check(err)
			shown(row)
		}
		released(1, previewed)
		stands("released of a branch", branch, current)
		staged, err := s.Reusables.NewestStaged(t.Context(), node, env)
		if check(err); staged.Version != current || staged.Catalog == previewed.Catalog {
			t.Errorf("staged is %+v", staged)
		}
		released(2, previewed)
		stands("released again", branch, current)
	})
}
