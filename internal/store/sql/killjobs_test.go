package sql

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// childJobs orders jobs and lets their runs end, for ever.
func childJobs(ctx context.Context, s *Store) {
	var workers sync.WaitGroup
	var out sync.Mutex
	for range 4 {
		workers.Go(func() {
			for {
				runs := make([]job.Run, 5)
				for i := range runs {
					runs[i] = job.Run{ID: uuid.NewString(), Number: i + 1, Node: fleet.Certname(fmt.Sprintf("n%d.example", i)), State: job.Waiting}
				}
				j, err := s.Jobs.CreateJob(ctx, job.Job{
					Spec:   job.Spec{Kind: job.Command, Command: &job.CommandSpec{Command: "x"}, Targets: job.Targets{All: true}},
					Status: job.Queued, CreatedAt: time.Now(), Counts: job.Counts{job.Waiting: len(runs)},
				}, runs, []byte("sealed"))
				say(&out, err, "job %d\n", j.ID)
				for _, r := range runs {
					_, err := s.Jobs.Apply(ctx, []job.Event{{Run: r.ID, What: job.WasSent, At: time.Now()}})
					say(&out, err, "sent %s\n", r.ID)
					text, chunks := job.EncodeLines("output of "+r.ID, "", time.Now())
					_, err = s.Jobs.Apply(ctx, []job.Event{
						{Run: r.ID, Node: r.Node, What: job.Accepted, At: time.Now()},
						{Run: r.ID, Node: r.Node, What: job.Ended, State: job.Succeeded, Reason: "exit code 0", At: time.Now(), Outcome: &job.Outcome{
							Output: text, Chunks: chunks,
						}},
					})
					say(&out, err, "ended %s\n", r.ID)
				}
			}
		})
	}
	workers.Wait()
}

// acknowledged is what a child said.
type acknowledged struct {
	jobs        map[int64]bool
	sent, ended map[string]bool
}

func (a acknowledged) hear(t *testing.T, line string) {
	t.Helper()
	var id int64
	var run string
	if _, err := fmt.Sscanf(line, "job %d", &id); err == nil {
		a.jobs[id] = true
	} else if _, err := fmt.Sscanf(line, "sent %s", &run); err == nil {
		a.sent[run] = true
	} else if _, err := fmt.Sscanf(line, "ended %s", &run); err == nil {
		a.ended[run] = true
	} else {
		t.Errorf("the child said %q", line)
	}
}

func TestKillLosesNoJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	heard := acknowledged{map[int64]bool{}, map[string]bool{}, map[string]bool{}}
	for range 4 {
		killChild(t, "jobs", dir, 20+rand.IntN(300), func(line string) { heard.hear(t, line) })
		heard.verify(t, dir)
	}
	if len(heard.ended) < 20 {
		t.Errorf("only %d runs ended", len(heard.ended))
	}
}

func (a acknowledged) verify(t *testing.T, dir string) {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: filepath.Join(dir, "tutti.db")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	whole(t, s)
	for id := range a.jobs {
		if _, err := s.Jobs.Job(t.Context(), id); err != nil {
			t.Errorf("acknowledged job: %v", err)
		}
	}
	for id := range a.sent {
		if r, err := s.Jobs.JobRun(t.Context(), id); err != nil || r.State == job.Waiting {
			t.Errorf("acknowledged as sent: %s, %v", r.State, err)
		}
	}
	for id := range a.ended {
		r, err := s.Jobs.JobRun(t.Context(), id)
		chunks, outErr := s.Jobs.Chunks(t.Context(), id, 0, 1)
		if err != nil || outErr != nil || r.State != job.Succeeded || len(chunks) != 1 || string(chunks[0].Text) != "ooutput of "+id+"\n" {
			t.Errorf("acknowledged as ended: %s, %v, %v, %v", r.State, chunks, err, outErr)
		}
	}
	jobs, err := s.Jobs.Jobs(t.Context(), job.Page{Limit: 100_000})
	if err != nil {
		t.Error(err)
	}
	for _, j := range jobs {
		agrees(t, s, j)
	}
}

// agrees checks that a job's counts and status are what its rows say, and that only open jobs hold something sealed.
func agrees(t *testing.T, s *Store, j job.Job) {
	t.Helper()
	runs, err := s.Jobs.Runs(t.Context(), j.ID, job.RunPage{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	counts := job.Counts{}
	for _, r := range runs {
		counts[r.State]++
	}
	if fmt.Sprint(counts) != fmt.Sprint(j.Counts) || j.Status.Final() != (counts.Open() == 0) {
		t.Errorf("job %d is %s and says %v, its rows %v", j.ID, j.Status, j.Counts, counts)
	}
	if sealed, err := s.Jobs.Sealed(t.Context(), j.ID); err != nil || (len(sealed) == 0) != j.Status.Final() {
		t.Errorf("job %d is %s and holds %d sealed bytes, %v", j.ID, j.Status, len(sealed), err)
	}
}
