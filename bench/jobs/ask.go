package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/api"
)

// asking is another user of the API, who asks on its own clock: a slow answer does
// not keep the next question from being asked.
type asking struct {
	cancel context.CancelFunc
	done   chan struct{}
	took   []time.Duration
	err    error
}

// ask begins to ask for nodes, jobs and runs in turn.
func (b *bench) ask(ctx context.Context) *asking {
	ctx, cancel := context.WithCancel(ctx)
	a := &asking{cancel: cancel, done: make(chan struct{})}
	go a.run(ctx, b.Asks, b.questions())
	return a
}

// stop ends it and gives how long answers took.
func (a *asking) stop() ([]time.Duration, error) {
	a.cancel()
	<-a.done
	return a.took, a.err
}

// answer is how one question went.
type answer struct {
	took time.Duration
	err  error
}

func (a *asking) run(ctx context.Context, perSecond int, questions []func(context.Context) error) {
	defer close(a.done)
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	answers, open := make(chan answer), 0
	take := func(got answer) {
		if open--; got.err != nil {
			a.err = got.err
		} else {
			a.took = append(a.took, got.took)
		}
	}
	for i := 0; ; {
		select {
		case <-ctx.Done():
			for open > 0 {
				take(<-answers)
			}
			return
		case got := <-answers:
			take(got)
		case <-tick.C:
			question := questions[i%len(questions)]
			i++
			open++
			go func() {
				start := time.Now()
				err := question(context.WithoutCancel(ctx))
				answers <- answer{time.Since(start), err}
			}()
		}
	}
}

// questions is what people look at while a job runs.
func (b *bench) questions() []func(context.Context) error {
	var newest atomic.Value // the id of a job
	newest.Store("")
	return []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := api.NodeList.Call(ctx, b.api, api.NodeListRequest{Limit: 100})
			return err
		},
		func(ctx context.Context) error {
			jobs, err := api.JobList.Call(ctx, b.api, api.JobListRequest{Limit: 20})
			if len(jobs.Items) > 0 {
				newest.Store(jobs.Items[0].ID)
			}
			return err
		},
		func(ctx context.Context) error {
			id := newest.Load().(string)
			if id == "" {
				return nil
			}
			if _, err := api.JobRuns.Call(ctx, b.api, api.JobRunsRequest{Job: id, Limit: 100}); err != nil {
				return fmt.Errorf("runs of the newest job: %w", err)
			}
			return nil
		},
	}
}
