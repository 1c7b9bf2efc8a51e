package codechecktest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// RunStore runs the conformance suite of codecheck.Store. open returns an empty store that the test owns, in which the
// environments production and test have the versions that Version names.
func RunStore(t *testing.T, open func(t *testing.T) codecheck.Store) {
	t.Helper()
	t.Run("a report is read as it was kept", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		want := codecheck.Report{
			Environment: "production", Version: Version("1"), Base: Version("2"), At: time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC), Took: time.Second,
			Files: 20, Sets: 3, Compiled: 2, More: 1, Cut: 4, Unread: true, Forced: true, Findings: []codecheck.Finding{
				{Level: codecheck.Mistake, File: "site.pp", Line: 3, Column: 7, Message: "Ünï \"x\""},
				{Level: codecheck.Warning, New: true, Message: "y", Nodes: []fleet.Certname{"a.example"}, Alike: 12},
			},
		}
		save(t, s, want)
		read(t, s, want)
	})
	t.Run("the last report of a version counts, of each environment", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		at := time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)
		first := codecheck.Report{Environment: "production", Version: Version("1"), At: at, Files: 1}
		again, other, test := first, first, first
		again.Files, other.Version, test.Environment = 2, Version("2"), "test"
		for _, r := range []codecheck.Report{first, other, test, again} {
			save(t, s, r)
		}
		for _, r := range []codecheck.Report{again, other, test} {
			read(t, s, r)
		}
	})
	t.Run("what was not checked is NotFound", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		if _, err := s.Check(t.Context(), "production", Version("1")); err == nil || fault.Of(err) != fault.NotFound {
			t.Errorf("got %v", err)
		}
	})
}

// Version is the version of a number that a store has: 1 or 2.
func Version(number string) fleet.Digest { return fleet.DigestOf([]byte("checked " + number)) }

func save(t *testing.T, s codecheck.Store, r codecheck.Report) {
	t.Helper()
	if err := s.SaveCheck(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, s codecheck.Store, want codecheck.Report) {
	t.Helper()
	got, err := s.Check(t.Context(), want.Environment, want.Version)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
