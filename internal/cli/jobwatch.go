package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// watcher follows a job to its end.
type watcher struct {
	*app
	client *api.Client
	job    api.Job
	runs   map[string]api.JobRun // by node, as they are now
	view   progress
	stream *runStream  // prints each run that has ended; nil: they are printed together at the end
	events bool        // show what happens in its runs
	away   atomic.Bool // the connection to the events is lost
	over   int         // runs whose events say that they ended
	// receive takes what the runs wrote, instead of report; nil: report does.
	receive func(context.Context, *watcher) error
}

// progress shows how a job goes on, on standard error.
type progress interface {
	ended(r api.JobRun) // a run has
	happened(e api.Event)
	note(text string)
	draw(s jobStanding) // is called from time to time
	pause() time.Duration
	close(told bool) // told: what became of all runs is printed now
}

// jobStanding is how a job stands.
type jobStanding struct {
	job    api.Job
	counts map[string]int
	now    time.Time
}

// watchWith follows a job to its end, prints what came out, and says by its error whether all went well. It may show what
// happens in the runs, too, or have what they wrote received by somebody.
func watchWith(ctx context.Context, w *watcher) error {
	a, client, job := w.app, w.client, w.job
	w.runs, w.view, w.events = map[string]api.JobRun{}, newProgress(a, job, w.tellsRuns()), w.events && !jobOver(job.State)
	if a.output == "jsonl" && w.receive == nil {
		w.stream = &runStream{app: a, client: client, job: job.ID}
	}
	interrupts, stop := a.interrupts()
	defer stop()
	err := w.follow(ctx)
	w.view.close(err == nil)
	if errors.Is(err, context.Canceled) {
		return w.leave(context.WithoutCancel(ctx), interrupts)
	}
	if err != nil {
		a.hint("The job goes on without you. Watch it again: tutti job watch %s", job.ID)
		return err
	}
	report := w.report
	if w.receive != nil {
		report = func(ctx context.Context) error { return w.receive(ctx, w) }
	}
	if err := report(ctx); err != nil {
		return err
	}
	return w.verdict()
}

// tellsRuns says whether report prints what became of runs, and why, for people.
func (w *watcher) tellsRuns() bool { return w.receive == nil && w.output == "table" }

func (a *app) interrupts() (<-chan os.Signal, func()) {
	if a.system.Interrupts == nil {
		return nil, func() {}
	}
	return a.system.Interrupts()
}

// heard is an event, or a word about the connection.
type heard struct {
	event api.JobEvent
	note  string
}

// follow takes in events until the job is over.
func (w *watcher) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, ended := make(chan heard, 100), make(chan error, 1)
	tell := func(h heard) error {
		select {
		case events <- h:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	go func() {
		defer close(events)
		ended <- w.client.FollowJob(ctx, w.job.ID, 0,
			func(e api.JobEvent) error { return tell(heard{event: e}) },
			func(err error) { _ = tell(heard{note: explain(err) + "; the job goes on, trying again"}) },
			func() { _ = tell(heard{note: "connected again"}) })
	}()
	happening, leave := w.listen(ctx)
	defer leave()
	tick := time.NewTicker(w.view.pause())
	defer tick.Stop()
	for {
		select {
		case h, more := <-events:
			if !more {
				w.lastWords(ctx, happening)
				w.view.draw(w.standing())
				return <-ended
			}
			if err := w.take(ctx, h); err != nil {
				return err
			}
		case e, more := <-happening:
			if !more {
				happening = nil
				continue
			}
			w.happened(e)
		case <-tick.C:
			w.view.draw(w.standing())
		}
	}
}

// take notes what an event says.
func (w *watcher) take(ctx context.Context, h heard) error {
	switch {
	case h.note != "":
		w.view.note(h.note)
	case h.event.Job != nil:
		w.job = *h.event.Job
	case h.event.Run != nil:
		run := *h.event.Run
		was := w.runs[run.Node]
		w.runs[run.Node] = run
		if !final(run.State) || final(was.State) {
			return nil
		}
		w.view.ended(run)
		if w.stream != nil {
			return w.stream.print(ctx, run)
		}
	}
	return nil
}

// final says whether a run in this state is over.
func final(state string) bool {
	return state != "" && state != "waiting" && state != "sent" && state != "running"
}

// standing counts; of runs that nothing was heard of, nothing has happened to.
func (w *watcher) standing() jobStanding {
	counts := map[string]int{"waiting": w.job.Nodes - len(w.runs)}
	for _, run := range w.runs {
		counts[run.State]++
	}
	return jobStanding{job: w.job, counts: counts, now: time.Now()}
}

// secondChance is how long a second Ctrl-C is waited for, if the system does not say.
const secondChance = 5 * time.Second

// leave says how to come back. Another Ctrl-C asks the server to stop the job.
func (w *watcher) leave(ctx context.Context, interrupts <-chan os.Signal) error {
	w.hint("Job %s goes on. Watch it again: tutti job watch %s", w.job.ID, w.job.ID)
	if !hears(interrupts, 100*time.Millisecond) { // it was no Ctrl-C that ended us
		return context.Canceled
	}
	if w.system.animates() {
		patience := cmp.Or(w.system.SecondChance, secondChance)
		w.hint("Press Ctrl-C once more within %s to stop it.", print.Duration(patience))
		if hears(interrupts, patience) {
			return w.stopNow(ctx)
		}
	}
	return context.Canceled
}

func (w *watcher) stopNow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	job, err := api.JobStop.Call(ctx, w.client, api.JobStopRequest{Job: w.job.ID})
	if err != nil {
		return fault.Wrap(fault.Of(err), err, "job %s could not be stopped: %s", w.job.ID, explain(err))
	}
	w.hint("No more runs of job %s begin; those that run go on to their end. To end them, too: tutti job stop %s --kill", job.ID, job.ID)
	return context.Canceled
}

// hears says whether a signal comes within a time.
func hears(signals <-chan os.Signal, within time.Duration) bool {
	if signals == nil {
		return false
	}
	patience := time.NewTimer(within)
	defer patience.Stop()
	select {
	case <-signals:
		return true
	case <-patience.C:
		return false
	}
}
