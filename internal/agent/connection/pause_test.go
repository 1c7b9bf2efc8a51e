package connection_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gobwas "github.com/gobwas/ws"

	"github.com/tutti-project/tutti/internal/agent/connection"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
)

// stage is a server made of pipes, in a bubble whose clock moves only when everybody waits. It
// takes note of when it was dialled.
type stage struct {
	t     *testing.T
	begun time.Time
	// act plays the server's part of one connection: after the upgrade, if upgraded.
	act  func(n int, s *scene)
	over <-chan struct{} // closed when the link has to end

	mu    sync.Mutex
	times []time.Duration
	hosts []string
}

// scene is one connection, seen from the server.
type scene struct {
	net.Conn
	t       *testing.T
	version wire.Version
}

var errAway = errors.New("nobody is there")

func (s *stage) dial(_ context.Context, address string) (net.Conn, error) {
	s.mu.Lock()
	n := len(s.times)
	s.times = append(s.times, time.Since(s.begun))
	s.hosts = append(s.hosts, strings.TrimSuffix(address, ":8142"))
	s.mu.Unlock()
	if s.act == nil {
		return nil, errAway
	}
	here, there := net.Pipe()
	go func() {
		defer func() { _ = there.Close() }()
		if _, err := (gobwas.Upgrader{}).Upgrade(there); err == nil {
			s.act(n, &scene{there, s.t, wire.V2})
		}
	}()
	return here, nil
}

// link runs a Link on a stage for a while, with the longest pauses there can be.
func (s *stage) link(t *testing.T, lasts time.Duration, change func(*connection.Config)) *connection.Link {
	t.Helper()
	s.t, s.begun = t, time.Now()
	c := connection.Config{
		URLs: []string{"ws://one"}, URI: "pcp://web1/agent", Log: quiet, Dial: s.dial,
		Jitter: func(limit time.Duration) time.Duration { return limit },
	}
	if change != nil {
		change(&c)
	}
	link, err := connection.New(c)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	t.Cleanup(cancel)
	s.over = ctx.Done()
	ran := make(chan error, 1)
	go func() { ran <- link.Run(ctx) }()
	t.Cleanup(func() { cancel(); must(t, <-ran) })
	return link
}

// hear reads a frame, unmasked.
func (s *scene) hear() (gobwas.Frame, error) {
	header, err := gobwas.ReadHeader(s)
	if err != nil {
		return gobwas.Frame{}, err
	}
	f := gobwas.Frame{Header: header, Payload: make([]byte, header.Length)}
	_, err = io.ReadFull(s, f.Payload)
	gobwas.Cipher(f.Payload, header.Mask, 0)
	return f, err
}

func (s *scene) say(f gobwas.Frame) { _, _ = s.Write(gobwas.MustCompileFrame(f)) }

func (s *scene) tell(m wire.Message) {
	if m.ID == "" {
		m.ID = "1-1-1-1-1"
	}
	text, err := s.version.Append(nil, m)
	if err != nil {
		s.t.Error(err)
	}
	s.say(gobwas.NewTextFrame(text))
}

// letIn answers the associate request.
func (s *scene) letIn() {
	f, err := s.hear()
	if err != nil {
		return
	}
	m, err := s.version.Decode(f.Payload)
	if err != nil || m.Type != wire.AssociateRequest {
		s.t.Errorf("heard %q first, %v", f.Payload, err)
	}
	s.tell(wire.Message{Type: wire.AssociateResponse, Data: wire.Data(wire.Association{ID: m.ID, Success: true})})
}

// serve answers pings, and farewells, until the connection ends.
func (s *scene) serve() {
	for {
		f, err := s.hear()
		switch {
		case err != nil:
			return
		case f.Header.OpCode == gobwas.OpPing:
			s.say(gobwas.NewPongFrame(f.Payload))
		case f.Header.OpCode == gobwas.OpClose:
			s.say(gobwas.NewCloseFrame(f.Payload))
		}
	}
}

func seconds(times []time.Duration) []int {
	rounded := []int{}
	for _, d := range times {
		rounded = append(rounded, int(d.Round(time.Second)/time.Second))
	}
	return rounded
}

func TestPausesGrow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		urls  []string
		times []int
		hosts string
	}{
		"one server": {[]string{"ws://one"}, []int{0, 4, 12, 20, 28, 36, 44, 52, 60, 68, 76, 84, 92, 100, 108, 116, 124}, "one" + strings.Repeat(" one", 16)},
		"three servers": {
			[]string{"ws://one", "ws://two", "ws://three"},
			[]int{0, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120},
			strings.Repeat("one two three ", 6) + "one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &stage{}
				link := s.link(t, 125*time.Second, func(config *connection.Config) { config.URLs = c.urls })
				<-time.After(125 * time.Second)
				synctest.Wait()
				want(t, seconds(s.times), c.times)
				want(t, strings.Join(s.hosts, " "), c.hosts)
				state := link.State()
				want(t, []any{state.Connected, state.Attempts, state.Problem}, []any{false, len(c.times), errAway.Error()})
			})
		})
	}
}

// However long a server was away: with the longest pauses there can be, its agents are back within 10 s. A server that is there and does not
// answer has too much to do: it is asked ever more seldom.
func TestBackWithinTenSecondsOfAReturn(t *testing.T) {
	t.Parallel()
	for _, away := range []time.Duration{30 * time.Second, 7 * time.Minute, 3 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := &stage{act: func(_ int, scene *scene) { scene.letIn(); scene.serve() }}
			link := s.link(t, 4*time.Hour, func(c *connection.Config) {
				c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
					if time.Since(s.begun) < away {
						return nil, errAway
					}
					return s.dial(ctx, address)
				}
			})
			<-time.After(away + 10*time.Second)
			synctest.Wait()
			want(t, link.State().Connected, true)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := &stage{act: func(_ int, scene *scene) { _ = scene.Close() }}
		s.link(t, 125*time.Second, nil)
		<-time.After(125 * time.Second)
		synctest.Wait()
		want(t, seconds(s.times), []int{0, 4, 12, 28, 60, 92, 124})
	})
}

// A connection that lasted is tried for at the same server; one that did not, at the next. Two
// clients with one certificate so supersede each other ever more slowly.
func TestShortConnectionsCountAsFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lasts := []time.Duration{time.Minute, time.Second, time.Second, time.Second, time.Second, time.Minute, time.Hour}
		s := &stage{act: func(n int, scene *scene) {
			scene.letIn()
			end := time.AfterFunc(lasts[n], func() { _ = scene.Close() })
			defer end.Stop()
			scene.serve()
		}}
		s.link(t, 5*time.Minute, func(c *connection.Config) { c.URLs = []string{"ws://one", "ws://two"} })
		<-time.After(5 * time.Minute)
		synctest.Wait()
		want(t, strings.Join(s.hosts, " "), "one one two one two one one")
		want(t, seconds(s.times), []int{0, 62, 65, 70, 75, 84, 146})
	})
}

func TestRefusalsAreNotRepeatedSoon(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*scene){
		"a farewell": func(s *scene) {
			s.say(gobwas.NewCloseFrame(gobwas.NewCloseFrameBody(4003, "No client certificate.")))
			s.serve()
		},
		"superseded": func(s *scene) {
			s.letIn()
			s.say(gobwas.NewCloseFrame(gobwas.NewCloseFrameBody(4000, "Superseded.")))
			s.serve()
		},
		"an answer": func(s *scene) {
			f, _ := s.hear()
			m, _ := wire.V2.Decode(f.Payload)
			s.tell(wire.Message{Type: wire.AssociateResponse, Data: wire.Data(wire.Association{ID: m.ID, Reason: "Message not authorized."})})
			s.serve()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &stage{act: func(_ int, scene *scene) { act(scene) }}
				link := s.link(t, 100*time.Second, nil)
				<-time.After(100 * time.Second)
				synctest.Wait()
				want(t, seconds(s.times), []int{0, 32, 64, 96})
				if problem := link.State().Problem; !strings.Contains(problem, "4003 No client certificate. (") &&
					!strings.Contains(problem, "another client uses the same certificate") &&
					!strings.Contains(problem, `refuses the association: "Message not authorized."`) {
					t.Errorf("the problem is %q", problem)
				}
			})
		})
	}
}

// A server that never answers anything is noticed: at the upgrade's end, or by its missing pongs.
func TestSilenceIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{act: func(n int, scene *scene) {
			if n > 0 {
				scene.letIn()
			}
			for {
				if _, err := scene.hear(); err != nil {
					return
				}
			}
		}}
		link := s.link(t, 4*time.Minute, nil)
		<-time.After(17 * time.Second)
		synctest.Wait()
		if problem := link.State().Problem; !strings.Contains(problem, "did not answer the association within 15s") {
			t.Errorf("the problem is %q", problem)
		}
		<-time.After(4*time.Minute - 17*time.Second)
		synctest.Wait()
		// 15 s for the first, a pause of 4; then a ping after 60 s, and 20 s without its pong
		want(t, seconds(s.times), []int{0, 19, 19 + 80 + 2, 19 + 2*82})
		want(t, link.State().Lost, 2)
	})
}

func TestPingsKeepAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pings := 0
		s := &stage{act: func(_ int, scene *scene) {
			scene.letIn()
			for {
				f, err := scene.hear()
				switch {
				case err != nil:
					return
				case f.Header.OpCode == gobwas.OpPing:
					pings++
					scene.say(gobwas.NewPongFrame(f.Payload))
				case f.Header.OpCode == gobwas.OpClose:
					scene.say(gobwas.NewCloseFrame(f.Payload))
				}
			}
		}}
		link := s.link(t, time.Hour+time.Second, nil)
		<-time.After(time.Hour)
		synctest.Wait()
		want(t, []any{len(s.times), pings, link.State().Connected}, []any{1, 60, true})
	})
}

// While Receive is at work nothing is read, and that is not taken for silence.
func TestSlowReceiversAreNotSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{act: func(_ int, scene *scene) {
			scene.letIn()
			scene.tell(wire.Message{Type: "x"})
			pongs := make(chan gobwas.Frame, 100) // a pipe has no room: the pong must not hold up the next ping
			defer close(pongs)
			go func() {
				for f := range pongs {
					scene.say(f)
				}
			}()
			for {
				f, err := scene.hear()
				if err != nil {
					return
				}
				if f.Header.OpCode == gobwas.OpPing {
					pongs <- gobwas.NewPongFrame(f.Payload)
				}
			}
		}}
		received := 0
		link := s.link(t, time.Hour, func(c *connection.Config) {
			c.Receive = func(wire.Message) { <-time.After(10 * time.Minute); received++ }
		})
		<-time.After(30 * time.Minute)
		synctest.Wait()
		want(t, []any{len(s.times), received, link.State().Connected}, []any{1, 1, true})
	})
}

// A server that reads nothing fills the queue; then the connection ends, and whoever wrote knows.
func TestAServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		s.act = func(n int, scene *scene) {
			scene.letIn()
			if n > 0 {
				scene.serve()
			}
			<-s.over
		}
		link := s.link(t, 10*time.Minute, func(c *connection.Config) { c.QueueBytes, c.WriteTimeout = 2500, 10*time.Second })
		synctest.Wait()
		data := wire.Data(strings.Repeat("x", 1000))
		results := make(chan error, 3)
		for range 3 {
			go func() { results <- link.Send(wire.Message{Type: "x", Data: data}) }()
			synctest.Wait()
		}
		full := <-results
		if fault.Of(full) != fault.Unavailable || !strings.Contains(full.Error(), "wait to be written") {
			t.Errorf("the third of three, where two fit: %v", full)
		}
		for range 2 {
			if err := <-results; fault.Of(err) != fault.Unavailable {
				t.Errorf("a message that was not written: %v", err)
			}
		}
		<-time.After(5 * time.Minute)
		want(t, link.State().Connected, true)
	})
}

func TestFragmentsAndControlFramesBetween(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := make(chan wire.Message, 2)
		s := &stage{act: func(_ int, scene *scene) {
			scene.letIn()
			text, _ := wire.V2.Append(nil, wire.Message{ID: "1-1-1-1-1", Type: "whole"})
			scene.say(gobwas.NewTextFrame([]byte("no JSON"))) // passed over
			scene.say(gobwas.NewBinaryFrame([]byte("\x01")))  // passed over, too
			scene.say(gobwas.NewFrame(gobwas.OpText, false, text[:5]))
			scene.say(gobwas.NewPingFrame([]byte("still there?")))
			if f, err := scene.hear(); err != nil || f.Header.OpCode != gobwas.OpPong || string(f.Payload) != "still there?" {
				t.Errorf("a ping is answered with %x %q, %v", f.Header.OpCode, f.Payload, err)
			}
			scene.say(gobwas.NewFrame(gobwas.OpContinuation, false, text[5:9]))
			scene.say(gobwas.NewFrame(gobwas.OpContinuation, true, text[9:]))
			scene.say(gobwas.NewFrame(gobwas.OpContinuation, true, nil)) // of nothing
			scene.serve()
		}}
		link := s.link(t, time.Minute, func(c *connection.Config) { c.Receive = func(m wire.Message) { got <- m } })
		want(t, (<-got).Type, "whole")
		synctest.Wait()
		if problem := link.State().Problem; !strings.Contains(problem, "breaks the websocket protocol") {
			t.Errorf("the problem is %q", problem)
		}
	})
}

func TestWhatIsNoWebsocket(t *testing.T) {
	t.Parallel()
	for answer, problem := range map[string]string{
		"HTTP/1.1 404 Not Found\r\n\r\n":   "does not know /pcp2/agent (404)",
		"HTTP/1.1 502 Bad Gateway\r\n\r\n": "with 502 Bad Gateway instead of a websocket",
		"SSH-2.0-OpenSSH_9.2\r\n":          "malformed",
		"":                                 "closed the connection without an answer",
		"HTTP/1.1 101 X\r\n" + strings.Repeat("a: b\r\n", 20_000): "closed the connection without an answer", // that is, not read to its end
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &stage{}
			link := s.link(t, time.Second, func(c *connection.Config) {
				c.Dial = func(context.Context, string) (net.Conn, error) {
					here, there := net.Pipe()
					go func() {
						_, _ = there.Read(make([]byte, 4096))
						_, _ = io.WriteString(there, answer)
						_ = there.Close()
					}()
					return here, nil
				}
			})
			synctest.Wait()
			if got := link.State().Problem; !strings.Contains(got, problem) {
				t.Errorf("%.20q: the problem is %q, want %q", answer, got, problem)
			}
		})
	}
}
