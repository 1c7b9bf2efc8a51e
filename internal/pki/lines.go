package pki

import (
	"context"
	"sync"

	"github.com/tutti-project/tutti/internal/fault"
)

// besides is how many requests of one address are considered at the same time.
const besides = 4

// lines has a line for each address in which its requests wait to be considered:
// an address that sends a thousand at once keeps itself waiting, not the others.
type lines struct {
	mu sync.Mutex
	at map[string]*line
}

type line struct {
	turns chan struct{}
	users int // those who have a turn or wait for one; without any the line goes
}

// take waits for a turn and returns how to give it back.
func (l *lines) take(ctx context.Context, from string) (done func(), err error) {
	l.mu.Lock()
	if l.at == nil {
		l.at = map[string]*line{}
	}
	own := l.at[from]
	if own == nil {
		own = &line{turns: make(chan struct{}, besides)}
		l.at[from] = own
	}
	own.users++
	l.mu.Unlock()
	select {
	case own.turns <- struct{}{}:
		return func() {
			<-own.turns
			l.leave(from, own)
		}, nil
	case <-ctx.Done():
		l.leave(from, own)
		return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "many requests of this address wait")
	}
}

func (l *lines) leave(from string, own *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(l.at, from)
	}
}
