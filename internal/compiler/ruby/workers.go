package ruby

import (
	"context"
	"slices"
)

// take gives a worker of z: an idle one, else a new one. The caller holds a
// slot, so when all workers that may live do live, one of them is idle.
func (p *Pool) take(ctx context.Context, z *zygote) (*worker, error) {
	own, surplus := p.reserve(z)
	if surplus != nil {
		p.discard(surplus)
	}
	if own != nil {
		return own, nil
	}
	w, err := z.fork(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forking--
	if err != nil {
		return nil, err
	}
	p.workers[w] = true
	return w, nil
}

// reserve takes z's last used idle worker, or counts a new one; then it may name
// an idle worker that must make room.
func (p *Pool) reserve(z *zygote) (own, surplus *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range slices.Backward(p.idle) {
		if w.z == z && !w.worn() {
			p.idle = slices.Delete(p.idle, i, i+1)
			return w, nil
		}
	}
	if len(p.workers)+p.forking >= p.cfg.Workers && len(p.idle) > 0 {
		surplus = p.idle[0]
		p.idle = p.idle[1:]
	}
	p.forking++
	return nil, surplus
}

// giveBack makes a worker idle, or ends it when it is worn.
func (p *Pool) giveBack(w *worker) {
	if w.worn() || !w.z.alive() {
		p.discard(w)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, w)
}

// discard kills a worker; its zygote reaps it when it has time.
func (p *Pool) discard(w *worker) {
	p.mu.Lock()
	delete(p.workers, w)
	p.mu.Unlock()
	w.kill()
	chore := func(ctx context.Context) {
		if err := w.z.reap(ctx, w.pid); err != nil && ctx.Err() == nil && w.z.alive() {
			p.log.WarnContext(ctx, "a worker was not reaped", "pid", w.pid, "err", err)
		}
	}
	select {
	case p.chores <- chore:
	case <-p.done:
	}
}

// dropWorkers kills the workers of a zygote that has ended, in case they did not
// notice it. Who compiles with one of them is told by its socket.
func (p *Pool) dropWorkers(z *zygote) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.workers {
		if w.z == z {
			w.kill()
			delete(p.workers, w)
		}
	}
	p.idle = slices.DeleteFunc(p.idle, func(w *worker) bool { return w.z == z })
}
