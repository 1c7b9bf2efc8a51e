package ruby

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
)

// drainTimeout is how long an ended zygote's output may stay open before that is worth a warning.
const drainTimeout = 10 * time.Second

// keep starts the zygote of e, teaches it, and stays with it until it has ended
// and everything of it is gone.
func (p *Pool) keep(ctx context.Context, e *entry, samples []compile.Order) {
	root, release, err := p.checkout.Path(ctx, e.key.version)
	if err != nil {
		p.refuse(e, fmt.Errorf("check out version %s: %w", e.key.version.Short(), err))
		return
	}
	defer release()
	z, err := p.start(ctx, e.key, root)
	if err != nil {
		p.refuse(e, err)
		return
	}
	if len(samples) > 0 && z.teach(ctx, samples) != nil {
		p.log.WarnContext(ctx, "samples broke the zygote or took too long, starting without them",
			"environment", e.key.environment, "version", e.key.version.Short())
		p.markSlow(e.key)
		p.clean(z)
		if z, err = p.start(ctx, e.key, root); err != nil {
			p.refuse(e, err)
			return
		}
	}
	defer p.clean(z)
	e.z = z
	close(e.ready)
	if !p.wanted(e) {
		return
	}
	select {
	case <-z.ended:
		p.log.InfoContext(ctx, "zygote ended", "environment", e.key.environment, "version", e.key.version.Short())
	case <-ctx.Done():
	}
	p.forget(e)
}

func (p *Pool) refuse(e *entry, err error) {
	e.err = err
	p.forget(e)
	close(e.ready)
}

// start brings up a zygote that has loaded the version's code.
func (p *Pool) start(ctx context.Context, k key, root string) (*zygote, error) {
	p.mu.Lock()
	p.serial++
	dir := filepath.Join(p.cfg.zygoteDir(), fmt.Sprintf("%d-%s-%s", p.serial, k.environment, k.version.Short()))
	p.mu.Unlock()
	if err := p.cfg.Keeper.Private(dir); err != nil {
		return nil, fmt.Errorf("make a zygote's directory: %w", err)
	}
	engine := p.engine.Load()
	if engine == nil {
		_ = os.RemoveAll(dir)
		return nil, p.unusable()
	}
	z, err := spawn(ctx, p.cfg, engine, p.known, k, dir, root, p.log)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	if err := z.greet(ctx, root); err != nil {
		p.clean(z)
		return nil, err
	}
	p.log.InfoContext(ctx, "zygote started", "environment", k.environment, "version", k.version.Short(), "pid", z.pid())
	return z, nil
}

// clean ends the zygote and its workers and removes what they left.
func (p *Pool) clean(z *zygote) {
	z.kill()
	<-z.ended
	p.dropWorkers(z)
	select {
	case <-z.drained: // whoever could print has ended
	case <-time.After(drainTimeout):
		p.log.Warn("something that a compile started still holds its output", "pid", z.pid())
	}
	_ = z.output.Close()
	<-z.drained
	_ = os.RemoveAll(z.dir)
}

func (p *Pool) markSlow(k key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.slow) > 1000 {
		clear(p.slow)
	}
	p.slow[k] = true
}

func (p *Pool) isSlow(k key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slow[k]
}

// learn lets the zygote compile an order that loaded code which it does not have
// yet, so that the next worker has it from the start.
func (p *Pool) learn(w *worker, order compile.Order, err error) {
	z := w.z
	if err != nil || w.newTypes == 0 || z.lessons.Load() >= maxLessons || w.lessons < z.lessons.Load() {
		return
	}
	k := keyOf(order)
	if p.isSlow(k) || !z.learning.CompareAndSwap(false, true) {
		return
	}
	forget := func() { z.learning.Store(false) }
	chore := func(ctx context.Context) {
		defer forget()
		p.teach(ctx, z, []compile.Order{order})
	}
	select {
	case p.chores <- chore:
	case <-p.done:
		forget()
	}
}

// teach makes z compile orders. One that breaks it, or takes too long, ends it:
// then it is started again when it is needed, and not taught.
func (p *Pool) teach(ctx context.Context, z *zygote, orders []compile.Order) {
	if err := z.teach(ctx, orders); err != nil && ctx.Err() == nil && !z.dismissed.Load() {
		p.log.WarnContext(ctx, "an order broke the zygote or took too long, it is started again without",
			"environment", z.key.environment, "version", z.key.version.Short(), "err", err)
		p.markSlow(z.key)
		z.kill()
	}
}
