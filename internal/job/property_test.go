package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/graph"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
)

// Whatever is heard of runs, in whatever order: a final state never changes, nothing begins
// twice without having been taken back, counts agree, and numbers of changes only grow.
func TestAnyEventsKeepTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		budget := rapid.IntRange(0, 4).Draw(rt, "budget")
		runs := make([]job.Run, rapid.IntRange(1, 5).Draw(rt, "nodes"))
		for i, name := range names(len(runs)) {
			runs[i] = job.Run{ID: jobtest.NewID(), Number: i + 1, Node: name, State: job.Waiting}
		}
		j := job.Job{Status: job.Queued, Counts: job.Counts{job.Waiting: len(runs)}, Spec: command(func(s *job.Spec) { s.MaxFailures = &budget })}
		out := map[string]bool{} // orders that went out and were not taken back
		for second := range rapid.IntRange(1, 40).Draw(rt, "events") {
			if rapid.IntRange(0, 19).Draw(rt, "stop") == 0 {
				j = directed(rt, j, job.Direction{Kill: rapid.Bool().Draw(rt, "kill"), Reason: "stopped", At: time.Unix(int64(second), 0)})
			}
			e := jobtest.AnyEvent(runs, second).Draw(rt, "event")
			for i, before := range runs {
				if before.ID == e.Run {
					j, runs[i] = advanced(rt, j, before, e, out)
				}
			}
			holds(rt, j, runs)
		}
	})
}

func directed(rt *rapid.T, j job.Job, d job.Direction) job.Job {
	after := j.Direct(d)
	if j.Status.Final() && after.Change != j.Change {
		rt.Fatalf("a job that is %s was stopped", j.Status)
	}
	return after
}

func advanced(rt *rapid.T, j job.Job, before job.Run, e job.Event, out map[string]bool) (job.Job, job.Run) {
	now, after, verdict := j.Advance(before, e)
	switch {
	case before.State.Final() && (verdict == job.Took || after.State != before.State):
		rt.Fatalf("%s became %s", before.State, after.State)
	case e.Node != "" && e.Node != before.Node && verdict != job.Foreign:
		rt.Fatalf("another node's word had the verdict %d", verdict)
	case now.Change < j.Change || after.Change < before.Change || after.Change > now.Change:
		rt.Fatalf("numbers fell: job %d to %d, run %d to %d", j.Change, now.Change, before.Change, after.Change)
	case j.Status == job.Stopping && verdict == job.Took && e.What == job.WasSent:
		rt.Fatal("a run was sent in a job that stops")
	}
	if verdict == job.Took && e.What == job.WasSent {
		if out[e.Run] {
			rt.Fatal("an order went out twice as the first")
		}
		out[e.Run] = true
	}
	if verdict == job.Took && after.State == job.Waiting {
		if e.What != job.WasNotSent || before.Attempts > 1 {
			rt.Fatalf("a run waits again after event %d and %d attempts", e.What, before.Attempts)
		}
		out[e.Run] = false
	}
	return now, after
}

func holds(rt *rapid.T, j job.Job, runs []job.Run) {
	counts := job.Counts{}
	for _, r := range runs {
		counts[r.State]++
	}
	if fmt.Sprint(counts) != fmt.Sprint(j.Counts) {
		rt.Fatalf("rows say %v, the job %v", counts, j.Counts)
	}
	if j.Status.Final() != (counts.Open() == 0) {
		rt.Fatalf("the job is %s with %v", j.Status, counts)
	}
	if budget := *j.Spec.MaxFailures; counts.Failures() > budget && (j.Status == job.Working || j.Status == job.Queued) {
		rt.Fatalf("the job is %s with %d failures of %d", j.Status, counts.Failures(), budget)
	}
}

// fate is what happens to one node.
type fate struct {
	manner      jobtest.Manner
	comes, goes time.Duration // 0: it is there, it stays
	comesBack   time.Duration
}

func drawFate(t *rapid.T) fate {
	seconds := func(most int, name string) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Second
	}
	return fate{
		manner: jobtest.Manner{
			ExitCode: rapid.IntRange(0, 1).Draw(t, "exit"), Stdout: "line\n", Takes: seconds(90, "takes"), Silent: rapid.IntRange(0, 9).Draw(t, "silent") == 0,
			Mute: rapid.Bool().Draw(t, "mute"), Twice: rapid.Bool().Draw(t, "twice"), CannotEnd: rapid.Bool().Draw(t, "cannot end"),
			Forgets: rapid.IntRange(0, 9).Draw(t, "forgets") == 0, Lag: seconds(15, "lag"), Loses: rapid.IntRange(0, 6).Draw(t, "loses"),
		},
		comes: seconds(200, "comes"), goes: seconds(200, "goes"), comesBack: seconds(400, "comes back"),
	}
}

// Whatever nodes and servers do, every job ends, and no node begins an order twice.
func TestEveryJobEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		fates := rapid.SliceOfN(rapid.Custom(drawFate), 1, 6).Draw(rt, "nodes")
		restart := time.Duration(rapid.IntRange(0, 300).Draw(rt, "restart")) * time.Second
		stop := time.Duration(rapid.IntRange(0, 600).Draw(rt, "stop")) * time.Second
		kill := rapid.Bool().Draw(rt, "kill")
		spec := command(func(s *job.Spec) {
			s.Concurrency = rapid.IntRange(0, 3).Draw(rt, "concurrency")
			s.WaitOffline = time.Duration(rapid.IntRange(0, 300).Draw(rt, "wait")) * time.Second
			s.Timeout = time.Duration(rapid.IntRange(10, 300).Draw(rt, "timeout")) * time.Second
			if budget := rapid.IntRange(-1, 2).Draw(rt, "budget"); budget >= 0 {
				s.MaxFailures = &budget
			}
		})
		edges := drawEdges(rt, len(fates))
		spec.Ordered = len(edges) > 0
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, store: jobtest.NewStore(), names: names(len(fates)), edges: edges}
			w.fleet = jobtest.NewFleet(w.names...)
			for i, f := range fates {
				w.fleet.Behave(w.names[i], f.manner)
			}
			w.start()
			for i, f := range fates {
				w.suffer(w.names[i], f)
			}
			j := w.order(spec)
			w.live(j.ID, restart, stop, kill)
			w.halt()
			w.fleet.Wait()
		})
		if t.Failed() {
			rt.Fatal("see above")
		}
	})
}

// drawEdges lets some nodes wait for others, without circles.
func drawEdges(rt *rapid.T, nodes int) jobtest.Edges {
	var edges jobtest.Edges
	place := rapid.Permutation(names(nodes)).Draw(rt, "places")
	for i := range place {
		for k := range i {
			if rapid.IntRange(0, 2).Draw(rt, "waits") == 0 {
				edges = append(edges, graph.Edge[fleet.Certname]{Waits: place[i], For: place[k]})
			}
		}
	}
	return edges
}

// suffer lets a node come and go.
func (w *world) suffer(name fleet.Certname, f fate) {
	if f.comes > 0 {
		w.fleet.Disconnect(name)
	}
	go func() {
		<-time.After(f.comes)
		w.fleet.Connect(name)
		if f.goes == 0 {
			return
		}
		<-time.After(f.goes)
		w.fleet.Disconnect(name)
		<-time.After(f.comesBack)
		w.fleet.Connect(name)
	}()
}

// live watches a job to its end, while the server is started anew and the job is stopped.
func (w *world) live(id int64, restart, stop time.Duration, kill bool) {
	const step = 10 * time.Second
	final := map[string]job.State{}
	for at := time.Duration(0); at < time.Hour; at += step {
		if restart > 0 && at <= restart && restart < at+step {
			w.halt()
			w.start()
		}
		if stop > 0 && at <= stop && stop < at+step {
			if _, err := w.Stop(w.t.Context(), ann, id, kill); err != nil {
				w.t.Error(err)
			}
		}
		j, runs := w.after(step, id)
		for _, r := range runs {
			if before, ended := final[r.ID]; ended && before != r.State {
				w.t.Errorf("run %d was %s and is %s", r.Number, before, r.State)
			}
			if r.State.Final() {
				final[r.ID] = r.State
			}
		}
		if most := j.Spec.Concurrency; most > 0 && j.Counts.Active() > most {
			w.t.Errorf("%d run at once, at most %d may", j.Counts.Active(), most)
		}
	}
	w.endedWell(id)
}

func (w *world) endedWell(id int64) {
	j, runs := w.after(0, id)
	if !j.Status.Final() {
		w.t.Errorf("after an hour the job is %s: %v", j.Status, j.Counts)
	}
	for i, r := range runs {
		begun := w.fleet.Begun(r.Node)[r.ID]
		if !r.State.Final() || r.Reason == "" || begun > 1 {
			w.t.Errorf("run %d is %s (%s) and began %d times", i, r.State, r.Reason, begun)
		}
		if (r.State == job.Succeeded || r.State == job.RunFailed) && begun != 1 || (r.State == job.Skipped || r.State == job.Offline) && begun != 0 {
			w.t.Errorf("run %d is %s and began %d times", i, r.State, begun)
		}
	}
	w.endedInOrder(j, runs)
}

// endedInOrder checks what an ordered job promises: nothing began before all had succeeded that it
// waits for, and what was skipped because of a node waits for it, perhaps by way of others.
func (w *world) endedInOrder(j job.Job, runs []job.Run) {
	for _, e := range j.Edges {
		late, early := runs[e.Run-1], runs[e.For-1]
		if !late.SentAt.IsZero() && (early.State != job.Succeeded || late.SentAt.Before(early.FinishedAt)) {
			w.t.Errorf("%s was sent at %s; %s was %s at %s", late.Node, late.SentAt, early.Node, early.State, early.FinishedAt)
		}
		if early.State != job.Succeeded && late.State != job.Skipped {
			w.t.Errorf("%s is %s, and %s that waits for it %s", early.Node, early.State, late.Node, late.State)
		}
	}
	reach := graph.New(w.names, w.edges)
	for _, r := range runs {
		cause, because := strings.CutPrefix(r.Reason, "because of ")
		if !because {
			continue
		}
		name, _, _ := strings.Cut(cause, " ")
		closed := graph.New(w.names, append(slices.Clone(reach.Edges()), graph.Edge[fleet.Certname]{Waits: fleet.Certname(name), For: r.Node}))
		at := slices.Index(w.names, fleet.Certname(name))
		if closed.Cycle() == nil || runs[at].State == job.Succeeded || runs[at].State == job.Skipped && strings.HasPrefix(runs[at].Reason, "because of") {
			w.t.Errorf("%s is skipped %s, which is %s (%s)", r.Node, r.Reason, runs[at].State, runs[at].Reason)
		}
	}
}
