package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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
	during func()    // is called once when a transaction has ended, before who asked for it has the answer
	cut    bool      // nobody hears anybody
	past   []*client // of servers that were killed
}

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
			Pass: func(_ context.Context, name string, m wire.Message) error {
				i := slices.IndexFunc(w.all, func(s *server) bool { return s.name == name })
				if w.cut || w.all[i].dead {
					return fault.New(fault.Unavailable, "%s does not answer", name)
				}
				return w.all[i].broker.Take(m)
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
	ask, err := wire.V2.Append(nil, wire.Message{ID: "1-1-1-1-1", Type: wire.InventoryRequest, Data: wire.Data(wire.Query{Query: []wire.URI{"pcp://*/*"}, Subscribe: true})})
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
		for _, s := range w.all {
			if s.dead {
				continue
			}
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
	for _, s := range w.all {
		if s.dead {
			continue
		}
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

// Clients come, leave and come again anywhere, servers die and start again, what they tell each other is lost at random, and so are the records
// for a while. In the end the records are what is so, and everybody knows it.
func TestPresenceOfManyServers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newServers(t, 3)
		living := func() *server {
			var all []*server
			for _, s := range w.all {
				if !s.dead {
					all = append(all, s)
				}
			}
			if len(all) == 0 {
				t.Skip("all are dead")
			}
			return rapid.SampledFrom(all).Draw(t, "server")
		}
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				w.join(t, living(), wire.NewURI(fmt.Sprint("n", rapid.IntRange(0, 3).Draw(t, "node")), "agent"))
			},
			"leave": func(t *rapid.T) { // also late: one whose place was taken
				s := living()
				if len(s.clients) == 1 {
					return // only the watcher is there
				}
				c := rapid.SampledFrom(s.clients[1:]).Draw(t, "client")
				c.left = true
				c.session.Leave(broker.Farewell{Code: 1000})
			},
			"write": func(*rapid.T) { _ = living().broker.WriteSeats(context.Background()) },
			"hear":  func(*rapid.T) { living().hear() },
			"lose": func(*rapid.T) {
				if s := living(); len(s.inbox) > 0 {
					s.inbox = s.inbox[1:]
				}
			},
			"compare": func(*rapid.T) { _ = living().broker.Step(context.Background()) },
			"kill":    func(*rapid.T) { living().dead = true },
			"start": func(t *rapid.T) {
				for _, s := range w.all {
					if s.dead {
						w.roster.Break(false)
						w.start(t, s)
						return
					}
				}
			},
			"records": func(t *rapid.T) { w.roster.Break(rapid.Bool().Draw(t, "away")) },
			"settled": func(t *rapid.T) {
				w.roster.Break(false)
				w.settle(t)
				w.check(t)
			},
			"": func(t *rapid.T) {
				for _, s := range w.all {
					if !s.dead {
						s.read(t)
					}
				}
			},
		})
		w.roster.Break(false)
		w.settle(t)
		w.check(t)
	})
}

// orderOf is a message of the server to an agent.
func orderTo(name string) wire.Message {
	return wire.Message{Type: wire.NonBlockingRequest, Target: wire.NewURI(name, "agent"), Data: []byte(`{"order":1}`)}
}

// What is sent on one server reaches who is connected to another one: the server's orders, and what controllers and agents say.
func TestMessagesPassBetweenServers(t *testing.T) {
	t.Parallel()
	w := newServers(t, 2)
	a, b := w.all[0], w.all[1]
	agent, controller := w.join(t, b, "pcp://web-1/agent"), w.join(t, a, "pcp://ctl-1/orders")
	if err := a.broker.Send(t.Context(), orderTo("web-1")); !fault.Is(err, fault.NotFound) {
		t.Errorf("before a heard of it: %v", err)
	}
	w.settle(t)
	w.check(t)
	want(t, a.came, []fleet.Certname{"cb", "web-1"})
	must(t, a.broker.Send(t.Context(), orderTo("web-1")))
	got := brokertest.Drain(agent.session)
	if len(got) != 1 || got[0].Sender != wire.Broker || string(got[0].Data) != `{"order":1}` || got[0].ID == "" {
		t.Errorf("the agent got %+v", got)
	}
	say := func(c *client, m wire.Message) {
		t.Helper()
		m.ID = "1-1-1-1-2"
		text, err := wire.V2.Append(nil, m)
		must(t, err)
		c.session.Receive(t.Context(), text, false)
	}
	say(controller, wire.Message{Type: wire.BlockingRequest, Target: "pcp://web-1/agent", Data: []byte("1")})
	if got = brokertest.Drain(agent.session); len(got) != 1 || got[0].Sender != "pcp://ctl-1/orders" {
		t.Errorf("the agent got %+v", got)
	}
	say(agent, wire.Message{Type: wire.BlockingResponse, Target: "pcp://ctl-1/orders", Data: []byte("2")})
	if got = brokertest.Drain(controller.session); len(got) != 1 || got[0].Sender != "pcp://web-1/agent" || string(got[0].Data) != "2" {
		t.Errorf("the controller got %+v", got)
	}
	// A node may not order one of another server either.
	w.join(t, a, "pcp://web-2/agent")
	w.settle(t)
	say(agent, wire.Message{Type: wire.BlockingRequest, Target: "pcp://web-2/agent"})
	if got = brokertest.Drain(agent.session); len(got) != 1 || got[0].Type != wire.ErrorMessage || string(got[0].Data) != `"Message not authorized."` {
		t.Errorf("the agent got %+v", got)
	}

	w.cut = true
	say(controller, wire.Message{Type: wire.BlockingRequest, Target: "pcp://web-1/agent"})
	if got = brokertest.Drain(controller.session); len(got) != 1 || got[0].Type != wire.ErrorMessage || string(got[0].Data) != `"b does not answer"` {
		t.Errorf("the controller got %+v", got)
	}
	w.cut = false
	agent.left = true
	agent.session.Leave(broker.Farewell{Code: 1000})
	if err := a.broker.Send(t.Context(), orderTo("web-1")); !fault.Is(err, fault.NotFound) { // a did not hear of it yet
		t.Errorf("of who left: %v", err)
	}
	w.settle(t)
	w.check(t)
	want(t, a.went, []fleet.Certname{"web-1"})
}

// Nobody hears anybody: the records alone make everything right.
func TestPresenceWithoutMessages(t *testing.T) {
	t.Parallel()
	w := newServers(t, 2)
	a, b := w.all[0], w.all[1]
	w.cut = true
	first := w.join(t, a, "pcp://web-1/agent")
	w.settle(t)
	w.check(t)
	w.join(t, b, "pcp://web-1/agent")
	w.settle(t)
	w.check(t)
	if !first.conn.Ousted() {
		t.Error("the earlier connection goes on")
	}
	b.dead = true
	must(t, a.broker.Step(t.Context()))
	if _, there := a.broker.Presence("pcp://web-1/agent"); there {
		t.Error("a node of a server that died is connected")
	}
	w.start(t, b)
	w.settle(t)
	w.check(t)
}

// A client comes to another server while the number of its earlier session is on its way: the later one has the place at once, also when the earlier one
// has left meanwhile.
func TestALaterSessionIsHeardOfFirst(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{false, true} {
		w := newServers(t, 2)
		a, b := w.all[0], w.all[1]
		w.settle(t)
		earlier := w.join(t, a, "pcp://web-1/agent")
		w.during = func() {
			w.join(t, b, "pcp://web-1/agent")
			must(t, b.broker.WriteSeats(t.Context()))
			a.hear()
			if leaves {
				earlier.left = true
				earlier.session.Leave(broker.Farewell{Code: 1000})
			}
		}
		must(t, a.broker.WriteSeats(t.Context()))
		b.hear()
		if !leaves && !earlier.conn.Ousted() {
			t.Error("the earlier connection goes on")
		}
		w.check(t) // nobody has compared
	}
}

// The same, and the earlier session left before it was written at all.
func TestALaterSessionIsHeardOfBeforeTheEarlierIsWritten(t *testing.T) {
	t.Parallel()
	w := newServers(t, 2)
	a, b := w.all[0], w.all[1]
	w.settle(t)
	earlier := w.join(t, a, "pcp://web-1/agent")
	w.join(t, b, "pcp://web-1/agent")
	must(t, b.broker.WriteSeats(t.Context()))
	a.hear()
	earlier.left = true
	earlier.session.Leave(broker.Farewell{Code: 1000})
	must(t, a.broker.WriteSeats(t.Context()))
	w.check(t)
}

// Two servers are heard in the wrong order.
func TestAnEarlierSessionIsHeardOfLate(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3)
	a, b, c := w.all[0], w.all[1], w.all[2]
	w.settle(t)
	w.join(t, b, "pcp://web-1/agent")
	must(t, b.broker.WriteSeats(t.Context()))
	w.join(t, c, "pcp://web-1/agent")
	must(t, c.broker.WriteSeats(t.Context()))
	slices.Reverse(a.inbox)
	a.hear()
	if got := a.broker.ServerOf("pcp://web-1/agent"); got != "c" {
		t.Errorf("a believes that it is on %q", got)
	}
}

// What is heard while the records are read is not forgotten.
func TestWhatIsHeardDuringAComparison(t *testing.T) {
	t.Parallel()
	w := newServers(t, 2)
	a, b := w.all[0], w.all[1]
	w.settle(t)
	w.join(t, b, "pcp://web-1/agent")
	must(t, b.broker.WriteSeats(t.Context()))
	a.inbox = nil // a did not hear of it
	w.during = func() {
		w.join(t, b, "pcp://web-2/agent")
		must(t, b.broker.WriteSeats(t.Context()))
		a.hear()
	}
	must(t, a.broker.Compare(t.Context()))
	w.check(t)
}

// Two agents with one certificate, each on a server of its own, are told from one agent with a bad network.
func TestRivalsOnTwoServers(t *testing.T) {
	t.Parallel()
	w := newServers(t, 2)
	for i := range 4 {
		c := w.join(t, w.all[i%2], "pcp://web-1/agent")
		c.conn.Gone = false
		w.settle(t)
	}
	for _, s := range w.all {
		who, there := s.broker.Presence("pcp://web-1/agent")
		if !there || who.Rivals.Count != 3 || who.Shared(time.Now()) == "" {
			t.Errorf("%s knows %t, %+v", s.name, there, who.Rivals)
		}
	}
}

// A broker that runs writes what comes and goes at once, and nothing while nothing does; it leaves nothing behind.
func TestSeatsAreWrittenAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		roster, told := brokertest.NewRoster(), 0
		b, err := broker.New(broker.Config{Log: slog.New(slog.DiscardHandler), Others: &broker.Others{
			Server: "a", Roster: roster, Alive: func(context.Context) (map[string]bool, error) { return map[string]bool{"a": true}, nil },
			Tell: func(broker.Moves) { told++ },
		}})
		must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.RunSeats(ctx) }()
		synctest.Wait()
		before := roster.Writes()
		var last *broker.Session
		for i := range 2500 {
			uri := wire.NewURI(fmt.Sprint("n", i), "agent")
			last, err = b.Join(broker.Presence{URI: uri, Certname: fleet.Certname(uri.Name()), Version: wire.V2}, false, &brokertest.Conn{})
			must(t, err)
		}
		synctest.Wait()
		tallies, newest, err := roster.Tallies(t.Context())
		must(t, err)
		if tallies["a"].Count != 2500 || newest != 2500 {
			t.Errorf("the records have %+v", tallies)
		}
		if n := roster.Writes() - before; n > 20 {
			t.Errorf("2500 clients that came at once took %d transactions", n)
		}
		last.Leave(broker.Farewell{Code: 1000})
		synctest.Wait()
		if tallies, _, err = roster.Tallies(t.Context()); err != nil || tallies["a"].Count != 2499 {
			t.Errorf("when one has left, the records have %+v, %v", tallies, err)
		}
		before = roster.Writes()
		<-time.After(time.Hour)
		if n := roster.Writes() - before; n != 0 {
			t.Errorf("%d transactions in an hour in which nothing happened", n)
		}
		stop()
		must(t, <-ended)
		if tallies, _, err = roster.Tallies(t.Context()); err != nil || len(tallies) != 0 {
			t.Errorf("left behind: %+v, %v", tallies, err)
		}
	})
}
