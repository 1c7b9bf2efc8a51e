package broker

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

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire"
)

// silent is a connection that only remembers that it was ended.
type silent struct{ ended bool }

func (c *silent) Wake()          {}
func (c *silent) Close(Farewell) { c.ended = true }
func (c *silent) Oust(func())    { c.ended = true }

// world is a broker beside what must be true of it.
type world struct {
	broker *Broker
	open   map[wire.URI]*Session // who is connected
	ever   []*Session            // also those that are gone
	views  map[*Session]*view    // what subscribers believe
}

type view struct {
	patterns []wire.URI
	there    map[wire.URI]bool
}

func newWorld(t interface{ Fatal(...any) }) *world {
	b, err := New(Config{Log: slog.New(slog.DiscardHandler), Controller: func(fleet.Certname) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	return &world{b, map[wire.URI]*Session{}, nil, map[*Session]*view{}}
}

func (w *world) join(t *rapid.T) {
	uri := wire.URI(fmt.Sprintf("pcp://n%d/t%d", rapid.IntRange(0, 3).Draw(t, "name"), rapid.IntRange(0, 1).Draw(t, "type")))
	s, err := w.broker.Join(Presence{URI: uri, Certname: fleet.Certname(uri.Name()), Version: wire.V2}, false, new(silent))
	if err != nil {
		t.Fatal(err)
	}
	if old := w.open[uri]; old != nil {
		delete(w.views, old)
		if !old.conn.(*silent).ended {
			t.Fatalf("the earlier connection of %s goes on", uri)
		}
	}
	w.open[uri], w.ever = s, append(w.ever, s)
}

// leave ends any session there ever was: the end of a superseded one comes late.
func (w *world) leave(t *rapid.T) {
	if len(w.ever) == 0 {
		return // nobody came
	}
	s := rapid.SampledFrom(w.ever).Draw(t, "session")
	s.Leave(Farewell{Code: 1000})
	delete(w.views, s)
	if w.open[s.who.URI] == s {
		delete(w.open, s.who.URI)
	}
}

// ask sends an inventory request, with or without a subscription.
func (w *world) ask(t *rapid.T) {
	if len(w.open) == 0 {
		return // nobody is there
	}
	s := w.open[rapid.SampledFrom(slices.Sorted(maps.Keys(w.open))).Draw(t, "subscriber")]
	patterns := rapid.SliceOfN(rapid.SampledFrom([]wire.URI{"pcp://*/*", "pcp://*/t0", "pcp://n1/*", "pcp://n2/t1", "pcp://n0/t0"}), 0, 3).Draw(t, "patterns")
	q := wire.Query{Query: patterns, Subscribe: rapid.Bool().Draw(t, "subscribe")}
	if q.Query == nil {
		q.Query = []wire.URI{}
	}
	w.read(t) // what came before belongs to the earlier view
	delete(w.views, s)
	if q.Subscribe {
		w.views[s] = &view{patterns: patterns}
	}
	text, err := wire.V2.Append(nil, wire.Message{ID: "1-1-1-1-1", Type: wire.InventoryRequest, Data: wire.Data(q)})
	if err != nil {
		t.Fatal(err)
	}
	s.Receive(context.Background(), text, false)
	answer, ok := s.Next()
	if !ok || answer.Type != wire.InventoryResponse || answer.InReplyTo != "1-1-1-1-1" {
		t.Fatalf("the first message after the request is %+v", answer)
	}
	got, err := wire.ParseInventory(answer.Data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.matching(patterns), got.URIs); diff != "" {
		t.Fatalf("inventory (-want +got):\n%s", diff)
	}
	if q.Subscribe {
		w.views[s].there = map[wire.URI]bool{}
		for _, uri := range got.URIs {
			w.views[s].there[uri] = true
		}
	}
}

func (w *world) matching(patterns []wire.URI) []wire.URI {
	found := []wire.URI{}
	for _, uri := range slices.Sorted(maps.Keys(w.open)) {
		if slices.ContainsFunc(patterns, func(p wire.URI) bool { return p.Matches(uri) }) {
			found = append(found, uri)
		}
	}
	return found
}

// read applies the updates that came; each must make sense where it stands.
func (w *world) read(t *rapid.T) {
	for _, s := range w.open {
		for m, ok := s.Next(); ok; m, ok = s.Next() {
			v := w.views[s]
			if m.Type != wire.InventoryUpdate || v == nil {
				t.Fatalf("%s was sent %+v and did not ask for it", s.who.URI, m)
			}
			changes, err := wire.ParseChanges(m.Data)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range changes.Changes {
				if v.there[c.Client] == (c.Change == 1) {
					t.Fatalf("%s is told %+v twice", s.who.URI, c)
				}
				v.there[c.Client] = c.Change == 1
			}
		}
	}
}

// publish lets a second pass, and compares what subscribers believe.
func (w *world) publish(t *rapid.T) {
	w.broker.publish()
	w.read(t)
	for s, v := range w.views {
		believed := []wire.URI{}
		for _, uri := range slices.Sorted(maps.Keys(v.there)) {
			if v.there[uri] {
				believed = append(believed, uri)
			}
		}
		if diff := cmp.Diff(w.matching(v.patterns), believed); diff != "" {
			t.Fatalf("what %s believes (-want +got):\n%s", s.who.URI, diff)
		}
	}
}

func (w *world) check(t *rapid.T) {
	got := w.broker.Connected("pcp://*/*")
	if diff := cmp.Diff(w.matching([]wire.URI{"pcp://*/*"}), got); diff != "" {
		t.Fatalf("connected (-want +got):\n%s", diff)
	}
	if len(w.broker.subscribers) != len(w.views) {
		t.Fatalf("%d subscriptions, want %d", len(w.broker.subscribers), len(w.views))
	}
	if used := w.broker.queues.used.Load(); used < 0 {
		t.Fatalf("queues hold %d bytes", used)
	}
}

// TestSessionsAndSubscriptions lets clients come, come again, go, go late,
// and ask, in any order.
func TestSessionsAndSubscriptions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){"join": w.join, "leave": w.leave, "ask": w.ask, "publish": w.publish, "": w.check})
		w.publish(t)
		for _, s := range w.ever {
			s.Leave(Farewell{})
		}
		if used := w.broker.queues.used.Load(); used != 0 {
			t.Fatalf("%d bytes are queued for nobody", used)
		}
	})
}

func TestUpdatesComeEachSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.broker.Run(ctx) }()
		join := func(uri wire.URI) *Session {
			s, err := w.broker.Join(Presence{URI: uri, Certname: fleet.Certname(uri.Name()), Version: wire.V2}, false, new(silent))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := join("pcp://ctl/c")
		text, _ := wire.V2.Append(nil, wire.Message{
			ID: "1-1-1-1-1", Type: wire.InventoryRequest, Data: wire.Data(wire.Query{Query: []wire.URI{"pcp://*/a"}, Subscribe: true}),
		})
		s.Receive(ctx, text, false)
		_, _ = s.Next()
		start := time.Now()
		for i := range 2500 {
			join(wire.URI(fmt.Sprintf("pcp://n%d/a", i)))
		}
		join("pcp://n1/a") // once more: a minus, then a plus
		if m, early := s.Next(); early {
			t.Errorf("told at once: %+v", m)
		}
		<-time.After(updateInterval) // of the bubble's clock
		synctest.Wait()
		var sizes []int
		var last []wire.Change
		for m, ok := s.Next(); ok; m, ok = s.Next() {
			c, err := wire.ParseChanges(m.Data)
			if err != nil {
				t.Fatal(err)
			}
			sizes, last = append(sizes, len(c.Changes)), c.Changes
		}
		if diff := cmp.Diff([]int{1000, 1000, 502}, sizes); diff != "" || time.Since(start) != updateInterval {
			t.Errorf("after %s, sizes of updates (-want +got):\n%s", time.Since(start), diff)
		}
		if diff := cmp.Diff([]wire.Change{{Client: "pcp://n1/a", Change: -1}, {Client: "pcp://n1/a", Change: 1}}, last[500:]); diff != "" {
			t.Errorf("the end (-want +got):\n%s", diff)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
