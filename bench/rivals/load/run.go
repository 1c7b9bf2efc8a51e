package load

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Plan says how much load to make.
type Plan struct {
	Workers int
	Total   int           // requests at most; 0: no bound
	For     time.Duration // time at most; 0: no bound
}

// Result is what a run saw.
type Result struct {
	Latencies []time.Duration // of the requests that ended, in no order
	Wall      time.Duration
}

// Run calls do from Workers goroutines with rising numbers until Total
// requests are made, For has passed, ctx is done, or one fails. Each worker
// makes a first request however short For is, and requests that are under way
// when the time is up are finished and counted. An error comes with the
// result so far.
func Run(ctx context.Context, plan Plan, do func(ctx context.Context, worker, i int) error) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	begin := time.Now()
	per := make([][]time.Duration, plan.Workers)
	var workers sync.WaitGroup
	for w := range plan.Workers {
		workers.Go(func() {
			for ctx.Err() == nil {
				if plan.For > 0 && len(per[w]) > 0 && time.Since(begin) >= plan.For {
					return
				}
				i := int(next.Add(1)) - 1
				if plan.Total > 0 && i >= plan.Total {
					return
				}
				start := time.Now()
				if err := do(ctx, w, i); err != nil {
					cancel(err)
					return
				}
				per[w] = append(per[w], time.Since(start))
			}
		})
	}
	workers.Wait()
	result := Result{Wall: time.Since(begin)}
	for _, latencies := range per {
		result.Latencies = append(result.Latencies, latencies...)
	}
	if cause := context.Cause(ctx); cause != nil {
		return result, cause
	}
	if len(result.Latencies) == 0 {
		return result, errors.New("no request was made: give a worker and a request at least")
	}
	return result, nil
}
