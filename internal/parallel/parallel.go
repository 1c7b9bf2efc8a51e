// Package parallel does many small tasks, a bounded number of them at the same time.
//
// It is for work that mostly waits, for example writes that a store commits together.
package parallel

import (
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Each calls act for 0 to n-1, at most atOnce of them at the same time, waits for all that began, and returns the first error.
// After an error it begins nothing more.
func Each(n, atOnce int, act func(i int) error) error {
	var group errgroup.Group
	var failed atomic.Bool
	group.SetLimit(max(1, atOnce))
	for i := range n {
		group.Go(func() error {
			if failed.Load() {
				return nil
			}
			err := act(i)
			if err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	return group.Wait()
}
