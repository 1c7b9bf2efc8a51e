package codetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// RunStore holds the store that open returns to the port's contract. open is
// called once a test; it returns an empty store and cleans up after itself.
func RunStore(t *testing.T, open func(t *testing.T) code.Store) {
	t.Helper()
	tests := map[string]func(*testing.T, code.Store){
		"nothing deployed":            nothingDeployed,
		"a deployed version":          deployed,
		"the last one saved counts":   lastSaved,
		"back to an older version":    backAgain,
		"environments, by name":       environments,
		"one version in two":          sharedVersion,
		"remove an environment":       removeEnvironment,
		"prune old versions":          prune,
		"prune nothing":               pruneNothing,
		"at most so many":             limited,
		"concurrent deploys all stay": concurrent,
		"a staged version":            staged,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// version makes the n-th example; times go up with n.
func version(env fleet.Environment, n int) code.Version {
	return code.Version{
		ID: fleet.DigestOf(fmt.Appendf(nil, "version %d", n)), Environment: env,
		Commit: fmt.Sprintf("%040x", n), Origin: "ssh://git.example/control", Actor: "ops",
		Files: 10 + n, Bytes: 5_000_000_000 + int64(n),
		DeployedAt: time.Date(2026, 3, 1, 12, 0, n, 123456000, time.UTC),
	}
}

func nothingDeployed(t *testing.T, s code.Store) {
	_, err := s.CurrentVersion(t.Context(), "production")
	wantKind(t, err, fault.NotFound)
	wantKind(t, s.RemoveEnvironment(t.Context(), "production"), fault.NotFound)
	wantVersions(t, s, "production", 10)
	wantEnvironments(t, s)
	wantIDs(t, s)
}

func deployed(t *testing.T, s code.Store) {
	v := version("production", 1)
	save(t, s, v)
	wantCurrent(t, s, v)
	wantVersions(t, s, "production", 10, v)
	wantEnvironments(t, s, v)
	wantIDs(t, s, v.ID)

	bare := code.Version{ID: fleet.DigestOf(nil), Environment: "bare", DeployedAt: v.DeployedAt}
	save(t, s, bare)
	wantCurrent(t, s, bare)
}

func lastSaved(t *testing.T, s code.Store) {
	late, early := version("production", 9), version("production", 1)
	save(t, s, late)
	save(t, s, early) // from a machine whose clock is behind
	wantCurrent(t, s, early)
	wantVersions(t, s, "production", 10, early, late)
}

func backAgain(t *testing.T, s code.Store) {
	first, second := version("production", 1), version("production", 2)
	save(t, s, first)
	save(t, s, second)
	again := first
	again.Actor, again.Commit, again.DeployedAt = "night shift", "", first.DeployedAt.Add(time.Hour)
	save(t, s, again)
	wantCurrent(t, s, again)
	wantVersions(t, s, "production", 10, again, second)
	wantIDs(t, s, first.ID, second.ID)
}

func environments(t *testing.T, s code.Store) {
	var want []code.Version
	for i, env := range []fleet.Environment{"a", "b_2", "production"} {
		want = append(want, version(env, i))
	}
	for _, i := range []int{2, 0, 1} {
		save(t, s, want[i])
	}
	wantEnvironments(t, s, want...)
}

func sharedVersion(t *testing.T, s code.Store) {
	a, b := version("a", 1), version("b", 1)
	save(t, s, a)
	save(t, s, b)
	wantCurrent(t, s, a)
	wantCurrent(t, s, b)
	wantIDs(t, s, a.ID)
}

func removeEnvironment(t *testing.T, s code.Store) {
	gone, stays := version("gone", 1), version("stays", 2)
	save(t, s, gone)
	save(t, s, stays)
	if err := s.RemoveEnvironment(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	_, err := s.CurrentVersion(t.Context(), "gone")
	wantKind(t, err, fault.NotFound)
	wantVersions(t, s, "gone", 10)
	wantEnvironments(t, s, stays)
	wantIDs(t, s, stays.ID)
	save(t, s, gone)
	wantCurrent(t, s, gone)
}

func prune(t *testing.T, s code.Store) {
	for i := range 5 {
		save(t, s, version("production", i))
		save(t, s, version("quiet", 0)) // one version, deployed again and again
	}
	late, early := version("clocks", 9), version("clocks", 1)
	save(t, s, late)
	save(t, s, early) // the current one, whatever its clock said
	before := version("production", 4).DeployedAt
	wantPruned(t, s, before, 2, 3)
	wantVersions(t, s, "production", 10, version("production", 4), version("production", 3))
	wantVersions(t, s, "quiet", 10, version("quiet", 0))
	wantVersions(t, s, "clocks", 10, early, late)

	wantPruned(t, s, before, 0, 1) // 3 goes; 4 is not older, and a current one stays in any case
	wantPruned(t, s, before.Add(time.Hour), 0, 1)
	wantEnvironments(t, s, early, version("production", 4), version("quiet", 0))
	wantIDs(t, s, early.ID, version("production", 4).ID, version("quiet", 0).ID)

	save(t, s, version("production", 2)) // what was pruned may come back
	wantVersions(t, s, "production", 10, version("production", 2), version("production", 4))
}

func pruneNothing(t *testing.T, s code.Store) {
	wantPruned(t, s, time.Now(), 10, 0)
	for i := range 3 {
		save(t, s, version("production", i))
	}
	wantPruned(t, s, version("production", 9).DeployedAt, 3, 0) // so many are kept
	wantPruned(t, s, version("production", 0).DeployedAt, 1, 0) // none is older
	wantVersions(t, s, "production", 10, version("production", 2), version("production", 1), version("production", 0))
}

func wantPruned(t *testing.T, s code.Store, before time.Time, keep, want int) {
	t.Helper()
	if got, err := s.PruneVersions(t.Context(), before, keep); err != nil || got != want {
		t.Errorf("pruned %d, %v; want %d", got, err, want)
	}
}

func limited(t *testing.T, s code.Store) {
	for i := range 5 {
		save(t, s, version("production", i))
	}
	save(t, s, version("other", 7))
	wantVersions(t, s, "production", 2, version("production", 4), version("production", 3))
}

func concurrent(t *testing.T, s code.Store) {
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := s.SaveVersion(t.Context(), version(fleet.Environment(fmt.Sprintf("env%d", i%2)), i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, env := range []fleet.Environment{"env0", "env1"} {
		got, err := s.Versions(t.Context(), env, 100)
		if err != nil || len(got) != 10 {
			t.Fatalf("%s has %d versions, %v; want 10", env, len(got), err)
		}
		current, err := s.CurrentVersion(t.Context(), env)
		if err != nil || current.ID != got[0].ID {
			t.Errorf("%s is at %s, %v; its newest is %s", env, current.ID, err, got[0].ID)
		}
	}
}

func save(t *testing.T, s code.Store, v code.Version) {
	t.Helper()
	if err := s.SaveVersion(t.Context(), v); err != nil {
		t.Fatal(err)
	}
}

func wantCurrent(t *testing.T, s code.Store, want code.Version) {
	t.Helper()
	got, err := s.CurrentVersion(t.Context(), want.Environment)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "current version", []code.Version{want}, []code.Version{got})
}

func wantVersions(t *testing.T, s code.Store, env fleet.Environment, limit int, want ...code.Version) {
	t.Helper()
	got, err := s.Versions(t.Context(), env, limit)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "versions", want, got)
}

func wantEnvironments(t *testing.T, s code.Store, want ...code.Version) {
	t.Helper()
	got, err := s.Environments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "environments", want, got)
}

func wantIDs(t *testing.T, s code.Store, want ...code.VersionID) {
	t.Helper()
	got, err := s.VersionIDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got = slices.Clone(got)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("version ids: got %v, want %v", got, want)
	}
}

// compare looks at times as instants: a store may give them in any zone.
func compare(t *testing.T, what string, want, got []code.Version) {
	t.Helper()
	instants := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
	if len(want) == 0 && len(got) == 0 {
		return
	}
	if diff := cmp.Diff(want, got, instants); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Errorf("got %v (%v), want %v", err, fault.Of(err), want)
	}
}

func staged(t *testing.T, s code.Store) {
	old, kept, live := version("production", 1), version("production", 2), version("production", 3)
	save(t, s, live)
	for _, v := range []code.Version{old, kept, old} {
		if err := s.StageVersion(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	wantCurrent(t, s, live)
	wantVersions(t, s, "production", 10, live)
	wantEnvironments(t, s, live)
	wantIDs(t, s, old.ID, kept.ID, live.ID)
	n, err := s.PruneStaged(t.Context(), kept.DeployedAt)
	if err != nil || n != 1 {
		t.Errorf("%d staged versions were forgotten, want 1: %v", n, err)
	}
	wantIDs(t, s, kept.ID, live.ID)
}
