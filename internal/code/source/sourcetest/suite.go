package sourcetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/code/source"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// RunStore runs the conformance suite of source.Store. open returns an empty store that the test owns.
func RunStore(t *testing.T, open func(t *testing.T) source.Store) {
	t.Helper()
	t.Run("sources", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		b := source.Row{Source: source.Source{
			Name: "b", URL: "https://git.example/b", Prefix: "b", Branches: []string{"main", "!/x.*/"}, Submodules: true, NoModules: true, Purge: true,
			Interval: time.Minute, AddedAt: when(1), AddedBy: "Ünï",
		}, Sealed: []byte{0, 1, 0xff}}
		a := source.Row{Source: source.Source{Name: "a", URL: "git@git.example:a", AddedAt: when(2)}, Sealed: []byte{2}}
		for _, row := range []source.Row{b, a} {
			must(t, s.SaveSource(t.Context(), row))
		}
		rows, err := s.Sources(t.Context())
		same(t, []source.Row{a, b}, rows, err)
		a.URL, a.Sealed, a.Secrets.Key = "https://git.example/a", []byte{3}, "never kept"
		must(t, s.SaveSource(t.Context(), a))
		must(t, s.RemoveSource(t.Context(), "b"))
		a.Secrets.Key = ""
		rows, err = s.Sources(t.Context())
		same(t, []source.Row{a}, rows, err)
		if err := s.RemoveSource(t.Context(), "b"); !fault.Is(err, fault.NotFound) {
			t.Errorf("removed twice: %v, want NotFound", err)
		}
	})
	t.Run("branches", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		for _, name := range []string{"a", "b"} {
			must(t, s.SaveSource(t.Context(), source.Row{Source: source.Source{Name: name, AddedAt: when(0)}, Sealed: []byte{1}}))
		}
		production := source.Branch{
			Environment: "production", Source: "a", Name: "feature/ü;x", GoneAt: when(1), Commit: "abc", Version: fleet.DigestOf([]byte("x")), DeployedAt: when(2),
			ID: 7, State: source.Failed, Tried: "def", Error: "Ünï", Retry: true, By: "ann", Queued: when(3), EndedAt: when(4), NextID: 9, NextBy: "bob",
		}
		test := source.Branch{Environment: "test", Source: "b", Name: "test", State: source.Queued, ID: 8, Queued: when(5)}
		for _, b := range []source.Branch{test, production} {
			must(t, s.SaveBranch(t.Context(), b))
		}
		list, err := s.Branches(t.Context())
		same(t, []source.Branch{production, test}, list, err)
		test.Source, test.State, test.GoneAt = "a", source.Complete, when(6)
		must(t, s.SaveBranch(t.Context(), test))
		must(t, s.RemoveBranch(t.Context(), "production"))
		must(t, s.RemoveBranch(t.Context(), "production"))
		list, err = s.Branches(t.Context())
		same(t, []source.Branch{test}, list, err)
		must(t, s.RemoveSource(t.Context(), "a"))
		list, err = s.Branches(t.Context())
		same(t, []source.Branch{}, list, err)
	})
}

// when is a time that every store can keep.
func when(second int) time.Time { return time.Date(2026, 11, 22, 8, 0, second, 654321000, time.UTC) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, want, got any, err error) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
