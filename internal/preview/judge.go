package preview

import (
	"context"
	"fmt"
	"sync"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/parallel"
)

// comparers is how many nodes' catalogs are compared at the same time: two of them are in memory for each.
const comparers = 4

// takeIn adds a share whose catalogs are known to the groups.
func (w *work) takeIn(ctx context.Context, s Share) (Verdict, error) {
	switch {
	case s.State == Failed:
		w.comparing.AddFailure(s.Number, s.Node, s.Failure)
	case s.State == Unable || s.Base == "" || s.Fresh == "":
	case s.Base == s.Fresh:
		w.comparing.AddSame(s.Number, s.Node)
	default:
		return w.comparing.Add(ctx, s.Number, s.Node, Pair{Base: s.Base, Fresh: s.Fresh, AcrossEngines: w.engines.across(s.BaseEngine)})
	}
	return NoDifference, nil
}

// takeInAgain takes in all shares that are final, after a restart.
func (w *work) takeInAgain(ctx context.Context) error {
	return parallel.Each(len(w.shares), comparers, func(i int) error {
		_, err := w.takeIn(ctx, w.shares[i])
		return err
	})
}

// settle steps shares on with the answers at the same places, and stores them. A share that cannot be
// compared now waits on; the others do not wait for it.
func (w *work) settle(ctx context.Context, answers []Answer, numbers []uint32) error {
	var next, compiled []Share
	for i, number := range numbers {
		if w.shares[number].State.Final() {
			continue
		}
		s, compare := Step(w.shares[number], answers[i])
		if compare {
			compiled = append(compiled, s)
			continue
		}
		if s.State == Failed {
			w.comparing.AddFailure(s.Number, s.Node, s.Failure)
		}
		next = append(next, s)
	}
	judged, failed := w.compareAll(ctx, compiled)
	if next = append(next, judged...); len(next) == 0 {
		return failed
	}
	if _, err := w.Store.SavePreviewShares(ctx, w.id, next); err != nil {
		w.forget() // what was taken in is not what the rows say
		return err
	}
	w.knowing.Lock()
	for _, s := range next {
		w.known(s)
	}
	w.knowing.Unlock()
	w.changes.Tell(w.id)
	return failed
}

// compareAll ends shares whose catalogs are there; those that it cannot compare now are left out, with the last error.
func (w *work) compareAll(ctx context.Context, compiled []Share) (judged []Share, failed error) {
	if len(compiled) == 0 {
		return nil, nil
	}
	nodes := make([]fleet.Certname, len(compiled))
	for i, s := range compiled {
		nodes[i] = s.Node
	}
	bases, err := w.Bases.Bases(ctx, nodes)
	if err != nil {
		return nil, err
	}
	engines, err := w.enginesOf(ctx, bases)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	err = parallel.Each(len(compiled), comparers, func(i int) error {
		s := compiled[i]
		base := bases[s.Node]
		s.Base, s.BaseEngine = base.Catalog, engines[place{base.Environment, base.Version}]
		s, err := w.compare(ctx, s)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = fmt.Errorf("compare the catalogs of %s: %w", s.Node, err)
			return ctx.Err()
		}
		judged = append(judged, s)
		return nil
	})
	if err != nil {
		failed = err
	}
	return judged, failed
}

// place is where a version of code is.
type place struct {
	environment fleet.Environment
	version     fleet.Digest
}

// enginesOf names the engines that compiled bases, by what they were compiled of.
func (w *work) enginesOf(ctx context.Context, bases map[fleet.Certname]Base) (map[place]string, error) {
	engines := map[place]string{}
	for _, base := range bases {
		at := place{base.Environment, base.Version}
		if _, known := engines[at]; known {
			continue
		}
		name, err := w.engineOf(ctx, base.Environment, base.Version)
		if err != nil {
			return nil, err
		}
		engines[at] = name
	}
	return engines, nil
}

// compare ends a share whose catalog is there. An error leaves it waiting; catalogs that are not
// stored any more, or are none, end it.
func (w *work) compare(ctx context.Context, s Share) (Share, error) {
	verdict, err := w.takeIn(ctx, s)
	switch kind := fault.Of(err); {
	case err == nil:
		return s.judged(verdict), nil
	case kind == fault.NotFound || kind == fault.Invalid:
		s.State, s.Failure = Unable, Failure{Message: fault.Detail(err)}
		return s, nil
	default:
		return s, err
	}
}
