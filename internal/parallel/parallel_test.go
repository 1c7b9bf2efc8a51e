package parallel_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/tutti-project/tutti/internal/parallel"
)

func TestEachIsDoneOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 3, 100} {
		done := make([]int, n)
		var now, most atomic.Int32
		err := parallel.Each(n, 4, func(i int) error {
			defer now.Add(-1)
			for at := now.Add(1); ; {
				if was := most.Load(); at <= was || most.CompareAndSwap(was, at) {
					break
				}
			}
			done[i]++
			return nil
		})
		if want := slices.Repeat([]int{1}, n); err != nil || !slices.Equal(done, want) || most.Load() > 4 {
			t.Errorf("%d: %v, done %v, %d at once", n, err, done, most.Load())
		}
	}
}

func TestNothingIsBegunAfterAnError(t *testing.T) {
	t.Parallel()
	var begun atomic.Int32
	broken := errors.New("broken")
	if err := parallel.Each(1000, 1, func(i int) error {
		begun.Add(1)
		if i == 7 {
			return broken
		}
		return nil
	}); !errors.Is(err, broken) || begun.Load() != 8 {
		t.Errorf("%v after %d", err, begun.Load())
	}
}
