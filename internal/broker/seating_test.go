package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/broker/brokertest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire"
)

// oneOf is the broker of the server a. Of the others, one died and is listed still.
func oneOf(t *testing.T, roster broker.Roster) *broker.Broker {
	t.Helper()
	b, err := broker.New(broker.Config{Log: slog.New(slog.DiscardHandler), Others: &broker.Others{
		Server: "a", Roster: roster, Tell: func(broker.Moves) {},
		Alive: func(context.Context) (map[string]bool, error) { return map[string]bool{"a": true, "dead": false}, nil },
	}})
	must(t, err)
	return b
}

func joins(t *testing.T, b *broker.Broker, uri wire.URI) *broker.Session {
	t.Helper()
	s, err := b.Join(broker.Presence{URI: uri, Certname: fleet.Certname(uri.Name()), Version: wire.V2}, false, &brokertest.Conn{})
	must(t, err)
	return s
}

// taking is a roster whose transactions take a while, in which others come.
type taking struct{ *brokertest.Roster }

func (r taking) TakeSeats(ctx context.Context, server string, who []broker.Presence) ([]int64, error) {
	<-time.After(time.Millisecond)
	return r.Roster.TakeSeats(ctx, server, who)
}

// A broker that runs writes what comes and goes at once, and nothing while nothing does; it leaves nothing behind.
func TestSeatsAreWrittenAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		roster := brokertest.NewRoster()
		b := oneOf(t, taking{roster})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.RunSeats(ctx) }()
		synctest.Wait()
		before := roster.Writes()
		var last *broker.Session
		for i := range 2500 {
			uri := wire.NewURI(fmt.Sprint("n", i), "agent")
			last = joins(t, b, uri)
		}
		<-time.After(time.Second)
		tallies, newest, err := roster.Tallies(t.Context())
		must(t, err)
		if tallies["a"].Count != 2500 || newest != 2500 {
			t.Errorf("the records have %+v", tallies)
		}
		if n := roster.Writes() - before; n > 4 {
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

// tallied is a roster that counts how often it was compared with.
type tallied struct {
	*brokertest.Roster
	count int
}

func (r *tallied) Tallies(ctx context.Context) (map[string]broker.Tally, int64, error) {
	r.count++
	return r.Roster.Tallies(ctx)
}

// A server that died is listed for a week: that is no reason to compare with the records each second.
func TestADeadServerCostsNoComparisons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		roster := &tallied{Roster: brokertest.NewRoster()}
		b := oneOf(t, roster)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		must(t, b.RunSeats(ctx))
		if roster.count < 6 || roster.count > 8 {
			t.Errorf("compared %d times in a minute", roster.count)
		}
	})
}

// While the records are away, clients come and leave again and again: what is to be written does not grow, and is right afterwards.
func TestComingAndGoingWithoutRecords(t *testing.T) {
	t.Parallel()
	roster := brokertest.NewRoster()
	b := oneOf(t, roster)
	gone := joins(t, b, "pcp://gone/agent")
	must(t, b.Step(t.Context()))
	roster.Fail(errAway)
	gone.Leave(broker.Farewell{Code: 1000})
	var last *broker.Session
	for i := range 20_000 {
		if last != nil && i%2 == 0 {
			last.Leave(broker.Farewell{Code: 1000})
		}
		last = joins(t, b, "pcp://web-1/agent")
		if i%100 == 0 && b.WriteSeats(t.Context()) == nil {
			t.Fatal("the records are not away")
		}
	}
	if n := b.Unsettled(); n > 2000 {
		t.Errorf("%d sessions are remembered for one client", n)
	}
	roster.Fail(nil)
	must(t, b.Step(t.Context()))
	seats, err := roster.Seats(t.Context(), "a")
	must(t, err)
	if len(seats) != 1 || seats[0].Number != last.Number() || seats[0].URI != "pcp://web-1/agent" {
		t.Errorf("the records have %+v", seats)
	}
	last.Leave(broker.Farewell{Code: 1000})
	must(t, b.Step(t.Context()))
	if seats, err = roster.Seats(t.Context(), "a"); err != nil || len(seats) != 0 {
		t.Errorf("the records have %+v, %v", seats, err)
	}
}

// A session leaves while its number is on its way: the records forget it.
func TestASessionLeavesWhileItIsWritten(t *testing.T) {
	t.Parallel()
	w := newServers(t, 1)
	a := w.all[0]
	w.settle(t)
	c := w.join(t, a, "pcp://web-1/agent")
	w.during = func() {
		c.left = true
		c.session.Leave(broker.Farewell{Code: 1000})
		w.crowd(t, a)
	}
	must(t, a.broker.WriteSeats(t.Context()))
	must(t, a.broker.WriteSeats(t.Context())) // of what came meanwhile
	w.check(t)                                // nobody has compared
}
