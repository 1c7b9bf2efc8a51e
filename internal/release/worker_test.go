package release_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/release/releasetest"
)

// The server is stopped when it has ordered a wave's job and could not say so yet; the release is paused, and resumed while nodes of
// the wave are skipped. It finds the job again: nobody is run twice.
func TestOrderedWithoutAWord(t *testing.T) {
	t.Parallel()
	seen := 0
	for call := 1; call < 40; call++ {
		world, store := releasetest.NewWorld(healthy(3)), releasetest.NewStore()
		world.Slow = 3
		s := world.Service(store)
		o := release.Order{Preview: 1}
		o.NoopFirst, o.Concurrency = true, 1
		id := create(t, s, o).ID
		for len(world.Jobs()) == 0 {
			if err := s.Worker.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := world.Stop(t.Context(), 1, false); err != nil { // the rest of the rehearsal is skipped
			t.Fatal(err)
		}
		world.StopAt(call, true)
		for range 20 {
			_ = s.Worker.Look(t.Context()) // until it is stopped
		}
		if !world.Start() {
			break
		}
		s = world.Service(store)
		r, _ := s.Records.Release(t.Context(), id)
		if r.State.Final() {
			break
		}
		if len(world.Jobs()) == 2 && r.Waves[0].Job == 0 {
			seen++
		}
		if _, err := s.Control.Pause(t.Context(), ann, id, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Control.Resume(t.Context(), ann, id, nil); err != nil {
			t.Fatal(err)
		}
		isState(t, run(t, world, s, id), release.Done, release.NoHold)
		for i := range 3 {
			if n := world.Ran(nodeOf(i)); n != 1 {
				t.Errorf("stopped at call %d: %s was run %d times", call, nodeOf(i), n)
			}
		}
	}
	if seen == 0 {
		t.Error("the server was never stopped between the job and its number")
	}
}

// While it is paused, a job that could not be written down yet is found, and what runs is taken in.
func TestPausedWithoutAWord(t *testing.T) {
	t.Parallel()
	for call := 1; call < 40; call++ {
		world, store := releasetest.NewWorld(healthy(2)), releasetest.NewStore()
		s := world.Service(store)
		id := create(t, s, release.Order{Preview: 1}).ID
		world.StopAt(call, true)
		for range 5 {
			_ = s.Worker.Look(t.Context())
		}
		if !world.Start() {
			t.Error("the server was never stopped between the job and its number")
			break
		}
		s = world.Service(store)
		r, _ := s.Records.Release(t.Context(), id)
		if len(world.Jobs()) == 0 || r.Waves[0].Job != 0 {
			continue
		}
		if _, err := s.Control.Pause(t.Context(), ann, id, ""); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := s.Worker.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if r, _ = s.Records.Release(t.Context(), id); r.State != release.Paused || r.Counts[release.Changed] != 2 {
			t.Errorf("the paused release is %s, %v", r.State, r.Counts)
		}
		return
	}
}
