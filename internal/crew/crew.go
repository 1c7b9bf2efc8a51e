// Package crew does many small things, some of them at the same time.
//
// It is for what mostly waits, as for a store whose writes then share transactions. The crew is gone when Each returns.
package crew

import "sync"

// Each calls act for 0 to n-1, at most size of them at the same time, and returns the first error. After one, nothing more
// is begun.
func Each(n, size int, act func(i int) error) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var first error
	next := 0
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		i := next
		next++
		return i, i < n && first == nil
	}
	for range min(n, size) {
		all.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				if err := act(i); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return first
}
