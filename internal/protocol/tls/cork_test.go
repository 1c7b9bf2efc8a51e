package tls_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/tutti-project/tutti/internal/pki/pkitest"
	tuttitls "github.com/tutti-project/tutti/internal/protocol/tls"
)

// counted is a listener that counts the writes of its connections.
type counted struct {
	net.Listener
	writes atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	return &countedConn{raw, l}, err
}

type countedConn struct {
	net.Conn
	listener *counted
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.listener.writes.Add(1)
	return c.Conn.Write(p)
}

// parcel is a body of n bytes.
func parcel(n int) []byte { return bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n] }

// parcels answers /N with N bytes, written whole.
func parcels(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.URL.Path[1:])
	if err != nil {
		http.Error(w, "no number", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(n))
	if sent, err := tuttitls.WriteWhole(w, r, parcel(n)); sent != n || err != nil {
		panic(fmt.Sprintf("WriteWhole gave %d, %v", sent, err))
	}
}

func openCounted(t *testing.T) (*house, *counted) {
	t.Helper()
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	l := &counted{Listener: inner}
	return openOn(t, l, tuttitls.Config{}, parcels), l
}

// fetch asks for n bytes and compares them.
func (h *house) fetch(t *testing.T, c *http.Client, n int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://%s/%d", h.addr, n), nil)
	must(t, err)
	resp, err := c.Do(r)
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(got, parcel(n)) {
		t.Errorf("%d bytes: got %d, %v", n, len(got), err)
	}
}

func TestAWholeAnswerIsOneWrite(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		h, l := openCounted(t)
		c := client(t, h.ca, func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }, pkitest.Enrol(t, h.ca, "web1", nil))
		h.fetch(t, c, 1)
		for _, n := range []int{0, 100, 4000, 4096, 10_000, 64 << 10} {
			before := l.writes.Load()
			h.fetch(t, c, n)
			if writes := l.writes.Load() - before; writes != 1 {
				t.Errorf("%s: an answer of %d bytes took %d writes", tls.VersionName(version), n, writes)
			}
		}
		for _, n := range []int{72 << 10, 72<<10 + 1, 80 << 10, 1 << 20, 10} { // too large for one, and on after it
			h.fetch(t, c, n)
		}
	}
}

func TestWholeAnswersOverHTTP2(t *testing.T) {
	t.Parallel()
	h, _ := openCounted(t)
	c := client(t, h.ca, nil, pkitest.Enrol(t, h.ca, "web1", nil))
	c.Transport.(*http.Transport).Protocols.SetHTTP2(true)
	for _, n := range []int{0, 100, 10_000, 1 << 20} {
		h.fetch(t, c, n)
	}
}

// TestPipelinedAnswersKeepTheirOrder asks for everything before it reads.
func TestPipelinedAnswersKeepTheirOrder(t *testing.T) {
	t.Parallel()
	h, _ := openCounted(t)
	d := &tls.Dialer{Config: &tls.Config{RootCAs: h.ca.Pool()}}
	conn, err := d.DialContext(t.Context(), "tcp", h.addr)
	must(t, err)
	defer func() { _ = conn.Close() }()
	sizes := []int{10_000, 5, 100_000, 70_000, 0, 4096}
	var ask, want bytes.Buffer
	for i, n := range sizes {
		last := ""
		if i == len(sizes)-1 {
			last = "Connection: close\r\n"
		}
		_, _ = fmt.Fprintf(&ask, "GET /%d HTTP/1.1\r\nHost: x\r\n%s\r\n", n, last)
		want.Write(parcel(n))
	}
	_, err = conn.Write(ask.Bytes())
	must(t, err)
	got, err := io.ReadAll(conn)
	must(t, err)
	if n := bytes.Count(got, []byte("200 OK")); n != len(sizes) {
		t.Errorf("%d answers", n)
	}
	for i, head := range bytes.Split(got, []byte("HTTP/1.1 200 OK"))[1:] {
		if _, body, _ := bytes.Cut(head, []byte("\r\n\r\n")); !bytes.Equal(body, parcel(sizes[i])) {
			t.Errorf("answer %d has %d bytes, want %d", i, len(body), sizes[i])
		}
	}
}
