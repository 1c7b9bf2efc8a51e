package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A compile that runs when the server stops needs its worker until its end.
func TestStagesEndOneAfterTheOther(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	ends := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return nil
		}
	}
	workers := make(chan struct{})
	c := start(t.Context(),
		stage{"workers": func(ctx context.Context) error {
			<-ctx.Done()
			close(workers)
			return ends("workers")(ctx)
		}},
		stage{"dispatcher": func(ctx context.Context) error {
			<-ctx.Done()
			select {
			case <-workers:
				return errors.New("the workers went before the dispatcher")
			default:
				return ends("dispatcher")(ctx)
			}
		}, "warmer": ends("warmer")})
	if err := c.stop(nil); err != nil {
		t.Fatal(err)
	}
	slices.Sort(order[:2]) // these end together
	if diff := cmp.Diff([]string{"dispatcher", "warmer", "workers"}, order); diff != "" {
		t.Errorf("the order of the ends (-want +got):\n%s", diff)
	}
}

func TestAFailureIsToldOnce(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	c := start(t.Context(), stage{"a": func(context.Context) error { return broken }})
	cause := <-c.failed
	if !errors.Is(cause, broken) || cause.Error() != "a: broken" {
		t.Errorf("got %v", cause)
	}
	if err := c.stop(cause); err != nil {
		t.Errorf("told again: %v", err)
	}
}
