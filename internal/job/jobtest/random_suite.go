package jobtest

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/job"
)

func manyAtOnce(t *testing.T, s job.Store) {
	const nodes, heard = 40, 3
	j, runs := create(t, s, nodes)
	var all sync.WaitGroup
	var mu sync.Mutex
	took := map[string]int{}
	for range heard {
		for part := range slices.Chunk(runs, 7) {
			all.Go(func() {
				events := make([]job.Event, 0, 2*len(part))
				for _, r := range part {
					events = append(events, sent(r, 1), ended(r, 2, 0, "out"))
				}
				applied, err := s.Apply(t.Context(), events)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				for i, a := range applied {
					if a.Verdict == job.Took && events[i].What == job.Ended {
						took[events[i].Run]++
					}
				}
			})
		}
	}
	all.Wait()
	agree(t, s, j.ID)
	for _, r := range runs {
		if took[r.ID] != 1 {
			t.Errorf("run %d ended %d times", r.Number, took[r.ID])
		}
	}
	if j = readJob(t, s, j.ID); j.Status != job.Finished {
		t.Errorf("the job is %s", j.Status)
	}
}

// sameAsOracle applies the same events to the store and to the fake.
func sameAsOracle(t *testing.T, s job.Store) {
	rapid.Check(t, func(rt *rapid.T) {
		oracle := NewStore()
		budget := rapid.IntRange(0, 3).Draw(rt, "budget")
		j, runs := made(rapid.IntRange(1, 5).Draw(rt, "nodes"), func(j *job.Job) { j.Spec.MaxFailures = &budget })
		here, err := s.CreateJob(t.Context(), j, runs, []byte("s"))
		if err != nil {
			rt.Fatal(err)
		}
		there, _ := oracle.CreateJob(t.Context(), j, runs, []byte("s"))
		for i := range rapid.IntRange(1, 6).Draw(rt, "batches") {
			events := rapid.SliceOfN(AnyEvent(runs, i), 1, 8).Draw(rt, "events")
			got, err := s.Apply(t.Context(), events)
			if err != nil {
				rt.Fatal(err)
			}
			want, _ := oracle.Apply(t.Context(), events)
			for n := range want {
				if got[n].Verdict != want[n].Verdict || got[n].Run.State != want[n].Run.State {
					rt.Fatalf("event %d %+v: got %d %s, want %d %s", n, events[n], got[n].Verdict, got[n].Run.State, want[n].Verdict, want[n].Run.State)
				}
			}
		}
		want, got := readRuns(t, oracle, there.ID), readRuns(t, s, here.ID)
		for i := range want {
			want[i].Job = here.ID
		}
		same(t, "runs", want, got)
		wantJob := readJob(t, oracle, there.ID)
		wantJob.ID = here.ID
		same(t, "job", wantJob, readJob(t, s, here.ID))
		agree(t, s, here.ID)
	})
}

// AnyEvent is anything that may be heard of one of the runs, or of a run that nobody knows.
func AnyEvent(runs []job.Run, second int) *rapid.Generator[job.Event] {
	return rapid.Custom(func(t *rapid.T) job.Event {
		r := rapid.SampledFrom(runs).Draw(t, "run")
		e := job.Event{
			Run: r.ID, What: job.What(rapid.Uint8Range(0, uint8(job.Doubted)).Draw(t, "what")), At: when(second), Due: when(second + 5),
			Reason: rapid.SampledFrom([]string{"", "why"}).Draw(t, "reason"),
		}
		switch e.What {
		case job.Ended:
			out, chunks := job.EncodeLines(rapid.SampledFrom([]string{"", "one\ntwo"}).Draw(t, "text"), "", when(second))
			e.State = rapid.SampledFrom(job.States()).Draw(t, "state")
			e.Outcome = &job.Outcome{ExitCode: rapid.IntRange(0, 1).Draw(t, "exit"), Output: out, Chunks: chunks}
		case job.NotRun:
			e.State = rapid.SampledFrom([]job.State{job.Refused, job.Errored, job.Running}).Draw(t, "state")
		case job.ToldToStop:
			e.State = rapid.SampledFrom([]job.State{job.TimedOut, job.Killed}).Draw(t, "state")
		case job.DroppedOut:
			e.State = rapid.SampledFrom(job.States()).Draw(t, "state")
		case job.WasSent, job.WasNotSent, job.WasResent, job.WasAsked, job.WasLeft, job.Accepted, job.Unknown, job.CannotStop, job.Doubted:
		}
		switch rapid.IntRange(0, 9).Draw(t, "who") {
		case 0:
			e.Node = "evil.example"
		case 1:
			e.Run = uuid.NewString()
		case 2, 3, 4:
			e.Node = r.Node
		}
		return e
	})
}
