package release

import (
	"context"
	"fmt"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/parallel"
)

// restore gives a node back what it had before a release whose job has not run it: else its next run by schedule would apply what has just
// been stopped. A node that somebody else gave something meanwhile keeps that.
func (s *Service) restore(ctx context.Context, r Release, t Target) (Target, error) {
	has, err := s.Delivery.Has(ctx, t.Node)
	if err != nil || has.Release != r.ID {
		return t, err
	}
	if has.Catalog == t.Catalog.Digest { // else the server was stopped before it could say so
		kept, err := s.Delivery.Generations(ctx, t.Node)
		if err != nil {
			return t, err
		}
		had := before(kept, r.ID)
		if had < 0 {
			t.Reason += fmt.Sprintf("; it keeps generation %d, as none from before is kept", has.Generation)
			return t, nil
		}
		_, err = s.Delivery.Give(ctx, t.Node, deliver.Order{
			Catalog: kept[had].Catalog, Release: r.ID, By: r.Author, Why: fmt.Sprintf("release %d did not run it: it has again what it had", r.ID),
		})
		switch kind := fault.Of(err); {
		case err == nil:
		case kind == fault.Internal || kind == fault.Unavailable:
			return t, err
		default: // it would be the same when tried again
			t.Reason += fmt.Sprintf("; it keeps generation %d: %s", has.Generation, fault.Detail(err))
			return t, nil
		}
	}
	t.Generation = 0
	t.Reason += "; it has again what it had"
	return t, nil
}

// restoreAll restores the nodes of targets that have ended without a run.
func (s *Service) restoreAll(ctx context.Context, r Release, targets []Target) error {
	return parallel.Each(len(targets), atOnce, func(i int) (err error) {
		targets[i], err = s.restore(ctx, r, targets[i])
		return err
	})
}

// spare ends targets that were given their catalogs and are not run.
func (s *Service) spare(ctx context.Context, r Release, targets []Target, reason string) (Release, error) {
	for i := range targets {
		targets[i] = targets[i].end(Skipped, reason)
	}
	if err := s.restoreAll(ctx, r, targets); err != nil {
		return r, err
	}
	return s.keep(ctx, r.ID, targets)
}
