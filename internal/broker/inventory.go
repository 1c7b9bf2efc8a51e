package broker

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/wire"
)

// updateInterval is how often subscribers are told what changed.
const updateInterval = time.Second

// maxChanges is the most changes in one update; more are several updates.
const maxChanges = 1000

// subscription is what a client wants to be told.
type subscription struct {
	session *Session
	chosen  selection
	pending []wire.Change // since it was told last
}

// note remembers a change for those who want to know. The caller holds b.mu.
func (b *Broker) note(uri wire.URI, change int) {
	for _, sub := range b.subscribers {
		if sub.chosen.has(uri) {
			sub.pending = append(sub.pending, wire.Change{Client: uri, Change: change})
		}
	}
}

// inventory answers who is connected. With a subscription updates follow, which
// begin exactly where the answer ends; a request without one ends an earlier one.
func (b *Broker) inventory(s *Session, m wire.Message) error {
	query, err := wire.ParseQuery(m.Data)
	if err != nil {
		return err
	}
	b.publishing.Lock()
	uris := b.subscribe(s, query)
	slices.Sort(uris)
	wake, why := s.out.push(wire.Message{
		ID: uuid.NewString(), Type: wire.InventoryResponse, Target: s.who.URI, InReplyTo: m.ID, Data: wire.Data(wire.Inventory{URIs: uris}),
	})
	b.publishing.Unlock()
	return s.pushed(wake, why)
}

// subscribe takes the snapshot and begins to remember changes, in one step.
func (b *Broker) subscribe(s *Session, query wire.Query) []wire.URI {
	chosen := choose(query.Query)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions[s.who.URI] == s { // it may have been superseded
		delete(b.subscribers, s.who.URI)
		if query.Subscribe {
			b.subscribers[s.who.URI] = &subscription{session: s, chosen: chosen}
		}
	}
	return b.matching(chosen)
}

// Run tells subscribers what changed, until ctx is done.
func (b *Broker) Run(ctx context.Context) error {
	tick := time.NewTicker(updateInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			b.publish()
		}
	}
}

// publish sends what is pending.
func (b *Broker) publish() {
	b.publishing.Lock()
	var after []func()
	for _, sub := range b.takePending() {
		for part := range slices.Chunk(sub.pending, maxChanges) {
			wake, why := sub.session.out.push(wire.Message{
				ID: uuid.NewString(), Type: wire.InventoryUpdate, Target: sub.session.who.URI, Data: wire.Data(wire.Changes{Changes: part}),
			})
			after = append(after, func() { _ = sub.session.pushed(wake, why) })
			if why == crowded { // a gap would never be noticed
				after = append(after, func() { sub.session.cut(tooSlow) })
				break
			}
		}
	}
	b.publishing.Unlock()
	for _, then := range after {
		then()
	}
}

// takePending returns the subscriptions that have something to tell, with it.
func (b *Broker) takePending() []subscription {
	b.mu.Lock()
	defer b.mu.Unlock()
	var due []subscription
	for _, sub := range b.subscribers {
		if len(sub.pending) > 0 {
			due = append(due, *sub)
			sub.pending = nil
		}
	}
	return due
}
