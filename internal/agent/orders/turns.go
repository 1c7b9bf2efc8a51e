package orders

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// turns are the transactions that are not over: how far each is, and whose turn it is.
type turns struct {
	works *sync.WaitGroup // of the engine: what has its turn
	ended chan struct{}   // closed with the engine

	mu      sync.Mutex // for what is here; nothing else is called with it held
	closed  bool
	active  map[string]*active // by transaction in the spool
	lanes   [lanes]lane
	readers map[string]context.CancelFunc // of questions that are being answered, by transaction
	refused refusals
}

// maxReading bounds the questions that are answered at a time.
const maxReading = 64

// newTurns has places and room for the lane of programs and for that of Puppet runs.
func newTurns(c Config, works *sync.WaitGroup) *turns {
	t := &turns{works: works, ended: make(chan struct{}), active: map[string]*active{}, readers: map[string]context.CancelFunc{}}
	t.lanes[General] = lane{places: c.MaxConcurrent, most: c.MaxWaiting}
	t.lanes[PuppetRun] = lane{places: 1, most: c.MaxPuppetWaiting}
	return t
}

// find is an active transaction; nil: there is none.
func (t *turns) find(transaction string) *active {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.active[transaction]
}

// adopt makes a known whose program an earlier process started, even if there is no place.
func (t *turns) adopt(a *active) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active[a.record.Transaction] = a
	t.lanes[a.action.Lane].adopt()
}

// stop marks a transaction as cancelled, and says how far it was, and whether it waited for its turn; nil: there is none.
func (t *turns) stop(transaction string) (a *active, at state, withdrawn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a = t.active[transaction]; a == nil {
		return nil, waiting, false
	}
	a.stopping = true
	return a, a.state, t.lanes[a.action.Lane].withdraw(a)
}

// close lets nothing begin any more, and cancels what goes on.
func (t *turns) close() {
	t.mu.Lock()
	if !t.closed {
		close(t.ended)
	}
	t.closed = true
	var cancels []context.CancelCauseFunc
	for _, a := range t.active {
		cancels = append(cancels, a.cancel)
	}
	for _, cancel := range t.readers {
		cancels = append(cancels, func(error) { cancel() })
	}
	t.mu.Unlock()
	for _, cancel := range cancels {
		cancel(errClosing)
	}
}

// refuse remembers that a transaction could not be kept.
func (t *turns) refuse(transaction, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused.add(transaction, text)
}

// begin lets a's work start; the engine waits for it when it is closed.
func (t *turns) begin(a *active) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		a.state = max(a.state, preparing)
		t.works.Go(a.start)
	}
}

// reads lets an answer be found for as long as limit, also after ctx is done.
func (t *turns) reads(ctx context.Context, transaction string, limit time.Duration, answer func(context.Context)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return errClosing
	case t.readers[transaction] != nil:
		return errReading
	case len(t.readers) >= maxReading:
		return fault.New(fault.Unavailable, "%s: it answers %d questions; ask again later", pxp.Full, maxReading)
	}
	limited, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), limit, errTooLong)
	t.readers[transaction] = cancel
	t.works.Go(func() {
		answer(limited)
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.readers, transaction)
	})
	return nil
}

// errReading is that the question of this transaction is being answered already.
var errReading = errors.New("it is being answered")

func (t *turns) leave(l Lane) *active {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lanes[l].leave()
}

// commit marks that a program is about to start; false: the order was cancelled.
// After that, whoever cancels stops the program.
func (t *turns) commit(a *active) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.stopping {
		return false
	}
	a.state = running
	return true
}

func (t *turns) isStopping(a *active) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return a.stopping
}

func (t *turns) forget(a *active) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.active, a.record.Transaction)
	close(a.over)
}

func (t *turns) isActive(transaction string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.active[transaction] != nil
}

func (t *turns) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// enter makes a known, and says whether it can start now; not ok: its lane is full.
func (t *turns) enter(a *active) (start, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if start, ok = t.lanes[a.action.Lane].admit(a); ok {
		t.active[a.record.Transaction] = a
	}
	return start, ok
}

// full is the error that a lane has no room.
func (t *turns) full(l Lane) error {
	of := "orders wait"
	if l == PuppetRun {
		of = "Puppet runs wait for the one that is running"
	}
	return fault.New(fault.Unavailable, "%s: %d %s; order it again later", pxp.Full, t.lanes[l].most, of)
}

func (t *turns) wasRefused(transaction string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refused.why[transaction]
}

// refusals remembers the newest transactions that could not be kept, so that a
// copy of the request is not run after the requester was told that it is not.
type refusals struct {
	why   map[string]string
	order []string
}

// maxRefusals bounds what is remembered.
const maxRefusals = 1000

func (r *refusals) add(transaction, text string) {
	if r.why == nil {
		r.why = map[string]string{}
	}
	if len(r.order) == maxRefusals {
		delete(r.why, r.order[0])
		r.order = r.order[1:]
	}
	r.why[transaction] = text
	r.order = append(r.order, transaction)
}
