package front

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

	"github.com/tutti-project/tutti/api"
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

// The settings of a front here.
const (
	testBudget   = 64 << 20
	testBodyTime = 5 * time.Minute
)

// config is what a front here works with.
func config(log *slog.Logger) Config {
	access := new(atomic.Bool)
	access.Store(true)
	return Config{
		Log: log, Access: access, Count: func(string, int, time.Duration) {}, Bodies: NewBudget(testBudget), BodyTime: testBodyTime,
		HSTS: func() time.Duration { return 365 * 24 * time.Hour }, Programs: []string{"/puppet/", "/node/v1/"},
		ComesBack: func(*http.Request) bool { return true }, Problem: func(_ string, p api.Problem) any { return p },
	}
}

// dial serves next behind a front, and returns a connection to it. Call it in a
// synctest bubble.
func dial(t *testing.T, next http.HandlerFunc, log *slog.Logger) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	l := once{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conn <- there
	server := &http.Server{Handler: New(config(log), Route{Handler: next, Bytes: 1 << 20}), ReadHeaderTimeout: time.Minute}
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
			case <-time.After(3 * testBodyTime):
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
