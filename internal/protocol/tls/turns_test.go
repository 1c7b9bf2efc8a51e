package tls

import (
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestTurnsGoToThoseWhoHaveBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1)
		if err := turns.take(false, nil); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, who := range []string{"fresh 1", "fresh 2", "begun 1", "begun 2"} {
			go func() {
				if err := turns.take(who[0] == 'b', nil); err != nil {
					t.Error(err)
				}
				order = append(order, who) // one has the turn
				turns.giveBack()
			}()
			synctest.Wait()
		}
		turns.giveBack()
		synctest.Wait()
		if want := []string{"begun 1", "begun 2", "fresh 1", "fresh 2"}; !slices.Equal(order, want) {
			t.Errorf("turns were taken as %v", order)
		}
	})
}

// Whoever leaves while it waits, or at the moment at which its turn comes, takes none along.
func TestTurnsAreNotLost(t *testing.T) {
	t.Parallel()
	turns := newTurns(2)
	var wait sync.WaitGroup
	for i := range 2000 {
		closed := make(chan struct{})
		wait.Go(func() {
			switch err := turns.take(i%3 == 0, closed); {
			case err == nil:
				turns.giveBack()
			case !errors.Is(err, net.ErrClosed):
				t.Error(err)
			}
		})
		if i%2 == 0 {
			wait.Go(func() { close(closed) })
		}
	}
	wait.Wait()
	if turns.free != 2 || turns.begun.Len()+turns.fresh.Len() != 0 {
		t.Errorf("%d turns are free, %d and %d wait", turns.free, turns.begun.Len(), turns.fresh.Len())
	}
}
