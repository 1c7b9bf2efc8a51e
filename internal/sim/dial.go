package sim

import (
	"context"
	"net"
	"sync/atomic"
)

// sources is how many loopback addresses connections are spread over.
const sources = 8

// FromManyAddresses dials a server on loopback from one address after the other: a single one has too few ports
// for ten thousand connections and those that linger.
func FromManyAddresses() func(ctx context.Context, address string) (net.Conn, error) {
	var dialed atomic.Int64
	return func(ctx context.Context, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		from := net.IPv4(127, 0, 0, byte(2+dialed.Add(1)%sources)) //nolint:gosec // below ten
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
		return dialer.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", port))
	}
}
