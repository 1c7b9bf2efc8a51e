package broker

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/wire"
)

// elsewhere is the clients of other brokers, as far as this one knows. The broker's mu is held.
type elsewhere struct {
	seats   map[wire.URI]Seat
	tallies map[string]*Tally // by server
}

func newElsewhere() elsewhere {
	return elsewhere{seats: map[wire.URI]Seat{}, tallies: map[string]*Tally{}}
}

func (e elsewhere) put(s Seat) {
	e.drop(s.URI)
	e.seats[s.URI] = s
	t := e.tallies[s.Server]
	if t == nil {
		t = &Tally{}
		e.tallies[s.Server] = t
	}
	t.add(s.Number)
}

func (e elsewhere) drop(uri wire.URI) {
	s, there := e.seats[uri]
	if !there {
		return
	}
	delete(e.seats, uri)
	t := e.tallies[s.Server]
	if t.take(s.Number); t.Count == 0 {
		delete(e.tallies, s.Server)
	}
}

// tally is that of a server's seats.
func (e elsewhere) tally(server string) Tally {
	if t := e.tallies[server]; t != nil {
		return *t
	}
	return Tally{}
}

// news is what follows from a change elsewhere, once no lock is held.
type news struct {
	came, went []Presence
	ousted     []ousting
}

// ousting is a session whose place was taken on another server.
type ousting struct {
	session *Session
	by      Seat
	ask     bool // its client whether it is still there
}

// act does what follows.
func (b *Broker) act(n news) {
	for _, o := range n.ousted {
		b.stats.superseded.Add(1)
		b.cfg.Log.Info("node connected again to another server, the earlier connection is dropped",
			"uri", o.by.URI, "earlier", o.session.who.Remote, "remote", o.by.Remote, "server", o.by.Server)
		o.session.oust(supersededWord, o.ask)
	}
	for _, who := range n.went {
		b.cfg.Others.Went(who)
	}
	for _, who := range n.came {
		b.cfg.Others.Came(who)
	}
}

// Heard takes what another broker tells.
func (b *Broker) Heard(m Moves) {
	if b.cfg.Others == nil || m.Server == b.cfg.Others.Server {
		return
	}
	var n news
	b.mu.Lock()
	if m.Gone {
		b.forget(m.Server, &n)
	}
	for _, place := range m.Went {
		if far, there := b.far.seats[place.URI]; there && far.Server == m.Server && far.Number == place.Number {
			b.goneElsewhere(far, &n)
		}
	}
	for _, seat := range m.Came {
		seat.Server = m.Server
		b.cameElsewhere(seat, &n)
	}
	for _, s := range m.Shared {
		b.learn(s)
	}
	b.mu.Unlock()
	b.act(n)
}

// cameElsewhere notes a client of another broker. The caller holds b.mu.
func (b *Broker) cameElsewhere(seat Seat, n *news) {
	if far, there := b.far.seats[seat.URI]; there {
		if far.Number >= seat.Number {
			return
		}
		b.note(seat.URI, -1)
	}
	if here := b.sessions[seat.URI]; here != nil {
		if here.number == 0 { // which of them came later is known when this one has its number
			if here.rival == nil || here.rival.Number < seat.Number {
				here.rival = &seat
			}
			return
		}
		if here.number > seat.Number {
			return
		}
		seat.Rivals = here.rivals
		b.remove(here)
		ask := seat.Since.Sub(here.asked).Abs() >= answerTime
		n.ousted = append(n.ousted, ousting{here, seat, ask})
	}
	b.far.put(seat)
	delete(b.vain, seat.URI)
	b.note(seat.URI, 1)
	n.came = append(n.came, seat.Presence)
}

// goneElsewhere forgets a client of another broker. The caller holds b.mu.
func (b *Broker) goneElsewhere(far Seat, n *news) {
	b.far.drop(far.URI)
	b.note(far.URI, -1)
	n.went = append(n.went, far.Presence)
}

// forget forgets all clients of a server. The caller holds b.mu.
func (b *Broker) forget(server string, n *news) {
	if b.far.tally(server).Count == 0 {
		return
	}
	for _, far := range b.far.seats {
		if far.Server == server {
			b.goneElsewhere(far, n)
		}
	}
}

// learn notes what another broker learnt of agents that share a certificate. The caller holds b.mu.
func (b *Broker) learn(s Sharing) {
	if far, there := b.far.seats[s.URI]; there && far.Number == s.Number {
		far.Rivals = s.Rivals
		b.far.seats[s.URI] = far
	}
	if here := b.sessions[s.URI]; here != nil && here.number == s.Number {
		here.rivals = s.Rivals
	}
}

// Take queues a message for its target if that is connected here, and otherwise nowhere: NotFound. Brokers of other servers pass on what is for clients
// here. A sender that this broker did not hear of yet is looked up first: the answer may be there in a moment, and is for it.
func (b *Broker) Take(ctx context.Context, m wire.Message) error {
	b.mu.Lock()
	to := b.sessions[m.Target]
	_, far := b.far.seats[m.Sender]
	known := far || b.sessions[m.Sender] != nil || m.Sender == wire.Broker || time.Since(b.vain[m.Sender]) < vainFor
	b.mu.Unlock()
	if to == nil {
		return errNotConnected()
	}
	if !known && b.find(ctx, m.Sender) == "" {
		b.mu.Lock()
		if len(b.vain) >= maxVain {
			clear(b.vain)
		}
		b.vain[m.Sender] = time.Now()
		b.mu.Unlock()
	}
	return to.push(m)
}

// A sender that the records do not have is not looked up for each of its messages: it is found by then when brokers compare.
const (
	vainFor = 10 * time.Second
	maxVain = 4096 // of them are remembered
)

// seatMay is how long a message waits for the records. Without them it goes on its way: then the answer to it may be lost.
const seatMay = time.Second

// find looks into the records for a client that this broker knows nothing of, or something old, and says where it is; empty: not elsewhere.
func (b *Broker) find(ctx context.Context, uri wire.URI) (server string) {
	ctx, cancel := context.WithTimeout(ctx, seatMay)
	defer cancel()
	seat, there, err := b.cfg.Others.Roster.Seat(ctx, uri)
	if err != nil || !there || seat.Server == b.cfg.Others.Server {
		b.Missed()
		return ""
	}
	var n news
	b.mu.Lock()
	b.cameElsewhere(seat, &n)
	server = b.far.seats[uri].Server
	b.mu.Unlock()
	b.act(n)
	return server
}

// awaitSeat waits until the records have a session, so that others can find where the answers to its messages belong. What follows on a message that
// waited in vain does not wait.
func (s *Session) awaitSeat(ctx context.Context) {
	if s.waited.Load() {
		return
	}
	wait := time.NewTimer(seatMay)
	defer wait.Stop()
	select {
	case <-s.seated:
	case <-ctx.Done():
	case <-wait.C:
		s.waited.Store(true)
	}
}
