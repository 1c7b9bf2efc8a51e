package websocket_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	gobwas "github.com/gobwas/ws"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/protocol/websocket"
	"github.com/tutti-project/tutti/internal/wire"
)

func TestTheEnd(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(nil)
		nodes := map[string]*client{}
		for _, name := range []string{"web1", "web2", "web3"} {
			nodes[name] = h.agent(t, name)
		}
		await(t, "all are there", func() bool { return h.broker.Stats().Connected == 3 })
		must(t, h.broker.Send(t.Context(), wire.Message{Type: "last", Target: "pcp://web1/agent"}))
		ended := make(chan struct{})
		go func() { h.stop(); close(ended) }()
		want(t, nodes["web1"].hear().Type, "last")
		for _, c := range nodes {
			want(t, c.farewell(), broker.Stopping)
		}
		<-ended
	})
}

// Who is connected to a server that is emptied is told to go, not all at once, and nobody comes in meanwhile.
func TestAServerIsEmptiedInSlices(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(nil)
		var clients []*client
		for i := range 6 {
			clients = append(clients, h.agent(t, fmt.Sprint("web", i)))
		}
		await(t, "all are there", func() bool { return h.broker.Stats().Connected == 6 })
		late := h.enrol(t, "late")
		began, shed := time.Now(), make(chan struct{})
		go func() { defer close(shed); h.sockets.Shed(t.Context(), 3*websocket.ShedEvery) }()
		var told sync.WaitGroup
		var times [6]time.Duration
		for i, c := range clients {
			told.Go(func() {
				want(t, c.farewell(), broker.Stopping)
				times[i] = time.Since(began)
			})
		}
		told.Wait()
		<-shed
		if slices.Sort(times[:]); times[5]-times[0] < websocket.ShedEvery {
			t.Errorf("they were told after %v", times)
		}
		dialer := gobwas.Dialer{TLSConfig: h.config(late), Timeout: patience}
		_, _, _, err := dialer.Dial(t.Context(), "wss://"+h.addr+"/pcp2/agent")
		if status := gobwas.StatusError(0); !errors.As(err, &status) || int(status) != http.StatusServiceUnavailable {
			t.Errorf("a late one is told: %v", err)
		}
		await(t, "nobody is there", func() bool { return h.broker.Stats().Connected == 0 })
	})
}

// TestClientsThatComeAtTheEnd: who comes while the server ends is told so or refused, and holds nothing up.
func TestClientsThatComeAtTheEnd(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		h := w.open(nil)
		dialer := gobwas.Dialer{TLSConfig: h.config(h.enrol(t, "web1")), Timeout: patience}
		var clients sync.WaitGroup
		came := make(chan struct{}, 1)
		for range 4 {
			clients.Go(func() {
				for t.Context().Err() == nil {
					conn, _, _, err := dialer.Dial(t.Context(), "wss://"+h.addr+"/pcp2/agent")
					if err != nil {
						return // it listens no more
					}
					select {
					case came <- struct{}{}:
					default:
					}
					_, _ = conn.Read(make([]byte, 1)) // the farewell, of this server or of a later connection of the same name
					_ = conn.Close()
				}
			})
		}
		<-came
		h.stop()
		clients.Wait()
	})
}

// TestClientsThatDoNotGoAreDropped: a peer that does not answer a close frame does not hold up the end.
func TestClientsThatDoNotGoAreDropped(t *testing.T) {
	everyWay(t, func(w way) {
		t := w.T
		for limit := 50 * time.Millisecond; ; limit *= 2 {
			h := w.open(func(s *settings) { s.ws.CloseTimeout = limit })
			node := h.agent(t, "web1")
			await(t, "it is there", func() bool { return h.broker.Stats().Connected == 1 })
			h.stop()
			f, err := node.frame()
			if err != nil && limit < time.Minute { // the machine stood still, and the time was over before the close frame was out
				continue
			}
			must(t, err)
			want(t, f.Header.OpCode, gobwas.OpClose)
			node.gone()
			return
		}
	})
}
