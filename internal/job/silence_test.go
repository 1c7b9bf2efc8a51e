package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// A run that its node has is lost when its node is connected and answers nothing, and then only.
func TestOnlySilenceOfAConnectedNodeLosesARun(t *testing.T) {
	t.Parallel()
	inWorld(t, 6, func(w *world) {
		for _, name := range w.names {
			w.fleet.Behave(name, jobtest.Manner{Takes: 50 * time.Minute})
		}
		j := w.order(command())
		w.states(time.Second, j.ID, job.Working, job.Running, job.Running, job.Running, job.Running, job.Running, job.Running)
		silent := jobtest.Manner{Silent: true}
		w.fleet.Behave("n001.example", silent)
		w.fleet.Behave("n002.example", jobtest.Manner{Silent: true}) // and not connected
		w.fleet.Disconnect("n002.example")
		w.fleet.Behave("n003.example", jobtest.Manner{Puzzled: true}) // an answer of any kind is an answer
		w.fleet.Behave("n005.example", silent)                        // it says something once
		w.fleet.Behave("n006.example", silent)                        // it connects again and again
		for range 5 {
			w.states(time.Minute, j.ID, job.Working, job.Running, job.Running, job.Running, job.Running, job.Running, job.Running)
		}
		_, runs := w.after(0, j.ID)
		if why := runs[0].Reason; !strings.Contains(why, "asked 4 times since ") || !strings.Contains(why, "has not answered") {
			t.Errorf("of a node that says nothing: %q", why)
		}
		if why := runs[1].Reason; !strings.HasPrefix(why, "its node is not connected since 2000-01-01 00:00:01 UTC") {
			t.Errorf("of a node that is away: %q", why)
		}
		if runs[2].Reason != "" || runs[3].Reason != "" {
			t.Errorf("of nodes that answer: %q, %q", runs[2].Reason, runs[3].Reason)
		}
		w.says("n005.example", runs[4].ID)
		w.fleet.Disconnect("n006.example")
		w.fleet.Connect("n006.example")
		runs = w.states(4*time.Minute, j.ID, job.Working, job.Lost, job.Running, job.Running, job.Running, job.Running, job.Running)
		if why := runs[0].Reason; !strings.Contains(why, "its node is connected, and answered none of 7 questions in 7m") {
			t.Errorf("a run was lost because %q", why)
		}
		w.fleet.Behave("n006.example", jobtest.Manner{Takes: 50 * time.Minute})
		w.fleet.Connect("n002.example")
		w.fleet.Behave("n002.example", jobtest.Manner{})
		_, runs = w.after(2*time.Minute, j.ID)
		if runs[1].Reason != "" {
			t.Errorf("of a node that came back: %q", runs[1].Reason)
		}
		w.states(time.Hour, j.ID, job.Failed, job.Lost, job.Succeeded, job.Succeeded, job.Succeeded, job.Lost, job.Succeeded)
	})
}

// says lets a node say that a run goes on.
func (w *world) says(node fleet.Certname, run string) {
	w.t.Helper()
	status := pxp.Data(pxp.StatusResults{Transaction: run, Status: pxp.Running})
	if err := w.Observe(w.t.Context(), job.Answer{Node: node, Kind: job.Reply, Transaction: run + "_q1", Results: status}); err != nil {
		w.t.Error(err)
	}
}

// An order that nobody acknowledges holds its job no longer than a run of which nothing is heard.
func TestAnOrderThatIsNeverAcknowledgedSaysSo(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{Silent: true})
		j := w.order(command())
		runs := w.states(3*time.Minute, j.ID, job.Working, job.Sent)
		if !strings.Contains(runs[0].Reason, "has not answered") {
			t.Errorf("reason: %q", runs[0].Reason)
		}
		w.states(6*time.Minute, j.ID, job.Failed, job.Lost)
	})
}

// A node's second agent knows nothing of what the first one does: its word ends no run, until it is the only one.
func TestAnotherAgentOfANodeLosesNoRun(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, func(w *world) {
		knows, ignorant := jobtest.Manner{Takes: 3 * time.Minute}, jobtest.Manner{Takes: 3 * time.Minute, Forgets: true}
		w.fleet.Behave("n001.example", knows)
		w.fleet.Behave("n002.example", knows)
		j := w.order(command())
		w.after(time.Second, j.ID)
		w.fleet.Supersede("n001.example", ignorant)
		w.fleet.Supersede("n002.example", ignorant)
		runs := w.states(30*time.Second, j.ID, job.Working, job.Running, job.Running)
		if !strings.Contains(runs[0].Reason, "taken the place of an earlier connection") {
			t.Errorf("reason: %q", runs[0].Reason)
		}
		w.fleet.Supersede("n001.example", knows) // the first one comes back, the second one's stays away
		runs = w.states(2*time.Minute, j.ID, job.Working, job.Running, job.Lost)
		if runs[0].Reason != "" {
			t.Errorf("reason after an answer: %q", runs[0].Reason)
		}
		w.states(time.Minute, j.ID, job.Failed, job.Succeeded, job.Lost)
	})
}

// While several agents have a node's certificate an order goes out once: a second one might get it, too. The reason says why.
func TestAgentsThatShareACertificateGetAnOrderOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, func(w *world) {
		const words = "several agents have its certificate"
		w.fleet.Share("n001.example", words)
		w.fleet.Behave("n001.example", jobtest.Manner{Silent: true})
		j := w.order(command())
		runs := w.states(2*time.Minute, j.ID, job.Working, job.Sent)
		if !strings.Contains(runs[0].Reason, words) {
			t.Errorf("reason: %q", runs[0].Reason)
		}
		w.fleet.Behave("n001.example", jobtest.Manner{Forgets: true})
		runs = w.states(20*time.Minute, j.ID, job.Working, job.Sent)
		if !strings.Contains(runs[0].Reason, words) {
			t.Errorf("reason: %q", runs[0].Reason)
		}
		orders := 0
		for _, r := range w.fleet.Requests("n001.example") {
			if r.NotifyOutcome {
				orders++
			}
		}
		if orders != 1 {
			t.Errorf("the order was sent %d times", orders)
		}
		runs = w.states(time.Hour, j.ID, job.Failed, job.Lost)
		if !strings.Contains(runs[0].Reason, words) {
			t.Errorf("reason: %q", runs[0].Reason)
		}
	})
}

// From a node that was revoked or purged nothing more is to be expected.
func TestRunsOfNodesThatLeaveEnd(t *testing.T) {
	t.Parallel()
	inWorld(t, 4, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{Takes: time.Hour})
		w.fleet.Behave("n002.example", jobtest.Manner{Silent: true})
		w.fleet.Behave("n004.example", jobtest.Manner{Takes: time.Minute})
		w.fleet.Disconnect("n003.example")
		j := w.order(command(func(s *job.Spec) { s.WaitOffline = time.Hour }))
		w.states(time.Second, j.ID, job.Working, job.Running, job.Sent, job.Waiting, job.Running)
		if err := w.Leave(w.t.Context(), "its certificate was revoked", "n001.example", "n002.example", "n003.example", "unknown.example"); err != nil {
			t.Error(err)
		}
		runs := w.states(time.Second, j.ID, job.Working, job.Lost, job.Lost, job.Skipped, job.Running)
		if runs[0].Reason != "its certificate was revoked, and it may still run there" || runs[2].Reason != "its certificate was revoked" {
			t.Errorf("reasons: %q, %q", runs[0].Reason, runs[2].Reason)
		}
		w.states(time.Minute, j.ID, job.Failed, job.Lost, job.Lost, job.Skipped, job.Succeeded)
	})
}
