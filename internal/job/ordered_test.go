package job_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/graph"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
)

// inOrder runs a test with n nodes that wait for one another and take ten seconds each.
func inOrder(t *testing.T, n int, edges jobtest.Edges, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, store: jobtest.NewStore(), names: names(n), edges: edges}
		w.fleet = jobtest.NewFleet(w.names...)
		for _, name := range w.names {
			w.fleet.Behave(name, jobtest.Manner{Takes: 10 * time.Second})
		}
		w.start()
		test(w)
		w.halt()
		w.fleet.Wait()
	})
}

// tiers: n003 waits for n002, that for n001; n004 for nobody.
var tiers = jobtest.Edges{{Waits: "n002.example", For: "n001.example"}, {Waits: "n003.example", For: "n002.example"}}

func orderedCommand(change ...func(*job.Spec)) job.Spec {
	return command(append(change, func(s *job.Spec) { s.Ordered = true })...)
}

func TestAnOrderedJobRunsTierAfterTier(t *testing.T) {
	t.Parallel()
	inOrder(t, 4, tiers, func(w *world) {
		j := w.order(orderedCommand())
		runs := w.states(5*time.Second, j.ID, job.Working, job.Running, job.Waiting, job.Waiting, job.Running)
		if want := "waits for n001.example"; runs[1].Reason != want {
			t.Errorf("reason %q, want %q", runs[1].Reason, want)
		}
		w.states(10*time.Second, j.ID, job.Working, job.Succeeded, job.Running, job.Waiting, job.Succeeded)
		w.states(10*time.Second, j.ID, job.Working, job.Succeeded, job.Succeeded, job.Running, job.Succeeded)
		w.states(10*time.Second, j.ID, job.Finished, job.Succeeded, job.Succeeded, job.Succeeded, job.Succeeded)
	})
}

func TestWithoutOrderedNobodyWaits(t *testing.T) {
	t.Parallel()
	inOrder(t, 4, tiers, func(w *world) {
		j := w.order(command())
		w.states(5*time.Second, j.ID, job.Working, job.Running, job.Running, job.Running, job.Running)
	})
}

func TestAFailureSkipsWhatDependsOnIt(t *testing.T) {
	t.Parallel()
	inOrder(t, 4, tiers, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{ExitCode: 1, Takes: 3 * time.Second})
		j := w.order(orderedCommand())
		runs := w.states(5*time.Second, j.ID, job.Working, job.RunFailed, job.Skipped, job.Skipped, job.Running)
		for _, r := range runs[1:3] {
			if want := "because of n001.example (failed)"; r.Reason != want {
				t.Errorf("%s: reason %q, want %q", r.Node, r.Reason, want)
			}
		}
		w.states(10*time.Second, j.ID, job.Failed, job.RunFailed, job.Skipped, job.Skipped, job.Succeeded)
	})
}

func TestANodeThatIsAwaySkipsItsDependants(t *testing.T) {
	t.Parallel()
	inOrder(t, 4, tiers, func(w *world) {
		w.fleet.Disconnect("n002.example")
		j := w.order(orderedCommand())
		w.states(15*time.Second, j.ID, job.Failed, job.Succeeded, job.Offline, job.Skipped, job.Succeeded)
	})
}

func TestANodeThatIsWaitedForHoldsItsDependants(t *testing.T) {
	t.Parallel()
	inOrder(t, 4, tiers, func(w *world) {
		w.fleet.Disconnect("n002.example")
		j := w.order(orderedCommand(func(s *job.Spec) { s.WaitOffline = time.Hour }))
		w.states(5*time.Minute, j.ID, job.Working, job.Succeeded, job.Waiting, job.Waiting, job.Succeeded)
		w.fleet.Connect("n002.example")
		w.states(5*time.Second, j.ID, job.Working, job.Succeeded, job.Running, job.Waiting, job.Succeeded)
		w.states(time.Minute, j.ID, job.Finished, job.Succeeded, job.Succeeded, job.Succeeded, job.Succeeded)
	})
}

func TestANodeThatConnectsDoesNotJumpTheQueue(t *testing.T) {
	t.Parallel()
	inOrder(t, 4, tiers, func(w *world) {
		w.fleet.Disconnect("n003.example")
		j := w.order(orderedCommand(func(s *job.Spec) { s.WaitOffline = time.Hour }))
		<-time.After(2 * time.Second)
		w.fleet.Connect("n003.example")
		w.states(time.Second, j.ID, job.Working, job.Running, job.Waiting, job.Waiting, job.Running)
	})
}

func TestAnOrderedJobGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	inOrder(t, 4, tiers, func(w *world) {
		w.fleet.Behave("n002.example", jobtest.Manner{ExitCode: 1, Takes: 10 * time.Second})
		j := w.order(orderedCommand())
		w.after(5*time.Second, j.ID)
		w.halt()
		w.start()
		w.states(10*time.Second, j.ID, job.Working, job.Succeeded, job.Running, job.Waiting, job.Succeeded)
		w.halt()
		w.start()
		runs := w.states(10*time.Second, j.ID, job.Failed, job.Succeeded, job.RunFailed, job.Skipped, job.Succeeded)
		if !strings.HasPrefix(runs[2].Reason, "because of n002.example") {
			t.Errorf("reason %q", runs[2].Reason)
		}
	})
}

// A server that is killed after it stored a failure, and before it skipped what depends on it.
func TestWhatAFailureSkipsIsFoundAfterARestart(t *testing.T) {
	t.Parallel()
	inOrder(t, 3, tiers, func(w *world) {
		j := w.order(orderedCommand())
		_, runs := w.after(time.Second, j.ID)
		w.halt()
		if _, err := w.store.Apply(t.Context(), []job.Event{
			{Run: runs[0].ID, What: job.DroppedOut, State: job.Lost, Reason: "gone", At: time.Now()},
			{Run: runs[1].ID, What: job.DroppedOut, State: job.Skipped, Reason: "because of n001.example (lost)", At: time.Now()},
		}); err != nil {
			t.Fatal(err)
		}
		w.start()
		runs = w.states(time.Second, j.ID, job.Failed, job.Lost, job.Skipped, job.Skipped)
		if want := "because of n001.example (lost)"; runs[2].Reason != want {
			t.Errorf("reason %q, want %q", runs[2].Reason, want)
		}
	})
}

func TestOneAtATimeKeepsTheOrder(t *testing.T) {
	t.Parallel()
	back := jobtest.Edges{{Waits: "n001.example", For: "n003.example"}, {Waits: "n002.example", For: "n003.example"}}
	inOrder(t, 3, back, func(w *world) {
		j := w.order(orderedCommand(func(s *job.Spec) { s.Concurrency = 1 }))
		w.states(5*time.Second, j.ID, job.Working, job.Waiting, job.Waiting, job.Running)
		w.states(10*time.Second, j.ID, job.Working, job.Running, job.Waiting, job.Succeeded)
		w.states(10*time.Second, j.ID, job.Working, job.Succeeded, job.Running, job.Succeeded)
		w.states(10*time.Second, j.ID, job.Finished, job.Succeeded, job.Succeeded, job.Succeeded)
	})
}

func TestACircleIsRefusedWithItsWay(t *testing.T) {
	t.Parallel()
	inOrder(t, 4, append(jobtest.Edges{{Waits: "n001.example", For: "n003.example"}}, tiers...), func(w *world) {
		_, err := w.Create(t.Context(), ann, orderedCommand())
		wantKind(t, err, fault.Invalid)
		want := "n001.example waits for n003.example, which waits for n002.example, which waits for n001.example"
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want the way %q", err, want)
		}
		if jobs, err := w.Jobs(t.Context(), job.Page{Limit: 1}); err != nil || len(jobs) > 0 {
			t.Errorf("jobs %v, %v", jobs, err)
		}
	})
}

func TestAPlanShowsTheOrder(t *testing.T) {
	t.Parallel()
	inOrder(t, 4, tiers, func(w *world) {
		plan, err := w.Plan(t.Context(), ann, orderedCommand())
		if err != nil {
			t.Fatal(err)
		}
		want := [][]fleet.Certname{{"n001.example", "n004.example"}, {"n002.example"}, {"n003.example"}}
		if diff := cmp.Diff(want, plan.Layers); diff != "" {
			t.Errorf("layers (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]graph.Edge[fleet.Certname](tiers), plan.Edges); diff != "" {
			t.Errorf("edges (-want +got):\n%s", diff)
		}
		free, err := w.Plan(t.Context(), ann, command())
		if err != nil || free.Layers != nil || free.Edges != nil {
			t.Errorf("a plan without order: %v %v, %v", free.Layers, free.Edges, err)
		}
	})
}

func TestWhatFailedIsRepeatedInOrder(t *testing.T) {
	t.Parallel()
	inOrder(t, 4, tiers, func(w *world) {
		w.fleet.Behave("n002.example", jobtest.Manner{ExitCode: 1})
		j := w.order(orderedCommand())
		w.states(time.Minute, j.ID, job.Failed, job.Succeeded, job.RunFailed, job.Skipped, job.Succeeded)
		w.fleet.Behave("n002.example", jobtest.Manner{Takes: 10 * time.Second})
		again, err := w.Rerun(t.Context(), ann, j.ID, job.Again{Failed: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]job.Edge{{Run: 2, For: 1}}, again.Edges); diff != "" {
			t.Errorf("edges (-want +got):\n%s", diff)
		}
		w.states(5*time.Second, again.ID, job.Working, job.Running, job.Waiting)
		w.states(time.Minute, again.ID, job.Finished, job.Succeeded, job.Succeeded)
	})
}
