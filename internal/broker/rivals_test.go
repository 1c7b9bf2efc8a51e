package broker_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/broker/brokertest"
	"github.com/tutti-project/tutti/internal/wire"
)

// Two agents with one certificate take each other's place again and again, which is told. One agent on a bad network takes its own
// place as often, and is not there any more where it was.
func TestAgentsThatShareACertificateAreNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := open(t, func(c *broker.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		join := func(pause time.Duration, remote string, gone bool) string {
			t.Helper()
			<-time.After(pause)
			_, err := b.Join(broker.Presence{URI: "pcp://web1/agent", Certname: "web1", Version: wire.V2, Remote: remote}, false, &brokertest.Conn{Gone: gone})
			must(t, err)
			who, _ := b.Presence("pcp://web1/agent")
			return who.Shared(time.Now())
		}
		const one, two, words = "192.0.2.1:1", "[2001:db8::2]:2", "two agents share its certificate, at 192.0.2.1 and 2001:db8::2"
		shared := func(pause time.Duration, remote string) string { return join(pause, remote, false) }
		for range 9 {
			if got := join(time.Second, one, true); got != "" {
				t.Errorf("one agent that connects again and again: %q", got)
			}
		}
		before, _ := b.Presence("pcp://web1/agent")
		want(t, before.Superseded, time.Now())
		for range 9 {
			if got := shared(6*time.Minute, one); got != "" {
				t.Errorf("agents that take each other's place now and then: %q", got)
			}
		}
		want(t, []string{shared(6*time.Minute, two), shared(time.Second, one), shared(time.Second, two), shared(time.Second, one)}, []string{"", "", words, words})
		if n := strings.Count(log.String(), "two agents share one certificate"); n != 1 || !strings.Contains(log.String(), "other=192.0.2.1:1") {
			t.Errorf("it was logged %d times: %s", n, log.String())
		}
		who, _ := b.Presence("pcp://web1/agent")
		want(t, who.Shared(time.Now().Add(5*time.Minute)), "")
	})
}

// A client that comes again and again and answers nothing is asked again only after a while, so it cannot pile up connections.
func TestWhoAnswersNothingIsAskedNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := open(t, nil)
		asked := 0
		var last *brokertest.Conn
		for range 100 {
			conn := &brokertest.Conn{Gone: true}
			_, err := b.Join(broker.Presence{URI: "pcp://web1/agent", Certname: "web1", Version: wire.V2, Remote: "192.0.2.1:1"}, false, conn)
			must(t, err)
			if last != nil {
				want(t, last.Ousted(), true)
				if last.Asked() {
					asked++
				}
			}
			last = conn
			<-time.After(100 * time.Millisecond)
		}
		want(t, asked, 2) // in ten seconds
	})
}

// Who left is told once, and not when a later connection took the place.
func TestWhoLeftIsTold(t *testing.T) {
	t.Parallel()
	var left []wire.URI
	b := open(t, func(c *broker.Config) {
		c.Left = func(who broker.Presence, _ broker.Farewell) { left = append(left, who.URI) }
	})
	first := join(t, b, "pcp://web1/agent")
	second := join(t, b, "pcp://web1/agent")
	first.Leave(broker.Farewell{Code: 1006})
	want(t, len(left), 0)
	second.Leave(broker.Farewell{Code: 1006})
	second.Leave(broker.Farewell{Code: 1006})
	want(t, left, []wire.URI{"pcp://web1/agent"})
}
