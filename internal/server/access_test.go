package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// once is a listener of one connection.
type once struct {
	net.Listener
	conn   chan net.Conn
	closed chan struct{}
}

func (l once) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conn:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l once) Close() error   { close(l.closed); return nil }
func (l once) Addr() net.Addr { return &net.TCPAddr{} }

// testFront is a front before next, as a server with default settings has it.
func testFront(next http.Handler, log *slog.Logger, access *atomic.Bool) front {
	c := Default()
	return front{
		next: next, log: log, metrics: newMetrics(), access: access, bodies: newBudget(c.BodyBudgetBytes), bodyTime: c.BodyTimeout,
		hsts: func() time.Duration { return c.HSTSMaxAge },
	}
}

// dial serves next behind a front, and returns a connection to it. Call it in a
// synctest bubble.
func dial(t *testing.T, next http.HandlerFunc, log *slog.Logger) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	l := once{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conn <- there
	access := new(atomic.Bool)
	access.Store(true)
	server := &http.Server{Handler: testFront(route{Handler: next, bytes: 1 << 20}, log, access), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() {
		_ = here.Close()
		_ = server.Shutdown(context.WithoutCancel(t.Context()))
		synctest.Wait()
	})
	return here
}

func TestABodyThatNeverComesIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		conn := dial(t, func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			ended <- err
		}, slog.New(slog.DiscardHandler))
		_, _ = io.WriteString(conn, "PUT /puppet-ca/v1/certificate_request/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
		start := time.Now()
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want a deadline", err)
		}
		if took := time.Since(start); took != strangerTime {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAHandlerMayTakeLongerThanItsBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := dial(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			select {
			case <-r.Context().Done():
				w.WriteHeader(http.StatusTeapot)
			case <-time.After(3 * Default().BodyTimeout):
			}
		}, slog.New(slog.DiscardHandler))
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nfull")
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("got %v, %v", answer, err)
		}
		_ = answer.Body.Close()
	})
}

func TestAPanicBreaksOffAnAnswerThatHasBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		conn := dial(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic("a mistake")
		}, slog.New(slog.NewTextHandler(&log, nil)))
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		if text, err := io.ReadAll(answer.Body); err == nil {
			t.Errorf("the half answer %q looks whole", text)
		}
		synctest.Wait()
		if text := log.String(); !strings.Contains(text, "a mistake") || !strings.Contains(text, "msg=request") {
			t.Errorf("the log lacks the panic or the request: %s", text)
		}
	})
}

func TestAWholeBodyIsKnown(t *testing.T) {
	t.Parallel()
	large := make([]byte, 10_000)
	for name, c := range map[string]struct {
		length string
		before int64
		body   []byte
		want   bool
	}{
		"all of it":              {length: "10000", body: large, want: true},
		"no length":              {body: large},
		"a part":                 {length: "20000", body: large},
		"the rest":               {length: "10000", before: 10_000, body: large},
		"small: buffered anyway": {length: "100", body: large[:100]},
	} {
		a := &answer{ResponseWriter: httptest.NewRecorder(), bytes: c.before}
		if c.length != "" {
			a.Header().Set("Content-Length", c.length)
		}
		if got := a.isWhole(c.body); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestMetricsAreKeptByRouteAndStatus(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	for range 2 {
		m.request("/a/", http.StatusOK, time.Second)
		m.request("/a/", http.StatusNotFound, time.Second)
		m.request("/b/", http.StatusOK, time.Second)
	}
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{`{route="/a/",status="200"} 2`, `{route="/a/",status="404"} 2`, `{route="/b/",status="200"} 2`} {
		if line := "tutti_http_request_seconds_count" + want; !strings.Contains(w.Body.String(), line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}
