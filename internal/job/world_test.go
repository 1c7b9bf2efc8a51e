package job_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
)

var ann = fleet.Actor{Kind: fleet.UserActor, Name: "ann"}

// world is a service with nodes around it, inside a bubble of time.
type world struct {
	*job.Service
	t     *testing.T
	store job.Store
	fleet *jobtest.Fleet
	names []fleet.Certname
	edges jobtest.Edges
	ends  jobtest.Ends
	tune  func(*job.Settings) // of the next start; may be nil
	stop  context.CancelFunc
	ended chan error
}

func names(n int) []fleet.Certname {
	list := make([]fleet.Certname, n)
	for i := range list {
		list[i] = fleet.Certname(fmt.Sprintf("n%03d.example", i+1))
	}
	return list
}

// inWorld runs a test with n good nodes and a service that runs.
func inWorld(t *testing.T, n int, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, store: jobtest.NewStore(), names: names(n), ends: jobtest.Ends{}}
		w.fleet = jobtest.NewFleet(w.names...)
		w.start()
		test(w)
		w.halt()
		w.fleet.Wait()
	})
}

// start starts a new service on the same rows.
func (w *world) start() {
	settings := job.DefaultSettings()
	if w.tune != nil {
		w.tune(&settings)
	}
	service, err := job.New(job.Parts{
		Store: w.store, Sender: w.fleet, Resolver: jobtest.Everybody(w.names), Graph: w.edges, Gate: jobtest.OpenGate{}, Sealer: jobtest.Seals{}, Ends: w.ends,
		NewID: jobtest.NewID, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}, settings)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Service = service
	w.fleet.Know(service)
	ctx, stop := context.WithCancel(context.Background())
	w.stop, w.ended = stop, make(chan error, 1)
	go func() { w.ended <- jobtest.Serve(ctx, service) }()
}

func (w *world) halt() {
	w.stop()
	if err := <-w.ended; err != nil {
		w.t.Error(err)
	}
}

func command(change ...func(*job.Spec)) job.Spec {
	s := job.Spec{Kind: job.Command, Command: &job.CommandSpec{Command: "uptime"}, Targets: job.Targets{All: true}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func (w *world) order(s job.Spec) job.Job {
	w.t.Helper()
	j, err := w.Create(w.t.Context(), ann, s)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// after lets time pass, and returns the job and its runs then.
func (w *world) after(d time.Duration, id int64) (job.Job, []job.Run) {
	w.t.Helper()
	<-time.After(d)
	synctest.Wait()
	j, err := w.Job(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	runs, err := w.Runs(w.t.Context(), id, job.RunPage{Limit: 100_000})
	if err != nil {
		w.t.Fatal(err)
	}
	return j, runs
}

// states is what became of a job after some time.
func (w *world) states(d time.Duration, id int64, status job.Status, want ...job.State) []job.Run {
	w.t.Helper()
	j, runs := w.after(d, id)
	var got []job.State
	for _, r := range runs {
		got = append(got, r.State)
		if r.State.Final() && r.Reason == "" {
			w.t.Errorf("run %d is %s and has no reason", r.Number, r.State)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || j.Status != status {
		w.t.Errorf("after %s the job is %s (%s), want %s; runs (-want +got):\n%s", d, j.Status, j.Reason, status, diff)
	}
	return runs
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Errorf("error = %v, want kind %s", err, want)
	}
}
