// Package parallel does many small tasks, a bounded number of them at the same time.
//
// It is for work that mostly waits, for example writes that a store commits together.
package parallel

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Each calls act for 0 to n-1, at most atOnce of them at the same time, waits for all that began, and returns the first error.
// After an error it begins nothing more.
func Each(n, atOnce int, act func(i int) error) error {
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(max(1, atOnce))
	for i := range n {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			return act(i)
		})
	}
	return group.Wait()
}
