package event

import (
	"context"
	"sync"
	"time"
)

// hub wakes readers.
type hub struct {
	mu   sync.Mutex
	last int64
	more chan struct{} // closed when last grows
}

func newHub() *hub { return &hub{more: make(chan struct{})} }

// reach says that there are numbers up to last.
func (h *hub) reach(last int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last > h.last {
		h.last = last
		close(h.more)
		h.more = make(chan struct{})
	}
}

func (h *hub) newest() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// behind is closed when there may be more than a number.
func (h *hub) behind(after int64) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last > after {
		done := make(chan struct{})
		close(done)
		return done
	}
	return h.more
}

// Wait returns when there may be events behind a number, or after a moment: another server may have stored some.
func (s *Service) Wait(ctx context.Context, after int64) error {
	poll := time.NewTimer(s.settings.Poll)
	defer poll.Stop()
	select {
	case <-s.hub.behind(after):
		return nil
	case <-poll.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Page is some events, and how far they reach.
type Page struct {
	Events []Event
	// Upto is the number up to which it is complete: ask for what is behind it next. When the newest came first, it is
	// the number down to which it is: ask for what is before it; 0: there is no more.
	Upto int64
	Span Span
}

// Events is a page of what a filter asks for. It may hold less than its limit although there is more.
func (s *Service) Events(ctx context.Context, f Filter) (Page, error) {
	span, err := s.Store.EventSpan(ctx)
	if err != nil {
		return Page{}, err
	}
	end := span.Last + 1 // what comes later is not looked at: then it cannot be passed over
	if f.Before <= 0 || f.Before > end {
		f.Before = end
	}
	f.After = max(f.After, span.First-1)
	if f.Newest {
		return s.newest(ctx, f, span)
	}
	f.Before = min(f.Before, f.After+s.settings.Window+1)
	page := Page{Upto: max(f.After, f.Before-1), Span: span}
	if f.After+1 >= f.Before {
		return page, nil
	}
	page.Events, err = s.Store.Events(ctx, f)
	if err == nil && len(page.Events) == f.Limit {
		page.Upto = page.Events[f.Limit-1].Number
	}
	return page, err
}

func (s *Service) newest(ctx context.Context, f Filter, span Span) (page Page, err error) {
	lowest := f.After
	f.After = max(f.After, f.Before-s.settings.Window-1)
	page = Page{Upto: f.After + 1, Span: span}
	if f.After+1 < f.Before {
		page.Events, err = s.Store.Events(ctx, f)
	}
	if err == nil && len(page.Events) == f.Limit {
		page.Upto = page.Events[f.Limit-1].Number
	}
	if page.Upto <= lowest+1 {
		page.Upto = 0
	}
	return page, err
}

// Since is the number behind which is what was stored at a time or later.
func (s *Service) Since(ctx context.Context, t time.Time) (int64, error) {
	number, err := s.Store.EventsSince(ctx, t)
	return max(0, number-1), err
}

// Last is the newest number.
func (s *Service) Last(ctx context.Context) (int64, error) {
	span, err := s.Store.EventSpan(ctx)
	return span.Last, err
}

// Prune forgets what was stored before a time.
func (s *Service) Prune(ctx context.Context, before time.Time) (int, error) {
	return s.Store.PruneEvents(ctx, before)
}
