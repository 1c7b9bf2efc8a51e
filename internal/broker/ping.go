package broker

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// pinged begins the transactions of pings, which are no runs.
const pinged = "ping-"

// Pinger asks agents whether they answer, and how fast. Nothing of it is stored. It may be used concurrently.
type Pinger struct {
	// Ask sends a blocking request to the agent of a node; NotFound: it is not connected.
	Ask func(ctx context.Context, node fleet.Certname, r pxp.Request) error

	mu   sync.Mutex
	open map[string]*round
}

// round is one ping of many nodes.
type round struct {
	begun map[fleet.Certname]time.Time // of those that have not answered
	took  map[fleet.Certname]time.Duration
	all   bool          // everybody was asked
	done  chan struct{} // closed when everybody has answered
}

// Ping asks nodes, and says how long each took to answer. It returns when all that are connected have answered, or ctx is done:
// who is not in the answer did not answer.
func (p *Pinger) Ping(ctx context.Context, nodes []fleet.Certname) map[fleet.Certname]time.Duration {
	r := &round{begun: map[fleet.Certname]time.Time{}, took: map[fleet.Certname]time.Duration{}, done: make(chan struct{})}
	transaction := pinged + uuid.NewString()
	p.mu.Lock()
	if p.open == nil {
		p.open = map[string]*round{}
	}
	p.open[transaction] = r
	p.mu.Unlock()
	for _, node := range nodes {
		if ctx.Err() != nil {
			break
		}
		p.mu.Lock()
		r.begun[node] = time.Now()
		p.mu.Unlock()
		if p.Ask(ctx, node, pxp.Request{Transaction: transaction, Module: pxp.Ping, Action: pxp.Ping, Params: pxp.Data(struct{}{})}) != nil {
			p.mu.Lock()
			delete(r.begun, node)
			p.mu.Unlock()
		}
	}
	p.mu.Lock()
	r.all = true
	r.settle()
	p.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-r.done:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, transaction)
	return r.took
}

// Answered takes an answer of a node; false: it is to no ping. An answer that comes too late, or twice, is one to a ping, too.
func (p *Pinger) Answered(node fleet.Certname, transaction string) bool {
	if !strings.HasPrefix(transaction, pinged) {
		return false
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.open[transaction]
	if r == nil {
		return true
	}
	if begun, waits := r.begun[node]; waits {
		delete(r.begun, node)
		r.took[node] = now.Sub(begun)
		r.settle()
	}
	return true
}

// settle ends a round in which everybody has answered. The caller holds the lock.
func (r *round) settle() {
	if r.all && len(r.begun) == 0 {
		close(r.done)
		r.all = false // once
	}
}
