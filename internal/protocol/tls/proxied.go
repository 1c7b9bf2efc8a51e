package tls

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/pires/go-proxyproto"
)

// A load balancer that passes TCP on has every connection come from its own address. With the PROXY protocol it says, in a few bytes before
// TLS, whose connection it is. Those bytes prove nothing: they are believed from addresses that the operator named, and from nobody
// else. From there they have to come: through a load balancer that sends none, a client could send them itself and say whatever it likes.
// As all other clients are refused then, that is noticed.

const (
	// proxyFixed is the part of a header that has the same length in all.
	proxyFixed = 16
	// proxyMost is the most that may follow: addresses need 216 bytes at most, the rest is what load balancers know besides.
	proxyMost = 2 << 10
)

var (
	errNoProxyHeader  = errors.New("no PROXY header (version 2) came from an address that proxy_protocol_from names")
	errProxyUnasked   = errors.New("a PROXY header came from an address that proxy_protocol_from does not name")
	errTooManyFromOne = errors.New("too many from one address (max_connections_per_address)")
)

// proxied is what is known of a connection that a load balancer passes on.
type proxied struct {
	once   sync.Once
	client net.Addr // whose it is; set by once
	err    error    // why it is refused; set by once
}

// passesOn tells whether an address is that of a load balancer.
func (f *Front) passesOn(remote net.Addr) bool {
	if len(f.cfg.ProxiedFrom) == 0 {
		return false
	}
	from, err := netip.ParseAddrPort(remote.String())
	if err != nil { // no network
		return false
	}
	address := from.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(f.cfg.ProxiedFrom, func(network netip.Prefix) bool { return network.Contains(address) })
}

// RemoteAddr is the client's address. Of a connection that is passed on it is known when the header has come: this waits for it, as long as a
// handshake may take.
func (c *conn) RemoteAddr() net.Addr {
	if c.proxied == nil {
		return c.Conn.RemoteAddr()
	}
	_ = c.introduce()
	return c.proxied.client
}

// introduce reads whose connection this is, once, and counts it for that address.
func (c *conn) introduce() error {
	p := c.proxied
	p.once.Do(func() {
		p.client = c.Conn.RemoteAddr()
		client, err := readProxyHeader(c.Conn)
		if err != nil {
			if p.err = err; !errors.Is(err, io.EOF) { // it was only looked whether somebody is here
				c.front.tellRefused(p.client, err.Error())
			}
			return
		}
		if client != nil {
			p.client = client
		}
		if address, counted := c.front.crowd.countedAs(p.client); counted && !c.front.crowd.enterLate(&c.place, address) {
			p.err = errTooManyFromOne
			c.front.tellRefused(p.client, p.err.Error())
		}
	})
	return p.err
}

// readProxyHeader reads a header of version 2 and not a byte more; nil: the load balancer speaks for itself, as when it looks whether we are
// here. The error is io.EOF if nothing came at all.
func readProxyHeader(r io.Reader) (net.Addr, error) {
	head := make([]byte, proxyFixed)
	switch n, err := io.ReadFull(r, head); {
	case n == 0 && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)): // many a health check ends with a reset
		return nil, io.EOF
	case err != nil || !bytes.HasPrefix(head, proxyproto.SIGV2):
		return nil, errNoProxyHeader
	}
	length := int(binary.BigEndian.Uint16(head[proxyFixed-2:]))
	if length > proxyMost {
		return nil, fmt.Errorf("a PROXY header of %d bytes, more than %d", length, proxyMost)
	}
	head = append(head, make([]byte, length)...)
	if _, err := io.ReadFull(r, head[proxyFixed:]); err != nil {
		return nil, errNoProxyHeader
	}
	header, err := proxyproto.Read(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		return nil, fmt.Errorf("a PROXY header that cannot be read: %w", err)
	}
	client, ok := header.SourceAddr.(*net.TCPAddr)
	if !ok || header.Command.IsLocal() {
		return nil, nil //nolint:nilnil // it names nobody
	}
	return client, nil
}

// saysProxy tells whether what a client sends first is a PROXY header, of either version.
func saysProxy(first []byte) bool {
	return bytes.HasPrefix(first, proxyproto.SIGV2) || bytes.HasPrefix(first, append(slices.Clip(proxyproto.SIGV1), ' '))
}
