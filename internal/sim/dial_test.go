package sim

import (
	"net"
	"testing"
)

func TestFromManyAddresses(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	dial, seen := FromManyAddresses(), map[string]int{}
	for range 2 * sources {
		conn, err := dial(t.Context(), listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		host, _, _ := net.SplitHostPort(conn.LocalAddr().String())
		seen[host]++
		_ = conn.Close()
	}
	if len(seen) != sources {
		t.Errorf("connections came from %v", seen)
	}
}
