package jobtest

import (
	"testing"

	"github.com/tutti-project/tutti/internal/job"
)

func ordered(t *testing.T, s job.Store) {
	j, runs := made(3, func(j *job.Job) {
		j.Spec.Ordered, j.Edges = true, []job.Edge{{Run: 2, For: 1}, {Run: 3, For: 1}, {Run: 3, For: 2}}
	})
	runs[1].Reason = "waits for n001.example"
	j, err := s.CreateJob(t.Context(), j, runs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		runs[i].Job = j.ID
	}
	same(t, "job", j, readJob(t, s, j.ID))
	same(t, "runs", runs, readRuns(t, s, j.ID))

	light := j
	light.Edges = nil
	open, err := s.Unended(t.Context())
	if err != nil {
		t.Error(err)
	}
	same(t, "listed without its edges", []job.Job{light}, open)
	if got := apply(t, s, sent(runs[1], 1))[0].Run; got.Reason != "" {
		t.Errorf("a run that was sent still %s", got.Reason)
	}
	apply(t, s, dropped(runs[2], 2, job.Skipped), ended(runs[0], 3, 1, ""), ended(runs[1], 3, 0, ""))
	ended := readJob(t, s, j.ID)
	same(t, "edges of a job that has ended", j.Edges, ended.Edges)
	if ended.Status != job.Failed {
		t.Errorf("a job of which a run was skipped is %s", ended.Status)
	}
	agree(t, s, j.ID)
}
