package connection_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gobwas "github.com/gobwas/ws"

	"github.com/tutti-project/tutti/internal/agent/connection"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
	"github.com/tutti-project/tutti/internal/wire"
)

// one name has these addresses, whatever is asked.
func one(addresses ...string) func(context.Context, string) ([]string, error) {
	return func(context.Context, string) ([]string, error) { return addresses, nil }
}

// A name with three addresses: a hundred agents spread over them; those of a server that goes away spread over the other two, within one attempt; a
// server that takes nobody is no reason to fail.
func TestAgentsSpreadOverTheAddressesOfAName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const agents = 100
		var down, full atomic.Value
		down.Store("")
		full.Store("")
		var mu sync.Mutex
		at, lost := map[string]int{}, map[string][]func() error{} // by address: who is connected, and how to end that
		dial := func(_ context.Context, address string) (net.Conn, error) {
			host := strings.TrimSuffix(address, ":8142")
			if host == down.Load() {
				return nil, errAway
			}
			here, there := net.Pipe()
			go func() {
				defer func() { _ = there.Close() }()
				if _, err := (gobwas.Upgrader{}).Upgrade(there); err != nil || host == full.Load() {
					return
				}
				mu.Lock()
				at[host]++
				lost[host] = append(lost[host], there.Close)
				mu.Unlock()
				scene := &scene{there, t, wire.V2}
				scene.letIn()
				scene.serve()
				mu.Lock()
				at[host]--
				mu.Unlock()
			}()
			return here, nil
		}
		spread := func() []int {
			mu.Lock()
			defer mu.Unlock()
			return []int{at["192.0.2.1"], at["192.0.2.2"], at["192.0.2.3"]}
		}
		draw := rand.New(rand.NewPCG(1, 2))
		var drawing sync.Mutex
		links := make([]*connection.Link, agents)
		for i := range links {
			links[i] = (&stage{}).link(t, time.Hour, func(c *connection.Config) {
				c.URLs, c.Dial, c.Resolve = []string{"ws://tutti.example"}, dial, one("192.0.2.1", "192.0.2.2", "192.0.2.3")
				c.Jitter = func(limit time.Duration) time.Duration {
					drawing.Lock()
					defer drawing.Unlock()
					return time.Duration(draw.Int64N(int64(max(limit, 1))))
				}
			})
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if got := spread(); slices.Min(got) < agents/5 || got[0]+got[1]+got[2] != agents {
			t.Errorf("the agents are spread as %v", got)
		}

		down.Store("192.0.2.1")
		mu.Lock()
		ends := lost["192.0.2.1"]
		lost["192.0.2.1"] = nil
		mu.Unlock()
		for _, end := range ends {
			_ = end()
		}
		<-time.After(2 * time.Second) // one pause of an agent that lost a good connection
		synctest.Wait()
		if got := spread(); got[0] != 0 || slices.Min(got[1:]) < agents/3 || got[1]+got[2] != agents {
			t.Errorf("after one server went away: %v", got)
		}
		for i, link := range links {
			if state := link.State(); state.Attempts != 0 || !state.Connected || state.Server != "tutti.example:8142" {
				t.Errorf("agent %d: %+v", i, state)
			}
		}

		<-time.After(time.Minute)
		// The first comes back, and the second takes nobody in any more, as one that is drained.
		down.Store("")
		full.Store("192.0.2.2")
		mu.Lock()
		ends = lost["192.0.2.2"]
		mu.Unlock()
		for _, end := range ends {
			_ = end()
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if got := spread(); got[1] != 0 || got[0] < 10 || got[0]+got[2] != agents {
			t.Errorf("after one server was drained: %v", got)
		}
	})
}

// An address where nobody answers takes its share of the time, and not all of it. One that is found twice is one server, and has one share.
func TestASilentAddressTakesItsShare(t *testing.T) {
	t.Parallel()
	for name, found := range map[string][]string{ // tried from the lowest
		"each once": {"192.0.2.3", "192.0.2.1", "192.0.2.2"},
		"one often": {"192.0.2.3", "192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &stage{act: func(_ int, scene *scene) { scene.letIn(); scene.serve() }}
				var mu sync.Mutex
				dialled := map[string]int{}
				link := s.link(t, time.Hour, func(c *connection.Config) {
					c.Resolve = one(found...)
					c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
						mu.Lock()
						dialled[address]++
						mu.Unlock()
						if address != "192.0.2.3:8142" {
							<-ctx.Done()
							return nil, ctx.Err()
						}
						return s.dial(ctx, address)
					}
				})
				<-time.After(11 * time.Second) // two of three shares of 15 s
				synctest.Wait()
				want(t, link.State().Connected, true)
				want(t, seconds(s.times), []int{10})
				mu.Lock()
				defer mu.Unlock()
				want(t, fmt.Sprint(dialled), "map[192.0.2.1:8142:1 192.0.2.2:8142:1 192.0.2.3:8142:1]")
			})
		})
	}
}

// A server that two lists name is tried in its turn, as often as the others.
func TestAServerThatIsNamedTwiceHasOneTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		var mu sync.Mutex
		dialled := map[string]int{}
		s.link(t, time.Hour, func(c *connection.Config) {
			c.URLs = []string{"ws://one", "ws://two", "ws://one:8142", "ws://one"}
			c.Dial = func(_ context.Context, address string) (net.Conn, error) {
				mu.Lock()
				defer mu.Unlock()
				dialled[address]++
				return nil, errAway
			}
		})
		<-time.After(10 * time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if one, two := dialled["one:8142"], dialled["two:8142"]; one-two > 1 || two == 0 {
			t.Errorf("one is tried %d times, and two %d times", one, two)
		}
	})
}

// Where a name has one address in either family, the system tries both at once, and is left to it.
func TestANameWithOneAddressIsDialledAsItIs(t *testing.T) {
	t.Parallel()
	for _, found := range [][]string{{"192.0.2.1"}, {"2001:db8::1", "192.0.2.1"}, {"192.0.2.1", "192.0.2.1"}} {
		synctest.Test(t, func(t *testing.T) {
			s := &stage{act: func(_ int, scene *scene) { scene.letIn(); scene.serve() }}
			link := s.link(t, time.Minute, func(c *connection.Config) { c.Resolve = one(found...) })
			synctest.Wait()
			want(t, link.State().Connected, true)
			want(t, s.hosts, []string{"one"})
		})
	}
}

// Over real TLS: the certificate is that of the name, whichever address answers, and a server that is gone is passed over at once.
func TestFailOverBetweenAddressesWithTLS(t *testing.T) {
	t.Parallel()
	ca := pkitest.Open(t)
	first, second := open(t, ca, "", nil), open(t, ca, "", nil)
	ports := map[string]string{"127.0.0.2": first.addr, "127.0.0.3": second.addr} // both listen on 127.0.0.1, at ports of their own
	c := config(t, "web1", first)
	c.URLs = []string{"wss://127.0.0.1:8140"}
	c.Resolve = one("127.0.0.2", "127.0.0.3")
	var mu sync.Mutex
	var dialled []string
	c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		mu.Lock()
		dialled = append(dialled, host)
		mu.Unlock()
		return new(net.Dialer).DialContext(ctx, "tcp", ports[host])
	}
	link := run(t, c)
	take(t, link.connected)
	houses := map[string]*house{"127.0.0.2": first, "127.0.0.3": second}
	mu.Lock()
	here := dialled[len(dialled)-1]
	mu.Unlock()
	want(t, houses[here].broker.Stats().Connected, 1)
	houses[here].stop()
	take(t, link.connected)
	for host, h := range houses {
		if host != here {
			want(t, h.broker.Stats().Connected, 1)
		}
	}
	want(t, link.State().Attempts, 0)
	want(t, fmt.Sprint(link.State().Lost), "1")
}
