package front

import (
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Budget is the bytes of requests' bodies that are in memory, of all requests
// together. When it is used up, who sends more waits for a moment and is then told
// to come back. Callers who proved nothing have a share of it, so that they cannot
// use up what others need.
type Budget struct {
	most, strangers int64
	Patience        time.Duration // how long a body waits for room; set before its first use

	mu     sync.Mutex
	used   int64
	theirs int64         // of used, what strangers sent
	freed  chan struct{} // closed when there is room again
}

// The share of strangers: so much of the budget, and never more than so many bytes.
const (
	strangersPart = 8
	strangersMost = 64 << 20
)

// NewBudget is a budget of so many bytes.
func NewBudget(most int64) *Budget {
	return &Budget{most: most, strangers: min(most/strangersPart, strangersMost), Patience: budgetPatience, freed: make(chan struct{})}
}

// budgetPatience is how long a body waits for room, unless it is said.
const budgetPatience = 5 * time.Second

// take takes n bytes, or says why not.
func (b *Budget) take(n int64, stranger bool) error {
	freed := b.try(n, stranger)
	if freed == nil {
		return nil
	}
	patience := time.NewTimer(b.Patience)
	defer patience.Stop()
	for ; freed != nil; freed = b.try(n, stranger) {
		select {
		case <-freed:
		case <-patience.C:
			return fault.Later(budgetPatience, "requests hold all of the %d bytes that bodies may have at the same time (body_budget_bytes), "+
				"or callers without a certificate or token their share of %d; come back later",
				b.most, b.strangers)
		}
	}
	return nil
}

// try returns nil if it took n bytes, and otherwise what is closed when there is room.
func (b *Budget) try(n int64, stranger bool) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.most || stranger && b.theirs+n > b.strangers {
		return b.freed
	}
	b.used += n
	if stranger {
		b.theirs += n
	}
	return nil
}

// giveBack ends what take took.
func (b *Budget) giveBack(n, theirs int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used, b.theirs = b.used-n, b.theirs-theirs
	close(b.freed)
	b.freed = make(chan struct{})
}

// Used is what is used, and what of it strangers sent.
func (b *Budget) Used() (used, theirs int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.theirs
}
