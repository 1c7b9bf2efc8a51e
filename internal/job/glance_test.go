package job_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
)

// counted is a store that counts the reads of jobs that have changed, each of which takes a while.
type counted struct {
	job.Store
	reads atomic.Int64
}

func (c *counted) Changes(ctx context.Context, id, after int64, n int) (job.Job, []job.Run, error) {
	c.reads.Add(1)
	<-time.After(10 * time.Millisecond)
	return c.Store.Changes(ctx, id, after, n)
}

// A hundred who glance at a job four times a second cost no more than ten reads a second, and none of them sees what is older than a moment.
func TestGlancesAreShared(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, func(w *world) {
		w.fleet.Behave("n001.example", jobtest.Manner{Takes: 20 * time.Second})
		j := w.order(command())
		store := &counted{Store: w.store}
		w.halt()
		w.store = store
		w.start()
		begun := time.Now()
		store.reads.Store(0)
		var work errgroup.Group
		for i := range 100 {
			work.Go(func() error {
				<-time.After(time.Duration(i) * 2500 * time.Microsecond)
				for time.Since(begun) < 5*time.Second {
					if got, err := w.Glance(w.t.Context(), j.ID); err != nil || got.ID != j.ID {
						return fmt.Errorf("it is job %d: %w", got.ID, err)
					}
					<-time.After(250 * time.Millisecond)
				}
				return nil
			})
		}
		if err := work.Wait(); err != nil {
			w.t.Error(err)
		}
		if reads := store.reads.Load(); reads > 52 || reads < 30 {
			w.t.Errorf("%d reads in five seconds", reads)
		}
		w.after(30*time.Second, j.ID)
		if got, err := w.Glance(w.t.Context(), j.ID); err != nil || got.Status != job.Finished {
			w.t.Errorf("after its end it is %s, %v", got.Status, err)
		}
		if _, err := w.Glance(w.t.Context(), j.ID+1); !fault.Is(err, fault.NotFound) {
			w.t.Errorf("a job that is not there: %v", err)
		}
	})
}
