package job_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

func TestAJobRunsOnAllItsNodes(t *testing.T) {
	t.Parallel()
	inWorld(t, 3, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{Stdout: "one\ntwo\n", Takes: 3 * time.Second, Twice: true})
		w.fleet.Behave("n003.example", jobtest.Manner{ExitCode: 4})
		j := w.order(command())
		w.states(time.Second, j.ID, job.Working, job.Running, job.Succeeded, job.RunFailed)
		runs := w.states(3*time.Second, j.ID, job.Failed, job.Succeeded, job.Succeeded, job.RunFailed)
		lines, _, err := w.Output(w.t.Context(), j.ID, job.OutputPage{Limit: 10})
		if err != nil || len(lines) != 2 || lines[1].Text != "two" || lines[1].Node != "n001.example" {
			t.Errorf("output: %+v, %v", lines, err)
		}
		if *runs[2].ExitCode != 4 || runs[2].Reason != "exit code 4" {
			t.Errorf("the failed run: %+v", runs[2])
		}
		for _, name := range w.names {
			if got := len(w.fleet.Requests(name)); got != 1 {
				t.Errorf("%s was sent %d requests", name, got)
			}
		}
	})
}

func TestConcurrencyIsKept(t *testing.T) {
	t.Parallel()
	inWorld(t, 7, func(w *world) {
		for _, name := range w.names {
			w.fleet.Behave(name, jobtest.Manner{Takes: 10 * time.Second})
		}
		w.fleet.Disconnect("n002.example")
		j := w.order(command(func(s *job.Spec) { s.Concurrency, s.WaitOffline = 2, time.Hour }))
		for i := range 3 {
			now, _ := w.after(5*time.Second, j.ID)
			if now.Counts[job.Running] != 2 || now.Counts[job.Succeeded] != 2*i {
				t.Errorf("after %d rounds: %v", i, now.Counts)
			}
			<-time.After(5 * time.Second)
		}
		now, _ := w.after(0, j.ID)
		if now.Counts[job.Succeeded] != 6 || now.Counts[job.Waiting] != 1 {
			t.Errorf("of those connected: %v", now.Counts)
		}
		w.fleet.Connect("n002.example")
		if now, _ := w.after(11*time.Second, j.ID); now.Status != job.Finished {
			t.Errorf("the job is %s: %v", now.Status, now.Counts)
		}
	})
}

func TestTheFailureBudgetEndsAJob(t *testing.T) {
	t.Parallel()
	inWorld(t, 6, func(w *world) {
		for _, name := range w.names {
			w.fleet.Behave(name, jobtest.Manner{ExitCode: 1, Takes: time.Second})
		}
		budget := 1
		j := w.order(command(func(s *job.Spec) { s.Concurrency, s.MaxFailures = 1, &budget }))
		runs := w.states(time.Minute, j.ID, job.Failed, job.RunFailed, job.RunFailed, job.Skipped, job.Skipped, job.Skipped, job.Skipped)
		if !strings.Contains(runs[5].Reason, "2 runs did not succeed, and at most 1 may") {
			t.Errorf("reason of a skipped run: %s", runs[5].Reason)
		}
	})
}

func TestStopLetsWhatRunsEnd(t *testing.T) {
	t.Parallel()
	inWorld(t, 3, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{Takes: 20 * time.Second})
		j := w.order(command(func(s *job.Spec) { s.Concurrency = 1 }))
		w.after(time.Second, j.ID)
		if _, err := w.Stop(w.t.Context(), ann, j.ID, false); err != nil {
			t.Fatal(err)
		}
		w.states(time.Second, j.ID, job.Stopping, job.Running, job.Skipped, job.Skipped)
		w.states(20*time.Second, j.ID, job.Stopped, job.Succeeded, job.Skipped, job.Skipped)
		_, err := w.Stop(w.t.Context(), ann, 99, false)
		wantKind(t, err, fault.NotFound)
	})
}

func TestKillEndsWhatRuns(t *testing.T) {
	t.Parallel()
	inWorld(t, 6, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{Takes: time.Hour})
		w.fleet.Behave("n002.example", jobtest.Manner{Takes: 2 * time.Minute, CannotEnd: true})
		w.fleet.Behave("n003.example", jobtest.Manner{Silent: true})
		w.fleet.Behave("n004.example", jobtest.Manner{Takes: time.Hour})
		w.fleet.Behave("n006.example", jobtest.Manner{Takes: time.Hour})
		j := w.order(command())
		w.after(time.Second, j.ID)
		w.fleet.Disconnect("n004.example")
		w.fleet.Disconnect("n006.example")
		if _, err := w.Stop(w.t.Context(), ann, j.ID, true); err != nil {
			t.Fatal(err)
		}
		runs := w.states(time.Second, j.ID, job.Stopping, job.Killed, job.Killed, job.Sent, job.Running, job.Succeeded, job.Running)
		if !strings.Contains(runs[1].Reason, "killed by ann; its agent cannot stop it") || !strings.Contains(runs[1].Reason, "may still run") {
			t.Errorf("a run that cannot be stopped says %q", runs[1].Reason)
		}
		w.states(20*time.Second, j.ID, job.Stopping, job.Killed, job.Killed, job.Killed, job.Running, job.Succeeded, job.Running)
		w.fleet.Connect("n006.example") // in time: it is told now
		w.states(45*time.Second, j.ID, job.Stopped, job.Killed, job.Killed, job.Killed, job.Lost, job.Succeeded, job.Killed)
	})
}

func TestARunThatTakesTooLongIsTimedOut(t *testing.T) {
	t.Parallel()
	inWorld(t, 4, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{Takes: time.Hour})
		w.fleet.Behave("n002.example", jobtest.Manner{Takes: time.Hour, CannotEnd: true})
		w.fleet.Behave("n003.example", jobtest.Manner{Takes: time.Hour})
		w.fleet.Behave("n004.example", jobtest.Manner{Silent: true})
		j := w.order(command(func(s *job.Spec) { s.Timeout = time.Minute }))
		w.after(30*time.Second, j.ID)
		w.fleet.Disconnect("n003.example")
		runs := w.states(35*time.Second, j.ID, job.Failed, job.TimedOut, job.TimedOut, job.Lost, job.Lost)
		if !strings.Contains(runs[1].Reason, "cannot stop it") || !strings.Contains(runs[0].Reason, "longer than 1m") {
			t.Errorf("reasons: %q, %q", runs[0].Reason, runs[1].Reason)
		}
	})
}

func TestWhatIsLostIsSentAndAskedAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, 3, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{Loses: 4, Stdout: "x"}) // orders, or what it says of them
		w.fleet.Behave("n002.example", jobtest.Manner{Mute: true, Takes: 5 * time.Second})
		w.fleet.Behave("n003.example", jobtest.Manner{Forgets: true, Mute: true, Takes: time.Second})
		j := w.order(command())
		w.states(10*time.Minute, j.ID, job.Failed, job.Succeeded, job.Succeeded, job.Lost)
		for _, name := range w.names {
			for id, times := range w.fleet.Begun(name) {
				if times != 1 {
					t.Errorf("%s began on %s %d times", id, name, times)
				}
			}
		}
	})
}

// An agent that was restarted tells its outcomes only when it is asked, and cannot tell a large one.
func TestAnOutcomeThatIsTooLargeToTellEndsTheRun(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{Takes: time.Hour})
		j := w.order(command())
		_, runs := w.after(time.Second, j.ID)
		for _, description := range []string{"unknown action 'query' for module 'status'", pxp.TooLarge + "950112 exceeded max-message-size 900000"} {
			w.states(time.Second, j.ID, job.Working, job.Running)
			if err := w.Observe(w.t.Context(), job.Answer{
				Node: "n001.example", Kind: job.Failure, Transaction: runs[0].ID + "_q1", Description: description,
			}); err != nil {
				t.Error(err)
			}
		}
		w.states(time.Second, j.ID, job.Failed, job.Errored)
	})
}

func TestWordsOfRefusal(t *testing.T) {
	t.Parallel()
	for description, want := range map[string]job.State{
		"unknown module: command":                     job.Refused,
		"unknown action 'run' for module 'command'":   job.Refused,
		pxp.Refused + " (/etc/policy.yaml): command":  job.Refused,
		pxp.Vanished + ", but no output is available": job.Lost,
		pxp.TimedOut: job.TimedOut,
		pxp.Full:     job.Errored,
		"invalid input for non blocking 'command run' request": job.Errored,
		"a\x00b\xff\n" + strings.Repeat("long ", 1000):         job.Errored,
	} {
		inWorld(t, 1, func(w *world) {
			w.fleet.Behave("n001.example", jobtest.Manner{Refuses: description})
			runs := w.states(time.Second, w.order(command()).ID, job.Failed, want)
			if len(runs[0].Reason) > 1100 || strings.ContainsAny(runs[0].Reason, "\x00\n") {
				t.Errorf("reason: %.200q", runs[0].Reason)
			}
		})
	}
}

func TestARestartGoesOnAsIfNothingHadHappened(t *testing.T) {
	t.Parallel()
	inWorld(t, 6, func(w *world) {
		for _, name := range w.names {
			w.fleet.Behave(name, jobtest.Manner{Takes: 15 * time.Second})
		}
		j := w.order(command(func(s *job.Spec) { s.Concurrency, s.Timeout = 3, 30*time.Second }))
		w.states(time.Second, j.ID, job.Working, job.Running, job.Running, job.Running, job.Waiting, job.Waiting, job.Waiting)
		w.halt()
		for _, name := range w.names {
			w.fleet.Disconnect(name)
		}
		<-time.After(10 * time.Minute) // the time of what ran is over, and its end was told to nobody
		w.start()
		w.states(20*time.Second, j.ID, job.Working, job.Running, job.Running, job.Running, job.Waiting, job.Waiting, job.Waiting)
		for _, name := range w.names {
			w.fleet.Connect(name)
		}
		w.states(20*time.Second, j.ID, job.Finished, job.Succeeded, job.Succeeded, job.Succeeded, job.Succeeded, job.Succeeded, job.Succeeded)
		for _, name := range w.names {
			if begun := w.fleet.Begun(name); len(begun) != 1 {
				t.Errorf("%s began %v", name, begun)
			}
		}
	})
}

func TestAForgedAnswerIsRefused(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{Takes: time.Minute})
		j := w.order(command())
		runs := w.states(time.Second, j.ID, job.Working, job.Running, job.Succeeded)
		for _, forged := range []job.Answer{
			{Kind: job.Response, Transaction: runs[0].ID, Results: []byte(`{"exitcode":0}`)},
			{Kind: job.Failure, Transaction: runs[0].ID, Description: "x"},
			{Kind: job.Reply, Transaction: runs[0].ID + "_q1", Results: []byte(`{"transaction_id":"` + runs[0].ID + `","status":"unknown"}`)},
		} {
			forged.Node = "n002.example"
			wantKind(t, w.Observe(w.t.Context(), forged), fault.Denied)
		}
		// one that answers for itself but speaks of another's run
		own := job.Answer{
			Node: "n002.example", Kind: job.Reply, Transaction: runs[1].ID + "_q1", Results: []byte(`{"transaction_id":"` + runs[0].ID + `","status":"unknown"}`),
		}
		if err := w.Observe(w.t.Context(), own); err != nil {
			t.Error(err)
		}
		nobodys := job.Answer{Node: "n002.example", Kind: job.Provisional, Transaction: "a-b"}
		if err := w.Observe(w.t.Context(), nobodys); err != nil {
			t.Error(err)
		}
		w.states(time.Second, j.ID, job.Working, job.Running, job.Succeeded)
	})
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	for kind, spec := range map[job.Kind]job.Spec{
		job.Command: command(),
		job.Puppet:  {Kind: job.Puppet, Puppet: &job.PuppetSpec{}, Targets: job.Targets{All: true}},
	} {
		inWorld(t, 1, func(w *world) {
			w.fleet.Behave("n001.example", jobtest.Manner{Takes: time.Minute})
			j := w.order(spec)
			_, runs := w.after(time.Second, j.ID)
			if err := w.Observe(w.t.Context(), job.Answer{
				Node: "n001.example", Kind: job.Response, Transaction: runs[0].ID, Results: []byte(`{"exitcode":"no"}`),
			}); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			w.states(time.Second, j.ID, job.Failed, job.Errored)
		})
	}
}

func TestPuppetRuns(t *testing.T) {
	t.Parallel()
	result := func(status, problem string, exit int) string {
		return string(pxp.Data(pxp.PuppetResults{
			Status: status, TransactionUUID: "u", Environment: "production", ExitCode: exit, ErrorType: problem, Metrics: map[string]int{"total": 7},
		}))
	}
	for results, want := range map[string]job.State{
		result("changed", "", 0):                  job.Succeeded,
		result("unchanged", "", 0):                job.Succeeded,
		result("failed", "", 0):                   job.RunFailed,
		result("failed", pxp.AgentExitNonZero, 1): job.RunFailed,
		result("unknown", pxp.AgentDisabled, 1):   job.Errored,
		result("", "", 0):                         job.Errored, // it was killed before it could say anything
		result("unknown", pxp.NoPuppetBin, -1):    job.Errored,
	} {
		for _, asked := range []bool{false, true} {
			inWorld(t, 1, func(w *world) {
				w.fleet.Behave("n001.example", jobtest.Manner{Takes: time.Hour})
				j := w.order(job.Spec{
					Kind: job.Puppet, Puppet: &job.PuppetSpec{Noop: true, Tags: []string{"a", "b"}}, Environment: "testing", Targets: job.Targets{All: true},
				})
				_, runs := w.after(time.Second, j.ID)
				a := job.Answer{Node: "n001.example", Kind: job.Response, Transaction: runs[0].ID, Results: []byte(results)}
				if asked {
					exit := 1
					a.Kind, a.Transaction = job.Reply, runs[0].ID+"_q7"
					a.Results = pxp.Data(pxp.StatusResults{Transaction: runs[0].ID, Status: pxp.Failed, ExitCode: &exit, Stdout: results})
				}
				if err := w.Observe(w.t.Context(), a); err != nil {
					t.Error(err)
				}
				_, runs = w.after(time.Second, j.ID)
				if runs[0].State != want || runs[0].Puppet == nil || runs[0].Puppet.Metrics["total"] != 7 {
					t.Errorf("%s: %s, %+v", results, runs[0].State, runs[0].Puppet)
				}
				var p pxp.PuppetParams
				mustRead(t, w.fleet.Requests("n001.example")[0].Params, &p)
				slices.Sort(p.Flags)
				if diff := cmp.Diff([]string{"--environment", "--no-splay", "--noop", "--tags", "a,b", "testing"}, p.Flags); diff != "" {
					t.Errorf("flags (-want +got):\n%s", diff)
				}
			})
		}
	}
}
