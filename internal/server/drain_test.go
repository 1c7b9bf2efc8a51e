package server

import (
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener accepts what is put into it.
type pipeListener chan net.Conn

func (l pipeListener) Accept() (net.Conn, error) {
	if c, is := <-l; is {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l pipeListener) Close() error { close(l); return nil }
func (pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// A server that stops takes no more requests of agents, however long a browser's request goes on.
func TestAgentsAreNotTakenWhileBrowsersFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		serve := func(s *http.Server) (socket pipeListener, ended <-chan time.Time) {
			at := make(chan time.Time, 1)
			socket = make(pipeListener, 1)
			go func() {
				_ = s.Serve(socket)
				at <- time.Now()
			}()
			return socket, at
		}
		agents := &http.Server{ReadHeaderTimeout: time.Minute}
		_, refuses := serve(agents)
		browsers := &http.Server{
			ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		}
		socket, _ := serve(browsers)
		theirs, ours := net.Pipe()
		socket <- ours
		if _, err := theirs.Write([]byte("GET / HTTP/1.1\r\nHost: tutti.test\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the browser's request is open
		d := &openListeners{server: agents}
		d.console.Store(&consoleListener{server: browsers})
		began := time.Now()
		d.drain(20*time.Second, slog.New(slog.DiscardHandler))
		if waited := (<-refuses).Sub(began); waited != 0 {
			t.Errorf("requests of agents were taken for %s after the stop", waited)
		}
		if given := time.Since(began); given != 20*time.Second {
			t.Errorf("the browser's request was given %s, not 20 s", given)
		}
	})
}
