package tls_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"testing"

	"github.com/tutti-project/tutti/internal/pki/pkitest"
	tuttitls "github.com/tutti-project/tutti/internal/protocol/tls"
)

// parkable is what a protocol finds below the TLS of a connection.
type parkable interface {
	OnClose(hook func())
}

// takeOver hands out the connections that clients of a house take over from HTTP.
func takeOver(t *testing.T) (*house, chan net.Conn) {
	t.Helper()
	taken := make(chan net.Conn, 1)
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	return openOn(t, inner, tuttitls.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, "taken over")
		taken <- conn
	}), taken
}

func TestOnCloseTellsOfARevocation(t *testing.T) {
	t.Parallel()
	h, taken := takeOver(t)
	h.dial(t, pkitest.Enrol(t, h.ca, "web1", nil))
	conn := <-taken
	closed := make(chan string, 4)
	below := conn.(*tls.Conn).NetConn().(parkable)
	below.OnClose(func() { closed <- "replaced" })
	below.OnClose(func() { closed <- "revoked" })
	must(t, h.ca.Revoke(t.Context(), "web1"))
	if got := <-closed; got != "revoked" {
		t.Errorf("the hook that was called: %s", got)
	}
	below.OnClose(func() { closed <- "late" })
	if got := <-closed; got != "late" {
		t.Errorf("a hook after the end: %s", got)
	}
	_ = conn.Close()
	if len(closed) > 0 {
		t.Errorf("a hook was called again: %s", <-closed)
	}
}

func TestReadsThatDoNotWait(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // connections are parked on Linux only
	}
	h, taken := takeOver(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		cert := pkitest.Enrol(t, h.ca, "web"+tls.VersionName(version)[4:5]+tls.VersionName(version)[6:], nil)
		client := h.dialVersion(t, cert, version)
		conn := <-taken
		must(t, conn.(*tls.Conn).NetConn().(interface{ ReadWhatIsThere() error }).ReadWhatIsThere())
		read := func() (string, error) {
			var p [100]byte
			n, err := conn.Read(p[:])
			return string(p[:n]), err
		}
		for _, text := range []string{"one", "two"} {
			if got, err := read(); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("with nothing there: %q, %v", got, err)
			}
			_, err := io.WriteString(client, text)
			must(t, err)
			got, err := read()
			for errors.Is(err, os.ErrDeadlineExceeded) { // it is on its way
				runtime.Gosched()
				got, err = read()
			}
			if got != text || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		}
		must(t, client.Close())
		_, err := read()
		for errors.Is(err, os.ErrDeadlineExceeded) {
			runtime.Gosched()
			_, err = read()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v", err)
		}
		_ = conn.Close()
	}
}
