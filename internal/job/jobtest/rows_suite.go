package jobtest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

func readAsMade(t *testing.T, s job.Store) {
	budget := 3
	j, runs := create(t, s, 3, asTask("m::t", `{"a":1}`), func(j *job.Job) {
		j.Spec.MaxFailures, j.Spec.Concurrency, j.Spec.WaitOffline, j.Spec.Description, j.RerunOf = &budget, 2, time.Hour, "naïve", 7
		j.Spec.Targets = job.Targets{Nodes: []fleet.Certname{"a", "b"}, Query: "q", Exclude: []fleet.Certname{"b"}}
	})
	same(t, "job", j, readJob(t, s, j.ID))
	same(t, "runs", runs, readRuns(t, s, j.ID))
	one, err := s.JobRun(t.Context(), runs[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "run", runs[1], one)

	light := j
	light.Spec, _ = j.Spec.Apart()
	list, err := s.Jobs(t.Context(), job.Page{Limit: 10})
	same(t, "listed without its bulk", []job.Job{light}, list)
	if err != nil {
		t.Error(err)
	}
	_, err = s.Job(t.Context(), j.ID+1)
	wantMissing(t, err)
	_, err = s.JobRun(t.Context(), uuid.NewString())
	wantMissing(t, err)
	_, _, err = s.Changes(t.Context(), j.ID+1, 0, 1)
	wantMissing(t, err)
	if none := readRuns(t, s, j.ID+1); len(none) > 0 {
		t.Errorf("runs of no job: %v", none)
	}
	again, rows := made(1)
	rows[0].ID = runs[0].ID
	if _, err := s.CreateJob(t.Context(), again, rows, nil); fault.Of(err) != fault.Conflict {
		t.Errorf("a run's ID twice: %v", err)
	}
	keyed, rows := made(1)
	keyed.Spec.Key = "wave/1"
	first, err := s.CreateJob(t.Context(), keyed, rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	keyed, rows = made(2)
	keyed.Spec.Key = "wave/1"
	second, err := s.CreateJob(t.Context(), keyed, rows, nil)
	if err != nil || second.ID != first.ID || len(readRuns(t, s, first.ID)) != 1 {
		t.Errorf("ordered again under its key: job %d with %d runs, %v; want job %d", second.ID, len(readRuns(t, s, first.ID)), err, first.ID)
	}
}

func life(t *testing.T, s job.Store) {
	j, runs := create(t, s, 2)
	steps := []struct {
		event  job.Event
		state  job.State
		status job.Status
	}{
		{sent(runs[0], 1), job.Sent, job.Working},
		{accepted(runs[0], 2), job.Running, job.Working},
		{ended(runs[0], 3, 0, "up"), job.Succeeded, job.Working},
		{sent(runs[1], 4), job.Sent, job.Working},
		{ended(runs[1], 5, 9, ""), job.RunFailed, job.Failed},
	}
	for i, step := range steps {
		got := apply(t, s, step.event)[0]
		if got.Verdict != job.Took || got.Run.State != step.state || got.Job.Status != step.status {
			t.Fatalf("step %d: verdict %d, run %s, job %s", i, got.Verdict, got.Run.State, got.Job.Status)
		}
		stored, err := s.JobRun(t.Context(), step.event.Run)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the row", got.Run, stored)
		agree(t, s, j.ID)
	}
	exit := 0
	out, _ := job.EncodeLines("up", "", when(3))
	want := runs[0]
	want.State, want.Reason, want.SentAt, want.StartedAt, want.FinishedAt, want.Attempts = job.Succeeded, "exit code 0", when(1), when(2), when(3), 1
	want.ExitCode, want.Output = &exit, out
	got := readRuns(t, s, j.ID)[0]
	got.Change, got.Began = 0, 0
	same(t, "the first run", want, got)
	j = readJob(t, s, j.ID)
	if !j.StartedAt.Equal(when(1)) || !j.FinishedAt.Equal(when(5)) {
		t.Errorf("the job began at %s and ended at %s", j.StartedAt, j.FinishedAt)
	}
}

func verdicts(t *testing.T, s job.Store) {
	_, runs := create(t, s, 1)
	forged := accepted(runs[0], 1)
	forged.Node = "evil.example"
	nobodys := accepted(runs[0], 1)
	nobodys.Run = uuid.NewString()
	for what, c := range map[string]struct {
		event job.Event
		want  job.Verdict
	}{
		"forged": {forged, job.Foreign}, "nobody's": {nobodys, job.Missing},
		"resent before it was sent": {job.Event{Run: runs[0].ID, What: job.WasResent}, job.Same},
	} {
		if got := apply(t, s, c.event)[0].Verdict; got != c.want {
			t.Errorf("%s: verdict %d, want %d", what, got, c.want)
		}
	}
	end := ended(runs[0], 2, 0, "first")
	apply(t, s, end)
	before := readRuns(t, s, runs[0].Job)
	for _, e := range []job.Event{end, ended(runs[0], 3, 1, "second"), accepted(runs[0], 4), dropped(runs[0], 5, job.Lost)} {
		if got := apply(t, s, e)[0]; got.Verdict != job.Same || got.Run.State != job.Succeeded {
			t.Errorf("after the end: verdict %d, %s", got.Verdict, got.Run.State)
		}
	}
	same(t, "the rows", before, readRuns(t, s, runs[0].Job))
}

func severalEvents(t *testing.T, s job.Store) {
	a, first := create(t, s, 2)
	b, second := create(t, s, 1)
	got := apply(t, s, sent(first[0], 1), sent(second[0], 1), accepted(first[0], 2), sent(first[0], 3), ended(first[0], 4, 0, "x"), sent(first[1], 5))
	want := []job.Verdict{job.Took, job.Took, job.Took, job.Same, job.Took, job.Took}
	for i := range want {
		if got[i].Verdict != want[i] {
			t.Errorf("event %d: verdict %d, want %d", i, got[i].Verdict, want[i])
		}
	}
	agree(t, s, a.ID)
	agree(t, s, b.ID)
	if rows := readRuns(t, s, a.ID); rows[0].State != job.Succeeded || rows[1].State != job.Sent {
		t.Errorf("rows are %s and %s", rows[0].State, rows[1].State)
	}
	if none := apply(t, s); len(none) != 0 {
		t.Errorf("no events gave %v", none)
	}
}

func secrets(t *testing.T, s job.Store) {
	j, runs := made(2)
	j, err := s.CreateJob(t.Context(), j, runs, []byte("sealed"))
	if err != nil {
		t.Fatal(err)
	}
	read := func() string {
		sealed, err := s.Sealed(t.Context(), j.ID)
		if err != nil {
			t.Error(err)
		}
		return string(sealed)
	}
	apply(t, s, ended(runs[0], 1, 0, ""))
	if got := read(); got != "sealed" {
		t.Errorf("while the job runs: %q", got)
	}
	apply(t, s, ended(runs[1], 2, 0, ""))
	if got := read(); got != "" {
		t.Errorf("when it has ended: %q", got)
	}
	_, err = s.Sealed(t.Context(), j.ID+1)
	wantMissing(t, err)
}

func stopping(t *testing.T, s job.Store) {
	j, runs := create(t, s, 2)
	apply(t, s, sent(runs[0], 1))
	stopped, err := s.Direct(t.Context(), j.ID, job.Direction{Reason: "stopped by ann", At: when(2)})
	if err != nil || stopped.Status != job.Stopping || stopped.Killed || stopped.Reason != "stopped by ann" || stopped.OwnChange != stopped.Change {
		t.Fatalf("got %+v, %v", stopped, err)
	}
	killed, err := s.Direct(t.Context(), j.ID, job.Direction{Kill: true, Reason: "killed by ann", At: when(3)})
	if err != nil || !killed.Killed || killed.Change <= stopped.Change {
		t.Errorf("got %+v, %v", killed, err)
	}
	same(t, "stored", killed, readJob(t, s, j.ID))
	apply(t, s, dropped(runs[1], 4, job.Skipped), dropped(runs[0], 5, job.Killed))
	if j = readJob(t, s, j.ID); j.Status != job.Stopped || !j.FinishedAt.Equal(when(5)) {
		t.Errorf("the job is %s, ended at %s", j.Status, j.FinishedAt)
	}
	after, err := s.Direct(t.Context(), j.ID, job.Direction{Reason: "too late", At: when(6)})
	same(t, "a job that has ended", j, after)
	if err != nil {
		t.Error(err)
	}
	_, err = s.Direct(t.Context(), j.ID+1, job.Direction{})
	wantMissing(t, err)
}

func files(t *testing.T, s job.Store) {
	_, runs := create(t, s, 2, asTask("m::a", ""))
	create(t, s, 1, asTask("m::b", ""))
	create(t, s, 1)
	a, b := fleet.DigestOf([]byte("m::a")), fleet.DigestOf([]byte("m::b"))
	named, err := s.JobFiles(t.Context())
	if err != nil || len(named) != 2 {
		t.Fatalf("got %v, %v", named, err)
	}
	may := func(node fleet.Certname, d fleet.Digest, after time.Time) bool {
		ok, err := s.MayFetch(t.Context(), node, d, after)
		if err != nil {
			t.Error(err)
		}
		return ok
	}
	if !may(runs[0].Node, a, when(0)) || may("n009.example", a, when(0)) || !may("n001.example", b, when(0)) || may(runs[1].Node, b, when(0)) {
		t.Error("who may fetch is not who has a run")
	}
	apply(t, s, ended(runs[0], 10, 0, ""))
	if !may(runs[0].Node, a, when(9)) || may(runs[0].Node, a, when(10)) {
		t.Error("a run that ended must be new enough")
	}
}
