package broker_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/broker/brokertest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire"
)

// Clients come, leave and come again anywhere, servers die and start again, what they tell each other is lost at random, and so are the records
// for a while. In the end the records are what is so, and everybody knows it.
func TestPresenceOfManyServers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newServers(t, 3)
		living := func() *server { return rapid.SampledFrom(w.living()).Draw(t, "server") }
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
			"kill": func(*rapid.T) {
				if len(w.living()) > 1 {
					living().dead = true
				}
			},
			"start": func(t *rapid.T) {
				for _, s := range w.all {
					if s.dead {
						w.roster.Fail(nil)
						w.start(t, s)
						return
					}
				}
			},
			"records": func(t *rapid.T) { w.roster.Fail(rapid.SampledFrom([]error{nil, errAway}).Draw(t, "away")) },
			"settled": func(t *rapid.T) {
				w.roster.Fail(nil)
				w.settle(t)
				w.check(t)
			},
			"": func(t *rapid.T) {
				for _, s := range w.living() {
					s.read(t)
				}
			},
		})
		w.roster.Fail(nil)
		w.settle(t)
		w.check(t)
	})
}

// orderTo is a message of the server to an agent.
func orderTo(name string) wire.Message {
	return wire.Message{Type: wire.NonBlockingRequest, Target: wire.NewURI(name, "agent"), Data: []byte(`{"order":1}`)}
}

// say has a client send a message.
func say(t *testing.T, c *client, m wire.Message) {
	t.Helper()
	m.ID = "1-1-1-1-2"
	text, err := wire.V2.Append(nil, m)
	if err != nil {
		t.Error(err)
	}
	c.session.Receive(t.Context(), text, false)
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
	say(t, controller, wire.Message{Type: wire.BlockingRequest, Target: "pcp://web-1/agent", Data: []byte("1")})
	if got = brokertest.Drain(agent.session); len(got) != 1 || got[0].Sender != "pcp://ctl-1/orders" {
		t.Errorf("the agent got %+v", got)
	}
	say(t, agent, wire.Message{Type: wire.BlockingResponse, Target: "pcp://ctl-1/orders", Data: []byte("2")})
	if got = brokertest.Drain(controller.session); len(got) != 1 || got[0].Sender != "pcp://web-1/agent" || string(got[0].Data) != "2" {
		t.Errorf("the controller got %+v", got)
	}
	// A node may not order one of another server either.
	w.join(t, a, "pcp://web-2/agent")
	w.settle(t)
	say(t, agent, wire.Message{Type: wire.BlockingRequest, Target: "pcp://web-2/agent"})
	if got = brokertest.Drain(agent.session); len(got) != 1 || got[0].Type != wire.ErrorMessage || string(got[0].Data) != `"Message not authorized."` {
		t.Errorf("the agent got %+v", got)
	}

	w.cut = true
	say(t, controller, wire.Message{Type: wire.BlockingRequest, Target: "pcp://web-1/agent"})
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

// A controller asks as soon as it is connected, an agent of another server, which did not hear of it yet: the answer finds its way back.
func TestAnAnswerFindsWhoCameAMomentAgo(t *testing.T) {
	t.Parallel()
	w := newServers(t, 2)
	a, b := w.all[0], w.all[1]
	agent := w.join(t, b, "pcp://web-1/agent")
	w.settle(t)
	controller := w.join(t, a, "pcp://ctl-1/orders")
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		say(t, controller, wire.Message{Type: wire.BlockingRequest, Target: "pcp://web-1/agent"})
	}()
	select {
	case <-asked:
		t.Error("the question was passed on before the records had who asks")
	case <-time.After(20 * time.Millisecond):
	}
	must(t, a.broker.WriteSeats(t.Context()))
	<-asked
	if got := brokertest.Drain(agent.session); len(got) != 1 || got[0].Sender != "pcp://ctl-1/orders" {
		t.Fatalf("the agent got %+v", got)
	}
	say(t, agent, wire.Message{Type: wire.BlockingResponse, Target: "pcp://ctl-1/orders", Data: []byte("2")})
	if got := brokertest.Drain(controller.session); len(got) != 1 || string(got[0].Data) != "2" {
		t.Errorf("the controller got %+v; the agent %+v", got, brokertest.Drain(agent.session))
	}
	b.hear() // late
	w.settle(t)
	w.check(t)

	// The records are away: what is asked goes on its way, and nobody waits for good.
	w.roster.Fail(errAway)
	say(t, w.join(t, a, "pcp://ctl-2/orders"), wire.Message{Type: wire.BlockingRequest, Target: "pcp://web-1/agent"})
	if got := brokertest.Drain(agent.session); len(got) != 1 || got[0].Sender != "pcp://ctl-2/orders" {
		t.Errorf("the agent got %+v", got)
	}
}

// The records do not have who asks, as they are away: its first message waits for them, once here and once there, and the others do not.
func TestWhoIsNotInTheRecordsIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newServers(t, 2)
		a, b := w.all[0], w.all[1]
		agent := w.join(t, b, "pcp://web-1/agent")
		w.settle(t)
		controller := w.join(t, a, "pcp://ctl-1/orders")
		w.roster.Fail(errAway)
		begin := time.Now()
		for range 5 {
			say(t, controller, wire.Message{Type: wire.BlockingRequest, Target: "pcp://web-1/agent"})
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("five messages took %v", took)
		}
		if w.sought != 1 {
			t.Errorf("the sender of five messages was looked up %d times", w.sought)
		}
		if got := brokertest.Drain(agent.session); len(got) != 5 {
			t.Errorf("the agent got %+v", got)
		}

		// When the records are back, it is known; and when it goes to another server, it is looked up again.
		w.roster.Fail(nil)
		w.settle(t)
		w.check(t)
		controller.left = true
		controller.session.Leave(broker.Farewell{Code: 1000})
		w.settle(t)
		controller = w.join(t, a, "pcp://ctl-1/orders")
		must(t, a.broker.WriteSeats(t.Context()))
		b.inbox = nil // b does not hear of it
		say(t, controller, wire.Message{Type: wire.BlockingRequest, Target: "pcp://web-1/agent"})
		if got := b.broker.ServerOf("pcp://ctl-1/orders"); got != "a" || w.sought != 2 {
			t.Errorf("b believes that who asks is on %q; %d were looked up", got, w.sought)
		}
	})
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
	w.crowd(t, a)
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
