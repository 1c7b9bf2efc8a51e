package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

// A job that has ended is kept, and its files with it, until job_retention has passed.
func TestJobsAreKeptForTheirTime(t *testing.T) {
	t.Parallel()
	s := newOrderer(t, io.Discard)
	newAgent("n.example", manner{}).join(t, s.broker, &s.serving)
	digest := fleet.DigestOf([]byte("a script"))
	j := s.order(job.Spec{
		Kind: job.Script, Targets: job.Targets{Nodes: []fleet.Certname{"n.example"}},
		Script: &job.ScriptSpec{Script: job.FileRef{Name: "a.sh", Digest: digest}},
	})
	s.until(j.ID, ended)
	named := func() bool {
		var all []fleet.Digest
		if err := s.housekeeper.referred(t.Context(), func(d fleet.Digest) { all = append(all, d) }); err != nil {
			t.Error(err)
		}
		return slices.Contains(all, digest)
	}
	s.housekeeper.sweep(t.Context(), time.Now().Add(s.config.JobRetention-time.Hour))
	if _, err := s.store.Jobs.Job(t.Context(), j.ID); err != nil || !named() {
		t.Errorf("before its time: %v, its file is kept: %t", err, named())
	}
	s.housekeeper.sweep(t.Context(), time.Now().Add(s.config.JobRetention+time.Hour))
	if _, err := s.store.Jobs.Job(t.Context(), j.ID); fault.Of(err) != fault.NotFound || err == nil || named() {
		t.Errorf("after its time: %v, its file is kept: %t", err, named())
	}
}

func TestFiguresOfJobs(t *testing.T) {
	t.Parallel()
	s := newOrderer(t, io.Discard)
	newAgent("n.example", manner{}).join(t, s.broker, &s.serving)
	j := s.order(uptime("n.example", "away.example"))
	s.until(j.ID, ended)
	missing := func() []string {
		answer := httptest.NewRecorder()
		s.metrics.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return slices.DeleteFunc([]string{
			"tutti_job_runs_succeeded_total 1", "tutti_job_runs_offline_total 1", "tutti_job_runs_failed_total 0", "tutti_job_orders_sent_total ",
			"tutti_job_answers_waiting_bytes ", "tutti_job_oldest_queued_seconds ",
		}, func(want string) bool { return strings.Contains(answer.Body.String(), "\n"+want) })
	}
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for left := missing(); len(left) > 0; left = missing() { // what ended is counted after the rows say it
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("after a minute there is no %q", left)
		}
	}
}
