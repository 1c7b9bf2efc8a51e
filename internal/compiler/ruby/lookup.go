package ruby

import (
	"context"
	"errors"
	"fmt"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
)

var _ compile.Looker = (*Engines)(nil)

// lookupsAtOnce is how many lookups of one engine run at the same time: nodes wait for the workers, too.
const lookupsAtOnce = 2

// Lookup implements compile.Looker.
func (e *Engines) Lookup(ctx context.Context, order compile.Order, l compile.Lookup) (compile.Looked, error) {
	pool, err := e.pool(ctx, order.Environment, order.Version)
	if err != nil {
		return compile.Looked{}, err
	}
	return pool.Lookup(ctx, order, l)
}

// Lookup implements compile.Looker.
func (p *Pool) Lookup(ctx context.Context, order compile.Order, l compile.Lookup) (compile.Looked, error) {
	if err := checkOrder(order, p.cfg.MaxOrderBytes); err != nil {
		return compile.Looked{}, err
	}
	if p.engine.Load() == nil {
		p.lookNow(ctx) // it may be whole again
	}
	for _, turn := range []chan struct{}{p.lookups, p.slots} {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-p.done:
			return compile.Looked{}, fault.New(fault.Unavailable, "the compilers are stopped")
		case <-ctx.Done():
			return compile.Looked{}, ctx.Err()
		}
	}
	e, err := p.use(ctx, keyOf(order), nil)
	if err != nil {
		return compile.Looked{}, err
	}
	defer p.unuse(e)
	w, err := p.take(ctx, e.z)
	if err != nil {
		return compile.Looked{}, err
	}
	looked, err := w.lookup(ctx, order, l)
	p.giveBack(w)
	return looked, err
}

// lookup sends the order and the question, and waits for the answer; the bounds are those of a compile. The worker is of no use
// afterwards.
func (w *worker) lookup(ctx context.Context, order compile.Order, l compile.Lookup) (compile.Looked, error) {
	var looked compile.Looked
	reply, talk, err := w.attend(ctx, order, func(answer func(*message) error) (reply *workerReply, err error) {
		reply, looked, err = w.question(order, l, answer)
		return reply, err
	})
	w.broken = true
	switch {
	case err != nil:
		if failure, ok := errors.AsType[*compile.Error](err); ok && failure.Cause == compile.CauseTimeout {
			failure.Message = fmt.Sprintf("the lookup took longer than %s", fault.Duration(w.z.cfg.Timeout))
		}
		if gone, ok := errors.AsType[*goneError](err); ok {
			gone.settle(ctx)
			return looked, fault.Wrap(fault.Unavailable, gone, "the compiler process died while it answered the lookup, try again")
		}
		return compile.Looked{}, err
	case talk.failed != nil:
		return compile.Looked{}, talk.failed
	case reply.Error != nil:
		reply.Error.Logs = reply.Logs
		return compile.Looked{}, reply.Error
	}
	return looked, nil
}

func (w *worker) question(order compile.Order, l compile.Lookup, answer func(*message) error) (*workerReply, compile.Looked, error) {
	if err := writeRequest(w.conn, &request{Op: "lookup", Order: toWire(order), Lookup: toWireLookup(l)}); err != nil {
		return nil, compile.Looked{}, err
	}
	reply, err := hear[workerReply](w.reader, answer)
	if err != nil || reply.Error != nil {
		return reply, compile.Looked{}, err
	}
	looked := compile.Looked{Found: reply.Found, Hidden: reply.Hidden, Problem: reply.Problem, Logs: reply.Logs}
	value, err := readDocument(w.reader, reply.ValueBytes, w.z.cfg.MaxCatalogBytes)
	if err != nil {
		return nil, looked, err
	}
	if len(value) > 0 {
		looked.Value = value
	}
	explanation, err := readDocument(w.reader, reply.ExplanationBytes, w.z.cfg.MaxCatalogBytes)
	looked.Explanation = string(explanation)
	return reply, looked, err
}

func toWireLookup(l compile.Lookup) *wireLookup {
	w := &wireLookup{Keys: l.Keys, Default: l.Default, Explain: l.Explain, Compile: l.Compile}
	if m := l.Merge; m != nil {
		w.Merge = &wireMerge{Strategy: m.Strategy}
		if m.Strategy == "deep" {
			w.Merge.SortMergedArrays, w.Merge.MergeHashArrays, w.Merge.KnockoutPrefix = &m.SortMergedArrays, &m.MergeHashArrays, m.KnockoutPrefix
		}
	}
	return w
}
