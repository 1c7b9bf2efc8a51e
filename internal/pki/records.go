package pki

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/tutti-project/tutti/internal/fault"
)

// records are all that the CA knows of certificates: the journal and the store, of which each change goes into both. One change is
// made at a time.
type records struct {
	store   Store
	waiting *waitingRoom  // requests that are answered or forgotten leave it
	turn    chan struct{} // holds one token: the holder decides
	journal *journal      // of the holder of the turn
	shared  bool          // with authorities of other processes: see follow
	heard   func(Change)  // of theirs
	at      atomic.Pointer[Anchor]
	log     *slog.Logger
}

// take waits for the right to decide and returns how to give it back. Where other processes share the CA, none of them decides
// meanwhile, and this one knows all that they have done.
func (r *records) take(ctx context.Context) (done func(), err error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "the CA is busy")
	}
	if !r.shared {
		return func() { <-r.turn }, nil
	}
	release, err := r.store.HoldCA(ctx)
	if err != nil {
		<-r.turn
		return nil, err
	}
	done = func() {
		release()
		<-r.turn
	}
	if err := r.follow(ctx); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// commit makes a change known to the journal, then to the store. After an error
// the change may stand nevertheless: the journal is right, and what it says is
// offered to the store again before anything else is done. The caller has the turn.
func (r *records) commit(ctx context.Context, c Change) error {
	ctx = context.WithoutCancel(ctx) // who asked may go away between the two
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.journal.append(c); err != nil {
		return err
	}
	return r.settle(ctx)
}

// settle brings the store up to the journal. The caller has the turn.
func (r *records) settle(ctx context.Context) error {
	c := r.journal.unsettled
	if c == nil {
		return nil
	}
	offered := *c
	if !r.shared {
		offered.Line = nil
	}
	err := r.store.ChangeCA(ctx, offered)
	if r.shared && fault.Is(err, fault.Conflict) {
		return r.yield(ctx, *c)
	}
	if err != nil {
		return err
	}
	r.answered(*c)
	return r.noted(r.journal.settled())
}

// answered takes out of the waiting room whom a change answers.
func (r *records) answered(c Change) {
	for _, cert := range c.Issued {
		if cert.Current {
			r.waiting.remove(cert.Certname)
		}
	}
	r.waiting.remove(c.Forgotten...)
}
