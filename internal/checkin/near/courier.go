package near

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/parallel"
)

// Courier hands what is queued to the records, when they can be reached.
type Courier struct {
	Link    *Link
	Queue   Queue
	Reports interface {
		SaveReport(ctx context.Context, r inventory.Report) error
	}
	Facts       checkin.Facts
	Submissions interface {
		SaveFacts(ctx context.Context, s factqueue.Set) (factqueue.Stored, error)
	}
	Events interface {
		TakeEvents(ctx context.Context, batches []event.Batch, now time.Time) ([]event.Taken, error)
	}
	Now func() time.Time
	Log *slog.Logger

	mu        sync.Mutex
	delivered int64
	tries     map[uint64]int // of pieces for which the records had no good answer
}

const (
	piecesAtOnce = 200 // that are read together
	nodesAtOnce  = 8   // whose pieces are on their way together
	courierPoll  = time.Second
	// triesOfOne is how often a piece is handed over that the records cannot keep for a reason that nobody knows.
	triesOfOne = 10
)

// Run delivers until ctx is done.
func (c *Courier) Run(ctx context.Context) error {
	tick := time.NewTicker(courierPoll)
	defer tick.Stop()
	for {
		if _, cut := c.Link.Cut(); !cut {
			if err := c.Deliver(ctx); err != nil && ctx.Err() == nil {
				c.Log.WarnContext(ctx, "what was queued while the database could not be reached is not delivered yet, will retry", "pieces",
					c.Queue.Load().Pieces, "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Delivered is how many pieces were delivered since the start.
func (c *Courier) Delivered() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.delivered
}

// Deliver hands over all that is queued now. What stays behind is tried again the next time, and with it what its node sent after it.
func (c *Courier) Deliver(ctx context.Context) error {
	stuck := map[fleet.Certname]error{}
	for after := uint64(0); ; {
		some, err := c.Queue.Next(after, piecesAtOnce)
		if err != nil || len(some) == 0 {
			return errors.Join(append(slices.Collect(maps.Values(stuck)), err)...)
		}
		after = some[len(some)-1].Number
		if err := c.hand(ctx, some, stuck); err != nil {
			return err
		}
		for _, err := range stuck {
			if fault.Of(err) == fault.Unavailable { // so are the others
				return err
			}
		}
	}
}

// hand hands over some pieces: those of a node in their order, those of several nodes together. Nodes whose pieces stay behind become stuck.
func (c *Courier) hand(ctx context.Context, some []Piece, stuck map[fleet.Certname]error) error {
	of := map[fleet.Certname][]Piece{}
	for _, p := range some {
		if stuck[p.Node] == nil {
			of[p.Node] = append(of[p.Node], p)
		}
	}
	nodes := slices.Sorted(maps.Keys(of))
	stored, failed := make([][]uint64, len(nodes)), make([]error, len(nodes))
	_ = parallel.Each(len(nodes), nodesAtOnce, func(i int) error {
		stored[i], failed[i] = c.inOrder(ctx, of[nodes[i]])
		return nil // each node's error is its own
	})
	for i, err := range failed {
		if err != nil {
			stuck[nodes[i]] = err
		}
	}
	all := slices.Concat(stored...)
	c.mu.Lock()
	c.delivered += int64(len(all))
	c.mu.Unlock()
	return c.Queue.Remove(all)
}

// inOrder hands over the pieces of a node, up to the first that stays behind, and returns those that are stored.
func (c *Courier) inOrder(ctx context.Context, pieces []Piece) (stored []uint64, err error) {
	for _, p := range pieces {
		done, err := c.one(ctx, p)
		if err != nil {
			return stored, err
		}
		if done {
			stored = append(stored, p.Number)
		}
	}
	return stored, nil
}

// one hands over a piece; done is false for one that was set aside.
func (c *Courier) one(ctx context.Context, p Piece) (done bool, err error) {
	during, cancel := c.Link.While(ctx)
	defer cancel()
	err = c.store(during, p)
	if err == nil {
		c.forget(p.Number)
		return true, nil
	}
	switch kind := fault.Of(err); {
	case ctx.Err() != nil || during.Err() != nil || kind == fault.Unavailable:
		return false, fault.Wrap(fault.Unavailable, err, "a %s of %s is not delivered", p.Kind, p.Node)
	case kind == fault.Internal && c.again(p.Number):
		return false, err
	}
	if failed := c.Queue.SetAside(p.Number, err.Error()); failed != nil {
		return false, errors.Join(failed, err)
	}
	c.forget(p.Number)
	c.Log.ErrorContext(ctx, "the database refuses what a node sent while it could not be reached: it is set aside on this server's disk", "kind", p.Kind, "node",
		p.Node, "piece", p.Number, "at", p.At, "err", err)
	return false, nil
}

// again counts tries, and says whether there is one more.
func (c *Courier) again(number uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tries == nil {
		c.tries = map[uint64]int{}
	}
	c.tries[number]++
	return c.tries[number] < triesOfOne
}

func (c *Courier) forget(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tries, number)
}

func (c *Courier) store(ctx context.Context, p Piece) error {
	what, err := p.Content()
	if err != nil {
		return err
	}
	switch what := what.(type) {
	case inventory.Report:
		err = c.Reports.SaveReport(ctx, what)
	case inventory.FactSet:
		_, _, err = c.Facts.SaveFacts(ctx, what)
	case factqueue.Set:
		_, err = c.Submissions.SaveFacts(ctx, what)
	case event.Batch:
		err = c.events(ctx, what)
	}
	return err
}

func (c *Courier) events(ctx context.Context, b event.Batch) error {
	taken, err := c.Events.TakeEvents(ctx, []event.Batch{b}, c.Now())
	if err != nil {
		return err
	}
	if last := taken[0].Last; last < lastOf(b.Events) {
		return fault.New(fault.Invalid, "events of the run %s that came before number %d are missing", b.Run, b.Events[0].N)
	}
	return nil
}

func unreadable(p Piece, err error) error {
	return fault.Wrap(fault.Invalid, err, "the queued %s cannot be read", p.Kind)
}
