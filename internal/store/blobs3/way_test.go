package blobs3_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/tutti-project/tutti/internal/store/blobs3/blobs3test"
)

// way is the network between a server and its store. It can be cut after some bytes.
type way struct {
	endpoint string
	listener net.Listener
	to       string

	mu       sync.Mutex
	conns    []net.Conn
	left     int64 // to the store, until act; 0: no end
	leftBack int64
	act      func()
	acted    bool
	silent   bool
	isCut    bool
}

func newWay(t *testing.T, server *blobs3test.Server) *way {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{listener: l, endpoint: "http://" + l.Addr().String(), to: strings.TrimPrefix(server.Endpoint, "http://")}
	t.Cleanup(func() { _ = l.Close(); w.cut() })
	go w.serve()
	return w
}

func (w *way) serve() {
	for {
		conn, err := w.listener.Accept()
		if err != nil {
			return
		}
		there, err := new(net.Dialer).DialContext(context.Background(), "tcp", w.to)
		if err != nil {
			_ = conn.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, conn, there)
		refuse := w.isCut
		w.mu.Unlock()
		if refuse {
			w.closeAll()
		}
		go w.pass(there, conn, false)
		go w.pass(conn, there, true)
	}
}

func (w *way) pass(to, from net.Conn, back bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if w.counts(int64(n), back) {
			w.act()
		}
		if !w.isSilent() {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (w *way) counts(n int64, back bool) (now bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := &w.left
	if back {
		left = &w.leftBack
	}
	if *left == 0 {
		return false
	}
	if *left -= n; *left > 0 {
		return false
	}
	*left, w.acted = 0, true
	return true
}

func (w *way) isSilent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.silent
}

// after acts when so many bytes went to the store, back when so many came from it.
func (w *way) after(bytes int64, act func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.act, w.acted = bytes, act, false
}

func (w *way) back(bytes int64, act func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leftBack, w.act, w.acted = bytes, act, false
}

func (w *way) wasCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acted
}

func (w *way) cut() {
	w.mu.Lock()
	w.isCut = true
	w.mu.Unlock()
	w.closeAll()
}

func (w *way) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = nil
}

func (w *way) hush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = true
}

func (w *way) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut, w.silent, w.left, w.leftBack = false, false, 0, 0
}
