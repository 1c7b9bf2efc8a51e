package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// openFactQueue wires what takes facts apart from runs.
func (p *parts) openFactQueue(ctx context.Context, c settings.Config) (err error) {
	p.factqueue, err = factqueue.New(ctx, factqueue.Parts{
		Store:     p.store.FactQueue,
		Inventory: factShelf{p.places, p.trust, p.store.Facts, p.log.Logger},
		Watch:     p.store.Reusables,
		Log:       p.log.Logger,
	}, factqueue.Config{QueueBytes: c.FactsQueueBytes})
	return err
}

// factShelf is factqueue.Inventory: the store's facts, without what servers add to them.
type factShelf struct {
	places checkin.Environments
	trust  checkin.Trust
	store  inventory.FactStore
	log    *slog.Logger
}

// SaveFacts implements factqueue.Inventory. What the node's certificate says of it is stored
// with its facts, if it is known, as with those that come with a run.
func (s factShelf) SaveFacts(ctx context.Context, set factqueue.Set) (factqueue.Stored, error) {
	env, err := s.places.OfFacts(ctx, set.Node, set.Environment)
	if err != nil {
		return factqueue.Stored{}, err
	}
	facts := inventory.FactSet{
		Origin:   inventory.Origin{Producer: settings.ServerName(), ProducedAt: set.AcceptedAt},
		Certname: set.Node, Environment: env, Values: set.Values, Arrangement: set.Arrangement, Digest: set.Digest,
		Timestamp: set.Timestamp, ReceivedAt: set.AcceptedAt, Number: set.Number,
	}
	if set.AcceptedAt.IsZero() {
		facts.ReceivedAt = time.Now()
	}
	trusted, err := s.trust.Trusted(ctx, set.Node, nil)
	switch {
	case err == nil:
		facts, err = facts.WithTrusted(trusted)
		if err != nil {
			return factqueue.Stored{}, err
		}
	case fault.Of(err) != fault.NotFound:
		s.log.WarnContext(ctx, "facts are stored without trusted data, which is not known now", "node", set.Node, "err", err)
	}
	saved, changed, err := s.store.SaveFacts(ctx, facts)
	if err != nil {
		return factqueue.Stored{}, err
	}
	out, err := nodesOwn(saved)
	out.Values, out.Changed = nil, len(changed)
	return out, err
}

// Facts implements factqueue.Inventory.
func (s factShelf) Facts(ctx context.Context, node fleet.Certname) (factqueue.Stored, error) {
	facts, err := s.store.Facts(ctx, node)
	if err != nil {
		return factqueue.Stored{}, err
	}
	return nodesOwn(facts)
}

// nodesOwn is what of stored facts the node itself said.
func nodesOwn(f inventory.FactSet) (factqueue.Stored, error) {
	values, err := facts.WithoutTrusted(f.Values)
	return factqueue.Stored{Seq: f.Seq, Set: factqueue.Set{
		Node:        f.Certname,
		Environment: f.Environment,
		Number:      f.Number,
		Timestamp:   f.Timestamp,
		AcceptedAt:  f.ProducedAt,
		Values:      values,
		Digest:      fleet.DigestOf(values),
	}}, err
}

// watched are the facts that catalogs were compiled with.
type watched struct{ readings *sql.Reusables }

// list names the list of facts that the node's agent should watch.
func (w watched) list(ctx context.Context, node fleet.Certname, _ deliver.Pointer) (fleet.Digest, error) {
	paths, err := w.readings.Watched(ctx, node)
	return factqueue.DigestOfPaths(paths), err
}

// factqueueFigures registers what can be asked of facts on their way.
func (m *metrics) factqueueFigures(queue *factqueue.Service) {
	m.gauge("tutti_facts_queue_sets", "Sets of facts that were accepted and wait to be applied.", func() float64 { return float64(queue.Load().Sets) })
	m.gauge("tutti_facts_queue_bytes", "What they take, packed.", func() float64 { return float64(queue.Load().Bytes) })
	for name, figure := range map[string]struct {
		help string
		of   func(factqueue.Stats) uint64
	}{
		"tutti_facts_direct_total":  {"Submissions of facts that were applied at once.", func(s factqueue.Stats) uint64 { return s.Direct }},
		"tutti_facts_queued_total":  {"Submissions of facts that were queued.", func(s factqueue.Stats) uint64 { return s.Queued }},
		"tutti_facts_applied_total": {"Queued sets of facts that were applied.", func(s factqueue.Stats) uint64 { return s.Applied }},
		"tutti_facts_late_total":    {"Submissions of facts that a newer one had overtaken.", func(s factqueue.Stats) uint64 { return s.Late }},
		"tutti_facts_refused_total": {"Submissions of facts that were refused because too many waited.", func(s factqueue.Stats) uint64 { return s.Refused }},
	} {
		m.counter(name, figure.help, func() float64 { return float64(figure.of(queue.Stats())) })
	}
}
