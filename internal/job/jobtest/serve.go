package jobtest

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/internal/job"
)

// Serve runs a service as the only server does: it dispatches, and takes in answers, until ctx is done.
func Serve(ctx context.Context, s *job.Service) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Run(ctx) })
	group.Go(func() error { return s.Dispatch(ctx) })
	return group.Wait()
}
