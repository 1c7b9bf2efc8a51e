package broker_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/broker/brokertest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire"
)

// server is one of several with the same records.
type server struct {
	name    string
	broker  *broker.Broker
	dead    bool           // it was killed
	inbox   []broker.Moves // what others told and it did not hear yet
	clients []*client
	came    []fleet.Certname // as it was told
	went    []fleet.Certname

	watcher *broker.Session // asks who is there
	there   map[wire.URI]bool
}

// client is a connection that a client has, or had.
type client struct {
	uri     wire.URI
	session *broker.Session
	conn    *brokertest.Conn
	left    bool
	again   bool // it came again to the same server
}

func (c *client) open() bool { return !c.left && !c.conn.Ousted() }

// servers is some of them, and what is between them.
type servers struct {
	all    []*server
	roster *brokertest.Roster
	sought int       // clients that were looked up in the records
	during func()    // is called once when a transaction has ended, before who asked for it has the answer
	cut    bool      // nobody hears anybody
	past   []*client // of servers that were killed
}

var errAway = fault.New(fault.Unavailable, "the records are away")

// meddled is a roster whose answers come late.
type meddled struct {
	*brokertest.Roster
	servers *servers
}

func (m meddled) meanwhile() {
	if during := m.servers.during; during != nil {
		m.servers.during = nil
		during()
	}
}

func (m meddled) TakeSeats(ctx context.Context, server string, who []broker.Presence) ([]int64, error) {
	numbers, err := m.Roster.TakeSeats(ctx, server, who)
	m.meanwhile()
	return numbers, err
}

func (m meddled) Seats(ctx context.Context, server string) ([]broker.Seat, error) {
	seats, err := m.Roster.Seats(ctx, server)
	m.meanwhile()
	return seats, err
}

func (m meddled) Seat(ctx context.Context, uri wire.URI) (broker.Seat, bool, error) {
	m.servers.sought++
	return m.Roster.Seat(ctx, uri)
}

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func newServers(t fataler, n int) *servers {
	w := &servers{roster: brokertest.NewRoster()}
	for i := range n {
		s := &server{name: string(rune('a' + i))}
		w.all = append(w.all, s)
		w.start(t, s)
	}
	return w
}

// start starts a server, perhaps again after it was killed.
func (w *servers) start(t fataler, s *server) {
	t.Helper()
	b, err := broker.New(broker.Config{
		Log: slog.New(slog.DiscardHandler), Controller: func(name fleet.Certname) bool { return name[0] == 'c' },
		Others: &broker.Others{
			Server: s.name, Roster: meddled{w.roster, w}, Deaf: func() bool { return w.cut },
			Alive: func(context.Context) (map[string]bool, error) {
				alive := map[string]bool{}
				for _, s := range w.all {
					alive[s.name] = !s.dead
				}
				return alive, nil
			},
			Pass: func(ctx context.Context, name string, m wire.Message) error {
				i := slices.IndexFunc(w.all, func(s *server) bool { return s.name == name })
				if w.cut || w.all[i].dead {
					return fault.New(fault.Unavailable, "%s does not answer", name)
				}
				return w.all[i].broker.Take(ctx, m)
			},
			Tell: func(m broker.Moves) {
				for _, other := range w.all {
					if other != s && !other.dead && !w.cut {
						other.inbox = append(other.inbox, m)
					}
				}
			},
			Came: func(who broker.Presence) { s.came = append(s.came, who.Certname) },
			Went: func(who broker.Presence) { s.went = append(s.went, who.Certname) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.past = append(w.past, s.clients...)
	s.broker, s.dead, s.clients, s.inbox = b, false, nil, nil
	if _, err := w.roster.ClearSeats(context.Background(), s.name); err != nil { // as RunSeats does
		t.Fatal(err)
	}
	c := w.join(t, s, wire.NewURI("c"+s.name, "watch"))
	s.watcher, s.there = c.session, map[wire.URI]bool{}
	ask, err := wire.V2.Append(nil, wire.Message{
		ID: "1-1-1-1-1", Type: wire.InventoryRequest, Data: wire.Data(wire.Query{Query: []wire.URI{"pcp://*/*"}, Subscribe: true}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.watcher.Receive(context.Background(), ask, false)
}

func (w *servers) join(t fataler, s *server, uri wire.URI) *client {
	t.Helper()
	c := &client{uri: uri, conn: &brokertest.Conn{Gone: true}}
	var err error
	c.session, err = s.broker.Join(broker.Presence{URI: uri, Certname: fleet.Certname(uri.Name()), Version: wire.V2, Remote: "192.0.2.1:1"}, false, c.conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, earlier := range s.clients {
		earlier.again = earlier.again || earlier.uri == uri
	}
	s.clients = append(s.clients, c)
	return c
}

// crowd has a client come and leave so often that what is to be written is looked through.
func (w *servers) crowd(t fataler, s *server) {
	t.Helper()
	for range 1500 {
		c := w.join(t, s, "pcp://crowd/agent")
		c.left = true
		c.session.Leave(broker.Farewell{Code: 1000})
	}
}

// living is those that were not killed.
func (w *servers) living() []*server {
	return slices.DeleteFunc(slices.Clone(w.all), func(s *server) bool { return s.dead })
}

// hear has a server hear what it was told.
func (s *server) hear() {
	for len(s.inbox) > 0 {
		m := s.inbox[0]
		s.inbox = s.inbox[1:]
		s.broker.Heard(m)
	}
}

// settle lets all that there is come to an end.
func (w *servers) settle(t fataler) {
	t.Helper()
	for range 4 {
		for _, s := range w.living() {
			s.hear()
			s.broker.Missed()
			if err := s.broker.Step(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// read applies the updates that the watcher of a server was sent; each must make sense where it stands.
func (s *server) read(t fataler) {
	t.Helper()
	s.broker.Publish()
	for m, ok := s.watcher.Next(); ok; m, ok = s.watcher.Next() {
		switch m.Type {
		case wire.InventoryResponse:
			inventory, err := wire.ParseInventory(m.Data)
			if err != nil {
				t.Fatal(err)
			}
			for _, uri := range inventory.URIs {
				s.there[uri] = true
			}
		case wire.InventoryUpdate:
			changes, err := wire.ParseChanges(m.Data)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range changes.Changes {
				if s.there[c.Client] == (c.Change == 1) {
					t.Fatalf("the watcher of %s is told %+v twice", s.name, c)
				}
				s.there[c.Client] = c.Change == 1
				if c.Change != 1 {
					delete(s.there, c.Client)
				}
			}
		}
	}
}

// check compares what all believe with what is so, once nothing is under way.
func (w *servers) check(t fataler) {
	t.Helper()
	holders, numbers, newest := map[wire.URI]string{}, map[wire.URI]int64{}, map[wire.URI]*client{}
	for _, c := range w.past {
		if newest[c.uri] == nil || c.session.Number() > newest[c.uri].session.Number() {
			newest[c.uri] = c
		}
	}
	for _, s := range w.all {
		for _, c := range s.clients {
			if n := c.session.Number(); newest[c.uri] == nil || n > newest[c.uri].session.Number() {
				newest[c.uri] = c
			}
			if s.dead || !c.open() {
				continue
			}
			if other, two := holders[c.uri]; two {
				t.Errorf("%s is connected to %s and to %s", c.uri, other, s.name)
			}
			holders[c.uri], numbers[c.uri] = s.name, c.session.Number()
		}
	}
	for _, s := range w.all {
		for _, c := range s.clients {
			if newest[c.uri] == c && !c.again && !s.dead && !c.left && c.conn.Ousted() {
				t.Errorf("%s came last on %s, and was ousted by one that came earlier", c.uri, s.name)
			}
		}
	}
	stored := map[wire.URI]string{}
	for _, s := range w.all {
		seats, err := w.roster.Seats(context.Background(), s.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, seat := range seats {
			if s.dead {
				continue // they do not count
			}
			stored[seat.URI] = s.name
			if numbers[seat.URI] != seat.Number {
				t.Errorf("%s has the number %d in the records and %d on %s", seat.URI, seat.Number, numbers[seat.URI], s.name)
			}
		}
	}
	if diff := cmp.Diff(holders, stored); diff != "" {
		t.Errorf("who is in the records (-connected +stored):\n%s", diff)
	}
	uris := slices.Sorted(maps.Keys(holders))
	for _, s := range w.living() {
		s.read(t)
		if diff := cmp.Diff(uris, s.broker.Connected("pcp://*/*")); diff != "" {
			t.Errorf("what %s knows (-want +got):\n%s", s.name, diff)
		}
		if diff := cmp.Diff(uris, slices.Sorted(maps.Keys(s.there))); diff != "" {
			t.Errorf("what the watcher of %s believes (-want +got):\n%s", s.name, diff)
		}
		for uri, holder := range holders {
			want := holder
			if holder == s.name {
				want = ""
			}
			if got := s.broker.ServerOf(uri); got != want || s.broker.Here(uri) != (want == "") {
				t.Errorf("%s believes that %s is on %q, and it is on %s", s.name, uri, got, holder)
			}
		}
	}
}
