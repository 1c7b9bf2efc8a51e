package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tutti-project/tutti/api"
)

// watcher follows the stream as `tutti event tail` does, and notes how late each event is.
type watcher struct {
	real string // the name of the real node

	mu     sync.Mutex
	late   map[bool][]time.Duration // of the real node, and of the others
	ended  map[bool]int             // runs
	more   chan struct{}            // a hint: something came
	failed error
}

func newWatcher(realNode string) *watcher {
	w := &watcher{real: realNode, more: make(chan struct{}, 1)}
	w.forget()
	return w
}

// forget begins a case.
func (w *watcher) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late, w.ended = map[bool][]time.Duration{}, map[bool]int{}
}

// follow reads until ctx is done. A lost event would be noticed: runs are awaited by what they have.
func (w *watcher) follow(ctx context.Context, client *api.Client) error {
	err := client.FollowEvents(ctx, api.EventStreamRequest{After: "0", Kind: "begin,resource,missing,end"}, w.take,
		func(api.EventSpan) { w.fail(errors.New("events were pruned")) }, func(err error) {
			if ctx.Err() == nil {
				w.fail(fmt.Errorf("the stream broke off: %w", err))
			}
		}, func() {})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was told to end
	}
	return err
}

func (w *watcher) fail(err error) {
	w.mu.Lock()
	w.failed = errors.Join(w.failed, err)
	w.mu.Unlock()
	w.hint()
}

func (w *watcher) take(e api.Event) error {
	now := time.Now()
	w.mu.Lock()
	is := e.Node == w.real
	switch {
	case e.Reported || e.Kind == "missing":
		w.failed = errors.Join(w.failed, fmt.Errorf("an event of %s did not come as it happened: %s %s", e.Node, e.Type, e.Title))
	case e.Kind == "resource":
		w.late[is] = append(w.late[is], now.Sub(e.Time))
	case e.Kind == "end":
		w.ended[is]++
	}
	w.mu.Unlock()
	w.hint()
	return nil
}

func (w *watcher) hint() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// await returns when the ends of so many runs were seen, and gives how late their events were.
func (w *watcher) await(ctx context.Context, realNode bool, runs, events int) ([]time.Duration, error) {
	for {
		w.mu.Lock()
		late, ended, err := w.late[realNode], w.ended[realNode], w.failed
		w.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if ended >= runs {
			if len(late) != runs*events {
				return nil, fmt.Errorf("%d events of %d runs, not %d", len(late), runs, runs*events)
			}
			return late, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-w.more:
		}
	}
}
