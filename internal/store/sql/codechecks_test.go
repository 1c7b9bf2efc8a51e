package sql

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/codecheck/codechecktest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

func TestCodeChecks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		codechecktest.RunStore(t, func(t *testing.T) codecheck.Store {
			t.Helper()
			s := open(t)
			for _, env := range []fleet.Environment{"production", "test"} {
				for _, number := range []string{"1", "2"} {
					deployed(t, s, env, codechecktest.Version(number))
				}
			}
			return s.CodeChecks
		})
		t.Run("a report goes with its version", func(t *testing.T) {
			t.Parallel()
			s := open(t)
			kept, gone := codechecktest.Version("1"), codechecktest.Version("2")
			for _, env := range []fleet.Environment{"production", "test"} {
				deployed(t, s, env, kept)
				check(t, s.CodeChecks.SaveCheck(t.Context(), codecheck.Report{Environment: env, Version: kept}))
			}
			check(t, s.Versions.RemoveEnvironment(t.Context(), "test"))
			deployed(t, s, "production", gone)
			check(t, s.CodeChecks.SaveCheck(t.Context(), codecheck.Report{Environment: "production", Version: gone}))
			_, err := s.CodeChecks.Check(t.Context(), "production", kept)
			check(t, err)
			if _, err := s.CodeChecks.Check(t.Context(), "test", kept); fault.Of(err) != fault.NotFound || err == nil {
				t.Errorf("of a removed environment: %v", err)
			}
		})
		t.Run("nodes with the same classes are one set", func(t *testing.T) {
			t.Parallel()
			s := open(t)
			for node, classes := range map[fleet.Certname][]string{"a": {"Web", "Base"}, "b": {"Base", "Web"}, "c": {"Base"}, "d": nil} {
				var resources []inventory.Resource
				for _, title := range classes {
					resources = append(resources, inventory.Resource{Type: "Class", Title: title}, inventory.Resource{Type: "File", Title: "/" + string(node) + title})
				}
				check(t, s.Catalogs.SaveCatalog(t.Context(), inventory.Catalog{
					Certname: node, Environment: "production", Digest: fleet.DigestOf([]byte(node)), CompiledAt: time.Now(), Resources: resources,
				}))
			}
			sets, err := s.CodeChecks.ClassesOf(t.Context(), []fleet.Certname{"a", "b", "c", "d", "stranger"})
			check(t, err)
			if len(sets) != 3 || sets["a"] != sets["b"] || sets["a"] == sets["c"] {
				t.Errorf("sets: %s", cmp.Diff(nil, sets))
			}
		})
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func deployed(t *testing.T, s *Store, env fleet.Environment, version fleet.Digest) {
	t.Helper()
	check(t, s.Versions.SaveVersion(t.Context(), code.Version{ID: version, Environment: env, DeployedAt: time.Now()}))
}
