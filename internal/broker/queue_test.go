package broker_test

import (
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/broker/brokertest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
)

func parcel(n int, to wire.URI) wire.Message {
	return wire.Message{Type: "x", Target: to, Data: wire.Data(strings.Repeat("x", n))}
}

func TestASlowReaderIsCutOff(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *broker.Config) { c.QueueBytes = 10_000 })
	slow, quick := join(t, b, "pcp://slow/agent"), join(t, b, "pcp://quick/agent")
	must(t, b.Send(t.Context(), parcel(100_000, "pcp://slow/agent"))) // one fits, whatever its size
	want(t, len(brokertest.Drain(slow.Session)), 1)
	for range 4 {
		must(t, b.Send(t.Context(), parcel(1500, "pcp://slow/agent")))
		must(t, b.Send(t.Context(), parcel(1500, "pcp://quick/agent")))
		want(t, len(brokertest.Drain(quick.Session)), 1)
	}
	want(t, fault.Of(b.Send(t.Context(), parcel(5000, "pcp://slow/agent"))), fault.Unavailable)
	farewell, closed := slow.conn.Farewell()
	want(t, []any{farewell.Code, closed}, []any{1008, true})
	want(t, fault.Of(b.Send(t.Context(), parcel(1, "pcp://slow/agent"))), fault.NotFound)
	want(t, len(brokertest.Drain(slow.Session)), 0) // what it did not read is gone
	want(t, b.Stats().QueuedBytes, int64(0))
	want(t, b.Stats().CutOff, int64(1))
}

func TestAllQueuesTogetherAreBounded(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *broker.Config) { c.AllQueuesBytes = 10_000 })
	first, second := join(t, b, "pcp://one/agent"), join(t, b, "pcp://two/agent")
	must(t, b.Send(t.Context(), parcel(8000, "pcp://one/agent")))
	want(t, fault.Of(b.Send(t.Context(), parcel(8000, "pcp://two/agent"))), fault.Unavailable)
	_, closed := second.conn.Farewell() // it is not its fault
	want(t, closed, false)
	first.Leave(broker.Farewell{})
	must(t, b.Send(t.Context(), parcel(8000, "pcp://two/agent")))
	want(t, len(brokertest.Drain(second.Session)), 1)
	want(t, b.Stats().QueuedBytes, int64(0))
}

func TestOneWakeUntilTheQueueIsEmpty(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	node := join(t, b, "pcp://web1/agent")
	for range 3 {
		must(t, b.Send(t.Context(), parcel(1, "pcp://web1/agent")))
	}
	want(t, node.conn.Woken(), 1)
	want(t, len(brokertest.Drain(node.Session)), 3)
	must(t, b.Send(t.Context(), parcel(1, "pcp://web1/agent")))
	want(t, node.conn.Woken(), 2)
}
