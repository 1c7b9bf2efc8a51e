package tls_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/tutti-project/tutti/internal/pki/pkitest"
	tuttitls "github.com/tutti-project/tutti/internal/protocol/tls"
)

// slim is what a connection can let go of.
type slim interface {
	net.Conn
	ForgetPeer()
	ForgetBuffers()
}

// TestAConnectionIsSlim talks over connections that let go of what they do not need, after every
// word. It fails when crypto/tls is not what slim.go expects, as a new version of Go may bring.
func TestAConnectionIsSlim(t *testing.T) {
	t.Parallel()
	h, taken := takeOver(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		client := h.dialVersion(t, pkitest.Enrol(t, h.ca, "slim"+string(rune('0'+version&0xf)), nil), version)
		conn := (<-taken).(*tls.Conn)
		below := conn.NetConn().(slim)
		if peers := conn.ConnectionState().PeerCertificates; len(peers) != 1 {
			t.Fatalf("%d certificates of the peer", len(peers))
		}
		below.ForgetPeer()
		if state := conn.ConnectionState(); state.PeerCertificates != nil || state.VerifiedChains != nil {
			t.Error("the certificate is still there")
		}
		for _, size := range []int{1, 100, 16 << 10, 100_000, 1} {
			below.ForgetBuffers()
			if got := tuttitls.BufferBytes(below); got != 0 {
				t.Errorf("%s: an idle connection has %d bytes of buffers", tls.VersionName(version), got)
			}
			exchange(t, client, conn, bytes.Repeat([]byte{'x'}, size))
			if tuttitls.BufferBytes(below) == 0 {
				t.Errorf("%s: nothing was buffered: this test looks at the wrong fields", tls.VersionName(version))
			}
		}
		below.ForgetBuffers()
		must(t, client.Close())
		if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %d bytes, %v", n, err)
		}
		_ = conn.Close()
	}
}

// exchange sends a text there and back, and reads it in small pieces: while something is left in the buffers, they stay.
func exchange(t *testing.T, client io.ReadWriter, conn *tls.Conn, text []byte) {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		_, err := client.Write(text)
		sent <- err
	}()
	got := make([]byte, len(text))
	for at := 0; at < len(got); {
		n, err := conn.Read(got[at:min(at+5000, len(got))])
		must(t, err)
		at += n
		if at < len(got) {
			conn.NetConn().(slim).ForgetBuffers()
		}
	}
	must(t, <-sent)
	go func() {
		_, err := conn.Write(got)
		sent <- err
	}()
	back := make([]byte, len(text))
	_, err := io.ReadFull(client, back)
	must(t, errors.Join(err, <-sent))
	if !bytes.Equal(back, text) {
		t.Errorf("%d bytes came back changed", len(text))
	}
}
