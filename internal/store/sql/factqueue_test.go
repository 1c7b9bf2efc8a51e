package sql

import (
	"context"
	"testing"

	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/facts/factqueue/factqueuetest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// shelf is the inventory as package factqueue sees it.
type shelf struct{ *Store }

func (s shelf) SaveFacts(ctx context.Context, set factqueue.Set) (factqueue.Stored, error) {
	f := inventory.FactSet{
		Certname: set.Node, Environment: set.Environment, Values: set.Values, Timestamp: set.Timestamp, ReceivedAt: set.AcceptedAt, Number: set.Number,
		Origin: inventory.Origin{ProducedAt: set.AcceptedAt}, Digest: fleet.DigestOf(set.Values),
	}
	stored, changed, err := s.Store.Facts.SaveFacts(ctx, f)
	out := storedSet(stored)
	out.Values, out.Changed = nil, len(changed)
	return out, err
}

func (s shelf) Facts(ctx context.Context, node fleet.Certname) (factqueue.Stored, error) {
	f, err := s.Store.Facts.Facts(ctx, node)
	return storedSet(f), err
}

func storedSet(f inventory.FactSet) factqueue.Stored {
	return factqueue.Stored{Seq: f.Seq, Set: factqueue.Set{
		Node: f.Certname, Environment: f.Environment, Number: f.Number, Timestamp: f.Timestamp, AcceptedAt: f.ProducedAt, Values: f.Values, Digest: f.Digest,
	}}
}

func TestIntake(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		factqueuetest.RunStore(t, func(t *testing.T) factqueuetest.Backend {
			t.Helper()
			s := open(t)
			return factqueuetest.Backend{Store: s.FactQueue, Inventory: shelf{s}}
		})
	})
}
