package load

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func serve(t *testing.T, handler http.HandlerFunc) *Conn {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.MinVersion = tls.VersionTLS12
	conn, err := NewConn(server.URL, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func TestConnKeepsItsConnection(t *testing.T) {
	t.Parallel()
	conn := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body) // chunked, once it is large enough
	})
	for _, size := range []int{0, 10, 200 << 10} {
		r := Request{Method: http.MethodPut, Path: "/x?y=1", Body: make([]byte, size)}
		response, err := conn.Discard(t.Context(), r)
		if err := Expect(r, response, err, http.StatusOK); err != nil {
			t.Fatal(err)
		}
		if response.BodyBytes != int64(size) || response.Body != nil {
			t.Errorf("size %d: got %d bytes, body %v", size, response.BodyBytes, response.Body != nil)
		}
	}
	if conn.Dials != 1 || conn.Cipher == 0 {
		t.Errorf("dials = %d, cipher = %d", conn.Dials, conn.Cipher)
	}
}

func TestConnOpensAgainAfterServerClosed(t *testing.T) {
	t.Parallel()
	conn := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/close" {
			w.Header().Set("Connection", "close")
		}
	})
	for _, path := range []string{"/close", "/a", "/a"} {
		if _, err := conn.Discard(t.Context(), Request{Path: path}); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.conn.Close() // as if the peer had hung up on an idle connection
	if _, err := conn.Discard(t.Context(), Request{Path: "/a"}); err != nil {
		t.Fatal(err)
	}
	if conn.Dials != 3 {
		t.Errorf("dials = %d, want 3", conn.Dials)
	}
}

func TestFetchUnpacks(t *testing.T) {
	t.Parallel()
	conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write([]byte(strings.Repeat("a", 1000)))
		_ = z.Close()
	})
	response, err := conn.Fetch(t.Context(), Request{Path: "/"})
	if err != nil || len(response.Body) != 1000 || response.BodyBytes >= 1000 {
		t.Errorf("body %d bytes, wire %d, err %v", len(response.Body), response.BodyBytes, err)
	}
}

func TestPatientComesBack(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	response, err := conn.Patient(t.Context(), Request{Path: "/"})
	if err != nil || response.Status != http.StatusOK || calls.Load() != 2 {
		t.Errorf("status %d after %d calls, err %v", response.Status, calls.Load(), err)
	}
}

func TestExpectNamesTheRequest(t *testing.T) {
	t.Parallel()
	conn := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "nothing here", http.StatusNotFound) })
	r := Request{Path: "/lost"}
	response, err := conn.Discard(t.Context(), r)
	err = Expect(r, response, err, http.StatusOK)
	var status *StatusError
	if !errors.As(err, &status) || status.Status != 404 || !strings.Contains(err.Error(), "GET /lost") || !strings.Contains(err.Error(), "nothing here") {
		t.Errorf("err = %v", err)
	}
}

func TestRunMakesExactlyTotal(t *testing.T) {
	t.Parallel()
	var seen [100]atomic.Int64
	result, err := Run(t.Context(), Plan{Workers: 7, Total: 100}, func(_ context.Context, _, i int) error {
		seen[i].Add(1)
		return nil
	})
	if err != nil || len(result.Latencies) != 100 {
		t.Fatalf("%d requests, err %v", len(result.Latencies), err)
	}
	for i := range seen {
		if seen[i].Load() != 1 {
			t.Errorf("request %d made %d times", i, seen[i].Load())
		}
	}
}

func TestRunEndsInTimeAndOnError(t *testing.T) {
	t.Parallel()
	short, err := Run(t.Context(), Plan{Workers: 2, For: time.Nanosecond}, func(context.Context, int, int) error { return nil })
	if err != nil || len(short.Latencies) != 2 {
		t.Errorf("%d requests, err %v", len(short.Latencies), err)
	}
	broken := errors.New("broken")
	result, err := Run(t.Context(), Plan{Workers: 2, Total: 1000}, func(_ context.Context, _, i int) error {
		if i == 5 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || len(result.Latencies) >= 1000 {
		t.Errorf("%d requests, err %v", len(result.Latencies), err)
	}
}
