package broker

import "context"

// WriteSeats writes what is to be written.
func (b *Broker) WriteSeats(ctx context.Context) error { return (&seats{Broker: b}).writeSeats(ctx) }

// Step does what RunSeats does again and again.
func (b *Broker) Step(ctx context.Context) error { return (&seats{Broker: b}).step(ctx) }

// Compare compares with the records.
func (b *Broker) Compare(ctx context.Context) error { return (&seats{Broker: b}).compare(ctx) }

// Publish tells subscribers what changed.
func (b *Broker) Publish() { b.publish() }

// Number is the session's in the records.
func (s *Session) Number() int64 {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	return s.number
}

// Unsettled is how many sessions the records do not have right yet.
func (b *Broker) Unsettled() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.settling)
}
