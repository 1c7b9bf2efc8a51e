package broker

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/wire"
)

// The bounds of what is written for sessions: as many in one transaction, and how long the last transaction may take.
const (
	seatsAtOnce = 1000
	clearMay    = 5 * time.Second
)

// unsettled notes that the records do not have it yet that a session came, or left. The caller holds b.mu.
func (b *Broker) unsettled(all ...*Session) {
	if b.cfg.Others == nil || len(all) == 0 {
		return
	}
	b.settling = append(b.settling, all...)
	if len(b.settling) >= max(b.tidyAt, seatsAtOnce) {
		b.tidy()
	}
	select {
	case b.settle <- struct{}{}:
	default:
	}
}

// tidy drops what need not be written: while the records are away, clients may come and leave any number of times. The caller holds b.mu.
func (b *Broker) tidy() {
	seen := make(map[*Session]bool, len(b.settling))
	b.settling = slices.DeleteFunc(b.settling, func(s *Session) bool {
		here := b.sessions[s.who.URI] == s
		done := here && s.number > 0 || !here && s.number == 0 && s.rival == nil
		again := seen[s]
		seen[s] = true
		return done || again
	})
	b.tidyAt = 2 * len(b.settling)
}

// RunSeats keeps the records right about the sessions here, and what is known here about other servers' right by the records, until
// ctx is done. A broker that is alone has nothing to do. When it ends, no session of this server is in the records.
func (b *Broker) RunSeats(ctx context.Context) error {
	if b.cfg.Others == nil {
		return nil
	}
	return (&seats{Broker: b}).run(ctx)
}

// seats is a broker's way to the records; it belongs to one goroutine.
type seats struct {
	*Broker

	compared time.Time // with the records
}

func (b *seats) run(ctx context.Context) error {
	o := b.cfg.Others
	b.clear(ctx)
	o.Tell(Moves{Server: o.Server, Gone: true}) // of an earlier start
	look := time.NewTicker(o.Look)
	defer look.Stop()
	trouble := false
	for {
		err := b.step(ctx)
		if err != nil && !trouble && ctx.Err() == nil { // say it once
			b.cfg.Log.WarnContext(ctx, "who is connected could not be written or compared, will retry", "err", err)
		}
		trouble = err != nil
		if !b.settleUntil(ctx, look.C, err == nil) {
			b.clear(context.WithoutCancel(ctx))
			o.Tell(Moves{Server: o.Server, Gone: true})
			return nil
		}
	}
}

// step does what is done again and again.
func (b *seats) step(ctx context.Context) error {
	if err := b.writeSeats(ctx); err != nil {
		return err
	}
	if !b.missed.Load() && !b.cfg.Others.Deaf() && time.Since(b.compared) < b.cfg.Others.Compare {
		return b.lookWhoIsThere(ctx)
	}
	b.missed.Store(false)
	err := b.compare(ctx)
	if err != nil {
		b.missed.Store(true)
	}
	return err
}

// settleUntil writes who comes and leaves, if the records take it, until the time has come for another step; false: ctx is done.
func (b *seats) settleUntil(ctx context.Context, step <-chan time.Time, take bool) bool {
	for {
		settle := b.settle
		if !take {
			settle = nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-settle:
			take = b.writeSeats(ctx) == nil // if not, the next step says why
		case <-step:
			return true
		}
	}
}

// Missed hints that what other brokers told may have been lost.
func (b *Broker) Missed() { b.missed.Store(true) }

// clear forgets what an earlier start of this server, or this one, left in the records.
func (b *seats) clear(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, clearMay)
	defer cancel()
	if _, err := b.cfg.Others.Roster.ClearSeats(ctx, b.cfg.Others.Server); err != nil {
		b.cfg.Log.WarnContext(ctx, "who was connected to this server is still in the database: it is put right when the database answers", "err", err)
	}
}

// seating is what is written together.
type seating struct {
	all   []*Session // that it is about
	come  []*Session
	who   []Presence // the same
	leave []Place
}

// nextSeating is what is to be written next. Who left before it was written is not written.
func (b *seats) nextSeating() (s seating, more bool) {
	var n news
	b.mu.Lock()
	s.all = b.settling[:min(len(b.settling), seatsAtOnce)]
	seen, taken := make(map[*Session]bool, len(s.all)), make(map[wire.URI]bool, len(s.all))
	for _, session := range s.all {
		here := b.sessions[session.who.URI] == session
		switch {
		case seen[session]:
		case here && session.number == 0:
			s.come, s.who = append(s.come, session), append(s.who, session.who)
			taken[session.who.URI] = true
		case !here && session.number > 0:
			s.leave = append(s.leave, Place{session.who.URI, session.number})
		case !here && session.rival != nil:
			b.cameElsewhere(*session.rival, &n)
		}
		seen[session] = true
	}
	s.leave = slices.DeleteFunc(s.leave, func(p Place) bool { return taken[p.URI] }) // the later session takes the place in any case
	b.settling = slices.Clone(b.settling[len(s.all):])                               // what was written can be freed
	more = len(b.settling) > 0
	b.mu.Unlock()
	b.act(n)
	return s, more
}

// writeSeats writes who came and left, and tells the others.
func (b *seats) writeSeats(ctx context.Context) error {
	for more := true; more; {
		var s seating
		s, more = b.nextSeating()
		if err := b.writeSeating(ctx, s); err != nil {
			b.mu.Lock()
			b.settling = slices.Concat(s.all, b.settling)
			b.mu.Unlock()
			return err
		}
	}
	return nil
}

func (b *seats) writeSeating(ctx context.Context, s seating) error {
	o := b.cfg.Others
	if len(s.leave) > 0 {
		if err := o.Roster.LeaveSeats(ctx, s.leave); err != nil {
			return err
		}
	}
	var came []Seat
	if len(s.come) > 0 {
		numbers, err := o.Roster.TakeSeats(ctx, o.Server, s.who)
		if err != nil {
			return err
		}
		came = b.seated(s.come, numbers)
	}
	for len(came) > 0 || len(s.leave) > 0 {
		c, l := min(len(came), maxMoves), min(len(s.leave), maxMoves)
		o.Tell(Moves{Server: o.Server, Came: came[:c], Went: s.leave[:l]})
		came, s.leave = came[c:], s.leave[l:]
	}
	return nil
}

// seated gives sessions their numbers. If a later one of the same client was heard of meanwhile, that one takes the place.
func (b *seats) seated(sessions []*Session, numbers []int64) []Seat {
	came := make([]Seat, len(sessions))
	var n news
	b.mu.Lock()
	for i, s := range sessions {
		s.number = numbers[i]
		s.once.Do(func() { close(s.seated) })
		came[i] = Seat{Presence: s.who, Server: b.cfg.Others.Server, Number: s.number}
		came[i].Rivals = s.rivals
		if rival := s.rival; rival != nil {
			s.rival = nil
			b.cameElsewhere(*rival, &n)
		}
		if b.sessions[s.who.URI] != s { // it has left meanwhile
			b.unsettled(s)
		}
	}
	b.mu.Unlock()
	b.act(n)
	return came
}

// lookWhoIsThere forgets the clients of servers that are gone. One that is back is compared.
func (b *seats) lookWhoIsThere(ctx context.Context) error {
	alive, err := b.cfg.Others.Alive(ctx)
	if err != nil {
		return err
	}
	var n news
	lost := map[string]int{}
	b.mu.Lock()
	for server, tally := range b.far.tallies {
		if !alive[server] {
			lost[server] = tally.Count
			b.forget(server, &n)
		}
	}
	for server, there := range alive {
		if there && !b.alive[server] {
			b.missed.Store(true)
		}
	}
	b.alive = alive
	b.mu.Unlock()
	for server, count := range lost {
		b.cfg.Log.WarnContext(ctx, "a server is gone, and its nodes are connected no more", "server", server, "count", count)
	}
	b.act(n)
	return nil
}

// compare puts what is known of other servers' clients right by the records, and the records right about the sessions here.
func (b *seats) compare(ctx context.Context) error {
	if err := b.lookWhoIsThere(ctx); err != nil {
		return err
	}
	o := b.cfg.Others
	tallies, newest, err := o.Roster.Tallies(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	different := b.different(tallies)
	b.mu.Unlock()
	for _, server := range different {
		seats, err := o.Roster.Seats(ctx, server)
		if err != nil {
			return err
		}
		b.replace(server, seats, newest)
	}
	if err := b.compareHere(ctx, tallies[o.Server], newest); err != nil {
		return err
	}
	b.compared = time.Now()
	return b.writeSeats(ctx)
}

// different is the servers that are there and whose seats are known otherwise than the records have them. The caller holds b.mu.
func (b *seats) different(tallies map[string]Tally) []string {
	servers := maps.Clone(tallies)
	for server := range b.far.tallies {
		servers[server] = tallies[server]
	}
	var all []string
	for server, tally := range servers {
		if server != b.cfg.Others.Server && b.alive[server] && b.far.tally(server) != tally {
			all = append(all, server)
		}
	}
	slices.Sort(all)
	return all
}

// replace makes the seats of a server those that the records have. What came later than the newest that they had then stays.
func (b *seats) replace(server string, seats []Seat, newest int64) {
	there := make(map[Place]bool, len(seats))
	for _, seat := range seats {
		there[seat.Place()] = true
	}
	var n news
	b.mu.Lock()
	for _, far := range b.far.seats {
		if far.Server == server && far.Number <= newest && !there[far.Place()] {
			b.goneElsewhere(far, &n)
		}
	}
	for _, seat := range seats {
		b.cameElsewhere(seat, &n)
	}
	b.mu.Unlock()
	b.act(n)
}

// compareHere has sessions written again that the records have not, and seats removed that are nobody's.
func (b *seats) compareHere(ctx context.Context, tally Tally, newest int64) error {
	b.mu.Lock()
	var here Tally
	for _, s := range b.sessions {
		if s.number > 0 {
			here.add(s.number)
		}
	}
	b.mu.Unlock()
	if here == tally {
		return nil
	}
	seats, err := b.cfg.Others.Roster.Seats(ctx, b.cfg.Others.Server)
	if err != nil {
		return err
	}
	there := make(map[Place]bool, len(seats))
	var strays []Place
	b.mu.Lock()
	for _, seat := range seats {
		there[seat.Place()] = true
		if s := b.sessions[seat.URI]; s == nil || s.number != seat.Number {
			strays = append(strays, seat.Place())
		}
	}
	for uri, s := range b.sessions {
		if s.number > 0 && s.number <= newest && !there[Place{uri, s.number}] {
			s.number = 0
			b.unsettled(s)
		}
	}
	b.mu.Unlock()
	if len(strays) == 0 {
		return nil
	}
	return b.cfg.Others.Roster.LeaveSeats(ctx, strays)
}
