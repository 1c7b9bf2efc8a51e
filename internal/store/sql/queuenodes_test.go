package sql

import (
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// TestNodesThatLeaveHaveNoWork: what is wanted of a node goes with it, and what is
// being compiled finds no row and stores nothing.
func TestNodesThatLeaveHaveNoWork(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, leave := range map[string]func(t *testing.T, s *Store) error{
		"purged": func(t *testing.T, s *Store) error { t.Helper(); return s.Nodes.PurgeNode(t.Context(), "leaves") },
		"deactivated": func(t *testing.T, s *Store) error {
			t.Helper()
			return s.Nodes.DeactivateNode(t.Context(), "leaves", now.Add(time.Hour))
		},
		"expired": func(t *testing.T, s *Store) error {
			t.Helper()
			if err := s.Nodes.ConfigureExpiration(t.Context(), "stays", false, now); err != nil {
				return err
			}
			_, err := s.Nodes.ExpireNodes(t.Context(), now.Add(time.Hour), now.Add(2*time.Hour))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
				t.Helper()
				s := open(t)
				leavesNoWork(t, s, now, func() error { return leave(t, s) })
			})
		})
	}
}

func leavesNoWork(t *testing.T, s *Store, now time.Time, leave func() error) {
	t.Helper()
	want := func(node fleet.Certname, version string) compile.Compilation {
		t.Helper()
		c, err := s.Queue.Want(t.Context(), compile.Want{
			Node: node, Environment: "production", Version: fleet.DigestOf([]byte(version)), Priority: compile.NewCode, At: now,
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, node := range []fleet.Certname{"leaves", "stays"} {
		if err := s.Nodes.ConfigureExpiration(t.Context(), node, true, now.Add(-time.Hour)); err != nil { // makes the node known
			t.Fatal(err)
		}
		want(node, "one")
	}
	leased, err := s.Queue.Lease(t.Context(), compile.Offer{Worker: "worker", Rows: 2, Worst: compile.Background, Now: now, Until: now.Add(time.Hour)})
	if err != nil || len(leased) != 2 {
		t.Fatal(leased, err)
	}
	wanted := []compile.Compilation{want("leaves", "two"), want("stays", "two")}
	if err := leave(); err != nil {
		t.Fatal(err)
	}
	for i, c := range leased {
		stays := c.Node == "stays"
		digest := fleet.DigestOf([]byte("catalog"))
		c.State, c.Catalog, c.FinishedAt = compile.Done, digest, now
		saved := s.Catalogs.SaveCatalog(t.Context(), inventory.Catalog{
			Certname: c.Node, Environment: c.Environment, Digest: digest, CompiledAt: now, Compilation: c.ID, Attempt: c.Attempts,
		})
		for what, err := range map[string]error{"save the catalog": saved, "finish": s.Queue.Finish(t.Context(), c)} {
			if stays && err != nil || !stays && fault.Of(err) != fault.Conflict {
				t.Errorf("%s of %s: %v", what, c.Node, err)
			}
		}
		if _, err := s.Queue.Compilation(t.Context(), wanted[i].ID); fault.Is(err, fault.NotFound) == (wanted[i].Node == "stays") {
			t.Errorf("what is wanted of %s: %v", wanted[i].Node, err)
		}
	}
	if _, err := s.Catalogs.Catalog(t.Context(), "leaves"); fault.Of(err) != fault.NotFound {
		t.Errorf("the catalog of who left: %v, want NotFound", err)
	}
}
