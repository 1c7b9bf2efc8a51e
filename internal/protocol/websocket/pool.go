package websocket

import (
	"context"
	"sync"
	"time"
)

// pool does short tasks with few goroutines, first come, first served. A task that
// takes long gets its worker replaced: who waits for one connection does
// not hold up the others. So there are at most size workers that make progress,
// and one goroutine for each task that is held up.
type pool struct {
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

func newPool(size int, patience time.Duration) *pool {
	p := &pool{size: size, patience: patience, late: make(chan struct{}), ended: make(chan struct{})}
	p.come.L = &p.mu
	return p
}

// add queues a task. Nothing is queued any more once Run has ended.
func (p *pool) add(t task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done {
		p.tasks = append(p.tasks, t)
		p.come.Signal()
	}
}

// Run works until ctx is done; then tasks under way are finished, and the rest is dropped.
func (p *pool) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	for range p.size {
		workers.Go(func() { p.work(ctx) })
	}
	for {
		select {
		case <-p.late:
			workers.Go(func() { p.work(ctx) })
		case <-ctx.Done():
			p.stop()
			workers.Wait()
			return nil
		}
	}
}

func (p *pool) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.tasks = true, nil
	close(p.ended)
	p.come.Broadcast()
}

func (p *pool) work(ctx context.Context) {
	replace := time.AfterFunc(p.patience, p.callForHelp)
	replace.Stop()
	for {
		t, ok := p.next()
		if !ok {
			return
		}
		replace.Reset(p.patience)
		t(ctx)
		if !replace.Stop() {
			return // somebody works in this one's place
		}
	}
}

func (p *pool) callForHelp() {
	select {
	case p.late <- struct{}{}:
	case <-p.ended:
	}
}

// next waits for a task; false says that there will be none.
func (p *pool) next() (t task, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.tasks) == 0 {
		if p.done {
			return nil, false
		}
		p.come.Wait()
	}
	t, p.tasks[0] = p.tasks[0], nil
	if p.tasks = p.tasks[1:]; len(p.tasks) == 0 {
		p.tasks = nil
	}
	return t, true
}
