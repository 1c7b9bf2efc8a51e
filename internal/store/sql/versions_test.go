package sql

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Who compiles a version, or has a catalog of it, may still ask for its files.
func TestVersionsInUseAreNotPruned(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s, then := open(t), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		var ids []fleet.Digest
		for i, what := range []string{"catalog", "leased", "wanted", "unused", "current"} {
			ids = append(ids, fleet.DigestOf([]byte(what)))
			for _, env := range []fleet.Environment{"production", "other"} {
				savedVersion(t, s.Versions.SaveVersion(t.Context(), code.Version{ID: ids[i], Environment: env, DeployedAt: then}))
			}
		}
		savedVersion(t, s.Catalogs.SaveCatalog(t.Context(), inventory.Catalog{
			Certname: "web-1", Environment: "production", Digest: fleet.DigestOf(nil), Version: ids[0], CompiledAt: then,
		}))
		for i, id := range ids[1:3] {
			node := fleet.Certname(fmt.Sprintf("db-%d", i))
			_, err := s.Queue.Want(t.Context(), compile.Want{Node: node, Environment: "production", Version: id, At: then.Add(time.Duration(i))})
			savedVersion(t, err)
		}
		offer := compile.Offer{Worker: "worker", Rows: 1, Worst: compile.Background, Now: then, Until: then.Add(time.Hour)}
		if leased, err := s.Queue.Lease(t.Context(), offer); err != nil || len(leased) != 1 {
			t.Fatalf("leased %v, %v", leased, err)
		}
		if n, err := s.Versions.PruneVersions(t.Context(), then.Add(time.Hour), 1); err != nil || n != 5 {
			t.Errorf("pruned %d, %v; want one of production and four of other", n, err)
		}
		for env, want := range map[fleet.Environment][]fleet.Digest{
			"production": {ids[4], ids[2], ids[1], ids[0]}, "other": {ids[4]},
		} {
			var got []fleet.Digest
			versions, err := s.Versions.Versions(t.Context(), env, 10)
			savedVersion(t, err)
			for _, v := range versions {
				got = append(got, v.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s keeps %v, want %v", env, got, want)
			}
		}
	})
}

func savedVersion(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
