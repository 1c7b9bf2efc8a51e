package tls

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limits bounds connections besides MaxConnections. A zero means none.
type Limits struct {
	PerAddress          int // from one address
	Anonymous           int // without a client certificate
	AnonymousPerAddress int
	// Exempt are networks for which these limits do not hold: this machine, load balancers.
	Exempt []netip.Prefix
}

// errTooMany refuses a handshake without a certificate.
var errTooMany = errors.New("too many connections without a client certificate are open (max_anonymous_connections, max_anonymous_per_address)")

// crowd counts connections. A connection is counted from its beginning, and as anonymous from the end of
// a handshake without a certificate: before, nobody knows, and a fleet may come all at once.
type crowd struct {
	limits Limits

	mu        sync.Mutex
	all       map[netip.Addr]int
	anonymous map[netip.Addr]int
	strangers int
	toldAt    time.Time // that somebody was refused
	untold    int
}

func newCrowd(limits Limits) *crowd {
	return &crowd{limits: limits, all: map[netip.Addr]int{}, anonymous: map[netip.Addr]int{}}
}

// countedAs is the address that a connection counts for; ok is false for those that are exempt.
func (c *crowd) countedAs(remote net.Addr) (address netip.Addr, ok bool) {
	from, err := netip.ParseAddrPort(remote.String())
	if err != nil { // no network
		return address, false
	}
	address = from.Addr().Unmap().WithZone("")
	if slices.ContainsFunc(c.limits.Exempt, func(network netip.Prefix) bool { return network.Contains(address) }) {
		return address, false
	}
	if address.Is6() { // who has one address of a network has all of them
		network, _ := address.Prefix(64) // every IPv6 address has one
		address = network.Addr()
	}
	return address, true
}

// enter counts a connection, unless its address has too many.
func (c *crowd) enter(address netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limits.PerAddress > 0 && c.all[address] >= c.limits.PerAddress {
		return false
	}
	c.all[address]++
	return true
}

// enterLate counts a connection whose client became known after it was accepted.
func (c *crowd) enterLate(p *place, address netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.left { // its time was up meanwhile
		return true
	}
	if c.limits.PerAddress > 0 && c.all[address] >= c.limits.PerAddress {
		return false
	}
	p.address, p.counted = address, true
	c.all[address]++
	return true
}

// place is how a connection is counted. It is guarded by the crowd's mutex.
type place struct {
	address   netip.Addr
	counted   bool
	anonymous bool
	left      bool
}

// enterAnonymous counts a connection whose handshake showed no certificate.
func (c *crowd) enterAnonymous(p *place) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	address := p.address
	if !p.counted || p.left { // its time was up meanwhile
		return true
	}
	if c.limits.Anonymous > 0 && c.strangers >= c.limits.Anonymous ||
		c.limits.AnonymousPerAddress > 0 && c.anonymous[address] >= c.limits.AnonymousPerAddress {
		return false
	}
	p.anonymous = true
	c.strangers++
	c.anonymous[address]++
	return true
}

// leave ends what enter, and enterAnonymous, counted.
func (c *crowd) leave(p *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.left = true
	if !p.counted {
		return
	}
	drop(c.all, p.address)
	if p.anonymous {
		c.strangers--
		drop(c.anonymous, p.address)
	}
}

func drop(counts map[netip.Addr]int, address netip.Addr) {
	if counts[address]--; counts[address] <= 0 {
		delete(counts, address)
	}
}

// tells says how many were refused since the log was told, once a minute: a flood must not fill it.
func (c *crowd) tells(now time.Time) (refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.untold++
	if now.Sub(c.toldAt) < time.Minute {
		return 0
	}
	refused, c.untold, c.toldAt = c.untold, 0, now
	return refused
}
