package cli

import (
	"context"
	"sync"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// listen follows what happens in the runs of the job that is watched, until it cannot any more. leave ends it. Who may not see it
// is told so and watches the job without.
func (w *watcher) listen(ctx context.Context) (<-chan api.Event, func()) {
	if !w.events {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	events := make(chan api.Event, 100)
	var following sync.WaitGroup
	following.Go(func() {
		defer close(events)
		err := w.client.FollowEvents(ctx, api.EventStreamRequest{Job: w.job.ID, After: "0"}, func(e api.Event) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, func(api.EventSpan) {}, func(error) { w.away.Store(true) }, func() { w.away.Store(false) }) // that it is lost is said of the job
		if ctx.Err() == nil && fault.Of(err) == fault.Denied {
			w.hint("What happens in the runs is not shown: %s", explain(err))
		}
	})
	return events, func() { cancel(); following.Wait() }
}

// happened shows an event. That a run begins and ends is told by the job.
func (w *watcher) happened(e api.Event) {
	switch e.Kind {
	case "begin":
	case "end":
		w.over++
	default:
		w.view.happened(e)
	}
}

// lastWords is how long the events of runs are waited for that the job says have ended. With the connection lost to both, the job's may be
// back some seconds before that of the events.
const (
	lastWords     = 2 * time.Second
	lastWordsAway = 10 * time.Second
)

// lastWords shows what is still on its way when the job is over.
func (w *watcher) lastWords(ctx context.Context, happening <-chan api.Event) {
	applied := 0
	for _, run := range w.runs {
		if run.Puppet != nil && run.Puppet.Transaction != "" && run.Puppet.Transaction != "unknown" {
			applied++
		}
	}
	wait := lastWords
	if w.away.Load() {
		wait = lastWordsAway
	}
	patience := time.NewTimer(wait)
	defer patience.Stop()
	for happening != nil && w.over < applied {
		select {
		case e, more := <-happening:
			if !more {
				return
			}
			w.happened(e)
		case <-patience.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
