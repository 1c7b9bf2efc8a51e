package websocket

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTasksThatAreHeldUpHoldUpNobody queues more of them than there are workers.
func TestTasksThatAreHeldUpHoldUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newPool(2, 50*time.Millisecond)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		free := make(chan struct{})
		for range 20 {
			c.add(func(context.Context) { <-free })
		}
		start := time.Now()
		done := make(chan struct{})
		c.add(func(context.Context) { close(done) })
		<-done
		if took := time.Since(start); took > 20*50*time.Millisecond {
			t.Errorf("the last one waited %s", took)
		}
		close(free)
		synctest.Wait()
		var after sync.WaitGroup
		for range 1000 { // the workers that were replaced have gone; the others do
			after.Add(1)
			c.add(func(context.Context) { after.Done() })
		}
		after.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		c.add(func(context.Context) { t.Error("a task was done after the end") })
	})
}

func TestTasksAreDoneInOrder(t *testing.T) {
	t.Parallel()
	c := newPool(1, time.Hour)
	ctx, stop := context.WithCancel(t.Context())
	var order []int
	for i := range 100 {
		c.add(func(context.Context) { order = append(order, i) })
	}
	c.add(func(context.Context) { stop() })
	if err := c.Run(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if order[i] != i {
			t.Fatalf("order %v", order)
		}
	}
}
