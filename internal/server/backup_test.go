package server

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// After a restore nothing is released before somebody says so: what ran is paused, and what a freeze would have let go by itself. What was
// paused by hand or waits for approval stays as it is.
func TestReleasesArePausedAfterARestore(t *testing.T) {
	t.Parallel()
	store, at := openStore(t), time.Now().UTC().Truncate(time.Second)
	const why = "the server was restored from the backup of then"
	create := func(change func(*release.Release)) int64 {
		t.Helper()
		r := release.Release{
			Kind: release.Forward, Preview: 1, Environment: "production", Version: fleet.DigestOf([]byte("v")), Author: "ann", AuthorKind: fleet.UserActor,
			State: release.Running, Waves: []release.Wave{{Number: 1, Size: "1", Nodes: 1, Phase: release.NotBegun, Round: 1}}, CreatedAt: at,
			Digest: fleet.DigestOf([]byte("d")),
		}
		change(&r)
		made, err := store.Releases.CreateRelease(t.Context(), r, []release.Target{{Node: "web-1.example", Wave: 1, Round: 1, State: release.Waiting}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return made.ID
	}
	paused := func(hold release.Hold, reason string) func(*release.Release) {
		return func(r *release.Release) {
			r.State, r.Hold, r.Reason, r.Until = release.Paused, hold, reason, at.Add(time.Hour)
		}
	}
	running := create(func(*release.Release) {})
	frozen := create(paused(release.Frozen, "nothing is released at night"))
	byHand := create(paused(release.ByHand, "wait for bob"))
	waits := create(func(r *release.Release) { r.State = release.WaitingApproval })

	var restored Restored
	if err := restored.pauseReleases(t.Context(), store, why); err != nil {
		t.Fatal(err)
	}
	if len(restored.Releases) != 2 {
		t.Errorf("releases %v were paused, want %d and %d", restored.Releases, running, frozen)
	}
	service := release.NewService(release.Config{Store: store.Releases})
	for id, want := range map[int64]struct {
		state  release.State
		hold   release.Hold
		reason string
	}{
		running: {release.Paused, release.ByHand, why}, frozen: {release.Paused, release.ByHand, why},
		byHand: {release.Paused, release.ByHand, "wait for bob"}, waits: {release.WaitingApproval, release.NoHold, ""},
	} {
		r, err := store.Releases.Release(t.Context(), id)
		if err != nil || r.State != want.state || r.Hold != want.hold || r.Reason != want.reason && r.Reason != "paused by restore: "+want.reason {
			t.Errorf("release %d is %s, held by %q: %q, %v; want %+v", id, r.State, r.Hold, r.Reason, err, want)
		}
		r, err = service.Control.Resume(t.Context(), fleet.Actor{Kind: fleet.UserActor, Name: "ann"}, id, nil)
		if id == waits {
			if fault.Of(err) != fault.Conflict {
				t.Errorf("release %d waits for approval and was resumed: %v", id, err)
			}
			continue
		}
		if err != nil || r.State != release.Running || r.Hold != release.NoHold || !r.Until.IsZero() {
			t.Errorf("release %d was resumed: %s, %q until %s, %v", id, r.State, r.Hold, r.Until, err)
		}
	}
}

// openStore opens a store and closes it with the test.
func openStore(t *testing.T) *sql.Store {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	store, err := sql.Open(t.Context(), sql.Config{Path: filepath.Join(t.TempDir(), "tutti.db")}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}
