package websocket

import (
	"context"
	"sync"
	"time"
)

// crew does short tasks with few goroutines, first come, first served. A task that
// takes long gets its worker replaced: who waits for one connection does
// not hold up the others. So there are at most size workers that make progress,
// and one goroutine for each task that is held up.
type crew struct {
	size     int
	patience time.Duration

	mu    sync.Mutex
	come  sync.Cond
	tasks []task
	done  bool

	late  chan struct{} // a worker is held up
	ended chan struct{}
}

// task is one turn of work.
type task func(context.Context)

func newCrew(size int, patience time.Duration) *crew {
	c := &crew{size: size, patience: patience, late: make(chan struct{}), ended: make(chan struct{})}
	c.come.L = &c.mu
	return c
}

// add queues a task. Nothing is queued any more once Run has ended.
func (c *crew) add(t task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		c.tasks = append(c.tasks, t)
		c.come.Signal()
	}
}

// Run works until ctx is done; then tasks under way are finished, and the rest is dropped.
func (c *crew) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	for range c.size {
		workers.Go(func() { c.work(ctx) })
	}
	for {
		select {
		case <-c.late:
			workers.Go(func() { c.work(ctx) })
		case <-ctx.Done():
			c.stop()
			workers.Wait()
			return nil
		}
	}
}

func (c *crew) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done, c.tasks = true, nil
	close(c.ended)
	c.come.Broadcast()
}

func (c *crew) work(ctx context.Context) {
	replace := time.AfterFunc(c.patience, c.callForHelp)
	replace.Stop()
	for {
		t, ok := c.next()
		if !ok {
			return
		}
		replace.Reset(c.patience)
		t(ctx)
		if !replace.Stop() {
			return // somebody works in this one's place
		}
	}
}

func (c *crew) callForHelp() {
	select {
	case c.late <- struct{}{}:
	case <-c.ended:
	}
}

// next waits for a task; false says that there will be none.
func (c *crew) next() (t task, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.tasks) == 0 {
		if c.done {
			return nil, false
		}
		c.come.Wait()
	}
	t, c.tasks[0] = c.tasks[0], nil
	if c.tasks = c.tasks[1:]; len(c.tasks) == 0 {
		c.tasks = nil
	}
	return t, true
}
