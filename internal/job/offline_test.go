package job_test

import (
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
)

// A node that connects while as many run as may must not wait for the next look at everything.
func TestWhoConnectedWhileAllWereBusyIsNotForgotten(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, func(w *world) {
		w.fleet.Behave("n002.example", jobtest.Manner{Takes: 4 * time.Second})
		w.fleet.Disconnect("n001.example")
		j := w.order(command(func(s *job.Spec) { s.Concurrency, s.WaitOffline = 1, time.Hour }))
		w.states(time.Second, j.ID, job.Working, job.Waiting, job.Running)
		w.fleet.Connect("n001.example")
		w.states(time.Second, j.ID, job.Working, job.Waiting, job.Running)
		w.states(3*time.Second, j.ID, job.Finished, job.Succeeded, job.Succeeded)
	})
}

func TestOfflineNodesAreWaitedForAsLongAsSaid(t *testing.T) {
	t.Parallel()
	inWorld(t, 3, func(w *world) {
		w.fleet.Disconnect("n001.example")
		w.fleet.Disconnect("n003.example")
		at := w.order(command())
		w.states(time.Second, at.ID, job.Failed, job.Offline, job.Succeeded, job.Offline)
		j := w.order(command(func(s *job.Spec) { s.WaitOffline = 5 * time.Minute }))
		w.states(4*time.Minute, j.ID, job.Working, job.Waiting, job.Succeeded, job.Waiting)
		w.fleet.Connect("n001.example")
		w.states(time.Second, j.ID, job.Working, job.Succeeded, job.Succeeded, job.Waiting)
		w.states(time.Minute, j.ID, job.Failed, job.Succeeded, job.Succeeded, job.Offline)
	})
}

// Nodes that are connected to a server which cannot be reached get their orders when it can, and end with the reason when it cannot for long. Nothing is
// written for them meanwhile.
func TestNodesOfAServerThatCannotBeReached(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, func(w *world) {
		const away = "its server is away"
		w.fleet.Detach("n001.example", away)
		j := w.order(command())
		runs := w.states(time.Second, j.ID, job.Working, job.Waiting, job.Succeeded)
		changed := runs[0].Change
		if runs = w.states(4*time.Minute, j.ID, job.Working, job.Waiting, job.Succeeded); runs[0].Change != changed {
			t.Errorf("a run that waits was changed: %d, then %d", changed, runs[0].Change)
		}
		w.fleet.Detach("n001.example", "")
		w.states(2*time.Second, j.ID, job.Finished, job.Succeeded, job.Succeeded)

		w.fleet.Detach("n001.example", away)
		j = w.order(command())
		if runs = w.states(6*time.Minute, j.ID, job.Failed, job.Offline, job.Succeeded); runs[0].Reason != away {
			t.Errorf("its reason is %q", runs[0].Reason)
		}

		// What runs is not lost because nobody can ask: it is asked again afterwards.
		w.fleet.Detach("n001.example", "")
		w.fleet.Behave("n001.example", jobtest.Manner{Takes: 20 * time.Minute})
		j = w.order(command())
		w.states(time.Second, j.ID, job.Working, job.Running, job.Succeeded)
		w.fleet.Detach("n001.example", away)
		if runs = w.states(15*time.Minute, j.ID, job.Working, job.Running, job.Succeeded); runs[0].Reason != away {
			t.Errorf("its reason is %q", runs[0].Reason)
		}
		w.fleet.Detach("n001.example", "")
		w.states(6*time.Minute, j.ID, job.Finished, job.Succeeded, job.Succeeded)
	})
}

// A node whose agent is away is told apart from one that has none.
func TestAnOfflineRunSaysWhy(t *testing.T) {
	t.Parallel()
	inWorld(t, 3, func(w *world) {
		w.fleet.Disconnect("n001.example")
		w.fleet.NeverCame("n002.example")
		w.fleet.Disconnect("n003.example")
		w.ends["n003.example"] = "its certificate was revoked"
		const never = "no tutti agent or pxp-agent has ever connected from this node; on the node: `tutti agent join`, then `tutti agent install`"
		at := w.order(command())
		runs := w.states(time.Second, at.ID, job.Failed, job.Offline, job.Offline, job.Offline)
		if runs[0].Reason != "its node is not connected since 2000-01-01 00:00:00 UTC" || runs[1].Reason != never || runs[2].Reason != "its certificate was revoked" {
			t.Errorf("reasons: %q, %q, %q", runs[0].Reason, runs[1].Reason, runs[2].Reason)
		}
		later := w.order(command(func(s *job.Spec) { s.WaitOffline = time.Minute }))
		runs = w.states(2*time.Minute, later.ID, job.Failed, job.Offline, job.Offline, job.Offline)
		if runs[0].Reason != "its node did not connect within 1m" || runs[1].Reason != "its node did not connect within 1m; "+never {
			t.Errorf("reasons: %q, %q", runs[0].Reason, runs[1].Reason)
		}
	})
}

func TestANodeThatConnectsAgainIsAsked(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{Takes: 5 * time.Second, Stdout: "done"})
		j := w.order(command())
		w.after(time.Second, j.ID)
		w.fleet.Disconnect("n001.example") // and what it says meanwhile is lost
		w.states(10*time.Second, j.ID, job.Working, job.Running)
		w.fleet.Connect("n001.example")
		w.states(time.Second, j.ID, job.Finished, job.Succeeded)
	})
}

// A node that goes from one server to another is not offline meanwhile; one that does not come back is, and one that was away already is at once.
func TestANodeThatChangesItsServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	inWorld(t, 3, func(w *world) {
		w.halt()
		w.tune = func(s *job.Settings) { s.Regain = 10 * time.Second }
		w.start()
		w.fleet.Disconnect("n003.example")
		<-time.After(2 * time.Minute) // the start is long ago, too
		for _, name := range w.names[:2] {
			w.fleet.Disconnect(name)
		}
		<-time.After(3 * time.Second)
		j := w.order(command())
		w.states(2*time.Second, j.ID, job.Working, job.Waiting, job.Waiting, job.Offline)
		w.fleet.Connect("n001.example")
		w.states(time.Second, j.ID, job.Working, job.Succeeded, job.Waiting, job.Offline)
		w.states(6*time.Second, j.ID, job.Failed, job.Succeeded, job.Offline, job.Offline)
	})
}
