package near

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// ErrCut is why a call was ended: the way to the records is cut.
var ErrCut = errors.New("the way to the database is cut")

// Link knows whether the records can be reached.
type Link struct {
	Ask   func(ctx context.Context) error // asks the records anything that is cheap
	Every time.Duration                   // how often; 0: each second
	Wait  time.Duration                   // how long an answer may take; 0: 3 s
	Log   *slog.Logger
	Now   func() time.Time

	asking chan struct{} // one question at a time

	mu      sync.Mutex // guards the rest
	begun   int        // counts questions
	good    int        // the last of them that was answered
	failed  int        // questions in a row without an answer
	cut     bool
	from    time.Time       // when it was cut last
	until   time.Time       // when it was back last; zero: it was not cut yet, or is
	calls   context.Context //nolint:containedctx // it is what ends calls, not one of them
	end     context.CancelCauseFunc
	changed chan struct{} // closed when the state changes
}

// cutAfter is how many questions in a row get no answer before the link counts as cut: one may be lost with a connection that broke.
const cutAfter = 2

// NewLink returns a link that counts as there.
func NewLink(l *Link) *Link {
	if l.Every == 0 {
		l.Every = time.Second
	}
	if l.Wait == 0 {
		l.Wait = 3 * time.Second
	}
	if l.Now == nil {
		l.Now = time.Now
	}
	l.calls, l.end = context.WithCancelCause(context.Background())
	l.changed, l.asking = make(chan struct{}), make(chan struct{}, 1)
	return l
}

// Cut is whether the records cannot be reached, and since when.
func (l *Link) Cut() (since time.Time, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from, l.cut
}

// Last is when the link was cut last, and when it was back; from is zero if it never was, until while it is.
func (l *Link) Last() (from, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from, l.until
}

// Changed is closed when the link is cut or back, the next time.
func (l *Link) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// While is ctx for a call of the records: it ends, with ErrCut, when they cannot be reached. The caller calls done when the call has ended.
func (l *Link) While(ctx context.Context) (during context.Context, done func()) {
	l.mu.Lock()
	calls := l.calls
	l.mu.Unlock()
	during, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(calls, func() { cancel(ErrCut) })
	if calls.Err() != nil { // else a call could still be begun
		cancel(ErrCut)
	}
	return during, func() { stop(); cancel(nil) }
}

// Doubt asks at once, since a call of the records failed, and says whether they cannot be reached. Those who doubt together share the questions: an answer
// to any that was begun since counts, and so does the cut.
func (l *Link) Doubt(ctx context.Context) bool {
	l.mu.Lock()
	since := l.begun
	l.mu.Unlock()
	for range cutAfter {
		if _, cut := l.Cut(); cut {
			return true
		}
		if l.look(ctx, since) {
			return false
		}
	}
	_, cut := l.Cut()
	return cut
}

// Run asks again and again until ctx is done.
func (l *Link) Run(ctx context.Context) error {
	tick := time.NewTicker(l.Every)
	defer tick.Stop()
	for {
		l.ask(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// ask asks once. It waits for a question of somebody else before.
func (l *Link) ask(ctx context.Context) {
	l.asking <- struct{}{} // a question ends soon
	defer func() { <-l.asking }()
	l.question(ctx)
}

// look asks once, unless the link is cut by the time that it has its turn, or a question was answered that was begun after since. It says whether there was
// an answer.
func (l *Link) look(ctx context.Context, since int) (answered bool) {
	select {
	case l.asking <- struct{}{}:
		defer func() { <-l.asking }()
	case <-ctx.Done():
		return false
	}
	l.mu.Lock()
	cut, answered := l.cut, l.good > since
	l.mu.Unlock()
	if cut || answered {
		return answered
	}
	return l.question(ctx)
}

// question asks; the caller has the turn.
func (l *Link) question(ctx context.Context) (answered bool) {
	l.mu.Lock()
	l.begun++
	l.mu.Unlock()
	asking, cancel := context.WithTimeout(ctx, l.Wait)
	defer cancel()
	err := l.Ask(asking)
	if err != nil && ctx.Err() != nil { // nobody waits for the answer: it says nothing
		return false
	}
	l.note(ctx, err)
	return err == nil
}

func (l *Link) note(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.failed, l.good = 0, l.begun
		if l.cut {
			l.cut, l.until = false, l.Now()
			l.calls, l.end = context.WithCancelCause(context.Background())
			l.tell()
			l.Log.WarnContext(ctx, "the database can be reached again", "after", l.until.Sub(l.from).Round(time.Second))
		}
		return
	}
	if l.failed++; l.failed < cutAfter || l.cut {
		return
	}
	l.cut, l.from, l.until = true, l.Now(), time.Time{}
	l.end(ErrCut)
	l.tell()
	l.Log.WarnContext(ctx, "the database cannot be reached: nodes get the catalogs that are kept here, and what they send is queued here", "err", err)
}

func (l *Link) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}
