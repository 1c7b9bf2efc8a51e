package tls_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/pki/pkitest"
	tuttitls "github.com/tutti-project/tutti/internal/protocol/tls"
)

// connect opens a connection and asks once, so that its handshake is over; nil: it was refused.
func (h *house) connect(t *testing.T, certs ...tls.Certificate) *tls.Conn {
	t.Helper()
	raw, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.addr)
	must(t, err)
	conn := tls.Client(raw, &tls.Config{RootCAs: h.ca.Pool(), ServerName: "127.0.0.1", Certificates: certs})
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	if conn.HandshakeContext(t.Context()) != nil {
		return nil
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return nil
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // TLS 1.3 tells of a refusal here
		return nil
	}
	return conn
}

// again connects until it is taken: the server sees a little later that another connection ended.
func (h *house) again(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		if h.connect(t) != nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no connection is taken although another one ended")
		}
	}
}

func TestConnectionsOfAnAddressAreLimited(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{Limits: tuttitls.Limits{PerAddress: 2}})
	first, second := h.connect(t), h.connect(t)
	if first == nil || second == nil {
		t.Fatal("connections within the limit are refused")
	}
	if h.connect(t) != nil {
		t.Error("a third connection of an address that may have two")
	}
	must(t, first.Close())
	h.again(t)
}

func TestConnectionsWithoutACertificateAreLimited(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]tuttitls.Limits{"in all": {Anonymous: 1}, "from one address": {AnonymousPerAddress: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, tuttitls.Config{Limits: limits})
			stranger := h.connect(t)
			if stranger == nil {
				t.Fatal("the first one is refused")
			}
			if h.connect(t) != nil {
				t.Error("a second connection without a certificate")
			}
			node := pkitest.Enrol(t, h.ca, "web-1.example", pkitest.NewKey(t))
			for range 3 {
				if h.connect(t, node) == nil {
					t.Error("a node is refused because of strangers")
				}
			}
			must(t, stranger.Close())
			h.again(t)
		})
	}
}

func TestExemptNetworksHaveNoLimits(t *testing.T) {
	t.Parallel()
	h := open(t, tuttitls.Config{Limits: tuttitls.Limits{
		PerAddress: 1, Anonymous: 1, AnonymousPerAddress: 1, Exempt: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}})
	for range 3 {
		if h.connect(t) == nil {
			t.Error("an exempt address is refused")
		}
	}
}
