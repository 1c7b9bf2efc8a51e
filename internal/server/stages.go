package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// stage is components that start and end together, by name. Each runs until its
// context is done and returns when all that it started has ended.
type stage map[string]func(context.Context) error

// and is all of two stages. No name may be in both.
func (s stage) and(others stage) stage {
	for name, run := range others {
		if s[name] != nil {
			panic("two components are called " + name)
		}
		s[name] = run
	}
	return s
}

// running is stages that run.
type running struct {
	failed chan error // the first component that ended by an error
	stages []working
}

type working struct {
	components *errgroup.Group
	end        context.CancelFunc
}

// start starts the stages. A later one may use what an earlier one runs: the
// last is the first to end.
func start(ctx context.Context, stages ...stage) *running {
	r := &running{failed: make(chan error, 1)}
	for _, components := range stages {
		ctx, end := context.WithCancel(ctx)
		w := working{new(errgroup.Group), end}
		for name, run := range components {
			w.components.Go(func() error { return r.watch(name, run(ctx)) })
		}
		r.stages = append(r.stages, w)
	}
	return r
}

// watch tells of a component that failed.
func (r *running) watch(name string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", name, err)
	select {
	case r.failed <- err:
	default: // one is enough to stop
	}
	return err
}

// stop ends one stage after the other, each when the one after it has ended, and
// returns what went wrong besides known.
func (r *running) stop(known error) error {
	var errs []error
	for _, w := range slices.Backward(r.stages) {
		w.end()
		if err := w.components.Wait(); err != nil && !errors.Is(known, err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
