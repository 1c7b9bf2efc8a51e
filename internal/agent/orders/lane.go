package orders

import (
	"context"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// active is a transaction that is not over.
type active struct {
	order  Order // its parameters are dropped when they were used
	action Action
	cancel context.CancelCauseFunc
	start  func()        // begins the work, when there is a place
	told   chan struct{} // closed when the requester knows that it was accepted
	over   chan struct{} // closed when it is concluded

	state    state // this and stopping: under the lock of turns
	stopping bool  // it was cancelled

	saving sync.Mutex // keeps a late save from overtaking the last one
	record Record
}

// state is how far an active transaction is.
type state uint8

const (
	waiting   state = iota // for a place
	preparing              // the agent itself works on it
	running                // a program does
)

// lane is a queue with a number of places. It has no lock of its own.
type lane struct {
	places int // how many may work at a time
	most   int // how many may wait
	busy   int
	queue  []*active
}

// admit gives a the turn (start), or a place in the queue, or neither.
func (l *lane) admit(a *active) (start, ok bool) {
	if l.busy < l.places {
		l.busy++
		return true, true
	}
	if len(l.queue) >= l.most {
		return false, false
	}
	l.queue = append(l.queue, a)
	return false, true
}

// adopt counts one that works already, even if there is no place.
func (l *lane) adopt() { l.busy++ }

// leave frees a place, and returns who has it next; nil: nobody waits.
func (l *lane) leave() *active {
	l.busy--
	if l.busy >= l.places || len(l.queue) == 0 {
		return nil
	}
	next := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	l.busy++
	return next
}

// withdraw takes a out of the queue; false: it was not there.
func (l *lane) withdraw(a *active) bool {
	i := slices.Index(l.queue, a)
	if i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	return i >= 0
}

// drop forgets the parameters: they may be secret, and large.
func (a *active) drop() jsontext.Value {
	params := a.order.Params
	a.order.Params = nil
	return params
}

// save changes the record and keeps it, unless the transaction is over.
func (a *active) save(spool Spool, change func(*Record)) error {
	a.saving.Lock()
	defer a.saving.Unlock()
	if a.record.Status.Over() {
		return nil
	}
	change(&a.record)
	return spool.Save(a.record)
}
