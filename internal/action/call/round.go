package call

import (
	"context"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// round is one batch of a call.
type round struct {
	life    context.Context //nolint:containedctx // of the batch: who waits for room must not outwait it
	request pxp.Request
	nodes   []fleet.Certname
	answers chan kept     // has room for one answer of each node
	back    chan struct{} // a hint that nodes have come back
	over    chan struct{} // closed when nobody is asked any more

	mu       sync.Mutex
	open     map[fleet.Certname]*pending // of those that have not answered
	returned []fleet.Certname            // that have come back and were not asked again yet
}

// pending is a node that was or will be asked.
type pending struct {
	asked time.Time // zero: not yet
	away  bool      // its connection ended
}

// kept is an answer that takes so many bytes of the budget.
type kept struct {
	action.Answer
	bytes int64
}

func newRound(life context.Context, request pxp.Request, nodes []fleet.Certname) *round {
	r := &round{
		life: life, request: request, nodes: nodes, answers: make(chan kept, len(nodes)), back: make(chan struct{}, 1), over: make(chan struct{}),
		open: make(map[fleet.Certname]*pending, len(nodes)),
	}
	for _, node := range nodes {
		r.open[node] = &pending{}
	}
	return r
}

// send asks everybody, and those again that come back, until the round is over.
func (r *round) send(ctx context.Context, sender Sender) {
	defer close(r.over)
	for _, node := range r.nodes {
		if r.ask(ctx, sender, node) == fault.NotFound {
			r.take(node, kept{Answer: action.Answer{Code: action.Offline, Message: "no agent of it is connected"}})
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.back:
		}
		for _, node := range r.takeReturned() {
			if r.ask(ctx, sender, node) == fault.NotFound {
				r.went(node)
			}
		}
	}
}

// ask asks one node; NotFound: it is not connected.
func (r *round) ask(ctx context.Context, sender Sender, node fleet.Certname) fault.Kind {
	if ctx.Err() != nil || !r.asking(node) {
		return fault.Internal
	}
	err := sender.Ask(ctx, node, r.request)
	for fault.Is(err, fault.Unavailable) && ctx.Err() == nil {
		pause(ctx, busy)
		err = sender.Ask(ctx, node, r.request)
	}
	if err != nil && !fault.Is(err, fault.NotFound) && ctx.Err() == nil {
		r.take(node, kept{Answer: action.Answer{Code: action.Other, Message: "it could not be asked: " + fault.Detail(err)}})
	}
	return fault.Of(err)
}

// busy is how long a sender is left alone that has too much on its way.
const busy = 10 * time.Millisecond

// asking notes that a node is asked now.
func (r *round) asking(node fleet.Certname) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.open[node]
	if p == nil {
		return false
	}
	if p.asked.IsZero() {
		p.asked = time.Now()
	}
	return true
}

// with is an answer and those that wait behind it.
func (r *round) with(first kept) []kept {
	all := []kept{first}
	for len(r.answers) > 0 {
		all = append(all, <-r.answers) // nobody else takes answers out
	}
	return all
}

func (r *round) waitsFor(node fleet.Certname) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open[node] != nil
}

// take takes the answer of a node; false: it has one.
func (r *round) take(node fleet.Certname, a kept) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.open[node]
	if p == nil {
		return false
	}
	delete(r.open, node)
	a.Node = node
	if a.Code.Answered() && !p.asked.IsZero() {
		a.Millis = float64(time.Since(p.asked).Microseconds()) / 1000
	}
	r.answers <- a // it has room
	return true
}

// came notes that a node that was asked before has a new connection, and is to be asked again: what was sent by the old one may be lost. Nobody says that the
// old one has ended if the new one was there first.
func (r *round) came(node fleet.Certname) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.open[node]
	if p == nil || p.asked.IsZero() {
		return
	}
	p.away = false
	r.returned = append(r.returned, node)
	select {
	case r.back <- struct{}{}:
	default: // a hint is waiting already
	}
}

func (r *round) takeReturned() []fleet.Certname {
	r.mu.Lock()
	defer r.mu.Unlock()
	nodes := r.returned
	r.returned = nil
	return nodes
}

func (r *round) went(node fleet.Certname) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.open[node]; p != nil && !p.asked.IsZero() {
		p.away = true
	}
}

// end is the answers that were not handed over, and what is said of nodes without one; late: their time is over, else the call is.
func (r *round) end(late bool) []kept {
	r.mu.Lock()
	defer r.mu.Unlock()
	var rest []kept
	for len(r.answers) > 0 {
		rest = append(rest, <-r.answers)
	}
	for _, node := range r.nodes {
		if p := r.open[node]; p != nil {
			delete(r.open, node)
			rest = append(rest, kept{Answer: p.unanswered(node, late)})
		}
	}
	return rest
}

func (p *pending) unanswered(node fleet.Certname, late bool) action.Answer {
	a := action.Answer{Node: node, Code: action.Silent, Message: "it was asked, and no answer came in time"}
	switch {
	case p.asked.IsZero():
		a.Code, a.Message = action.Unasked, "the time was over before it was asked"
	case p.away:
		a.Code, a.Message = action.Left, "its connection ended before it answered, and it did not come back in time"
	case !late:
		a.Message = "the call ended before its answer came"
	}
	return a
}
