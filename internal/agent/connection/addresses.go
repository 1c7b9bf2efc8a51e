package connection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// addresses dials servers whose name has several addresses: each of them is a server, as good as the others.
type addresses struct {
	resolve func(ctx context.Context, host string) ([]string, error)
	dial    func(ctx context.Context, address string) (net.Conn, error)
	jitter  func(limit time.Duration) time.Duration

	last map[string]string // by host: the address that was reached last; of the one goroutine that dials
}

// open connects to host at port. An address that was reached last comes last now: its server is away, or did not keep us. The others
// come in any order, so that all who lost the same server spread over those that are left.
func (a *addresses) open(ctx context.Context, host, port string) (net.Conn, error) {
	found, err := a.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	found = distinct(found)
	if !several(found) { // one address, perhaps in either family: the system's way to try both is good
		return a.dial(ctx, net.JoinHostPort(host, port))
	}
	var wrong error
	for i, address := range a.inTurn(host, found) {
		trying, cancel := within(ctx, len(found)-i)
		conn, err := a.dial(trying, net.JoinHostPort(address, port))
		cancel()
		if err == nil {
			a.last[host] = address
			return conn, nil
		}
		if wrong = errors.Join(wrong, err); ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("none of the %d addresses of %s: %w", len(found), host, wrong)
}

// inTurn is the order in which addresses are tried.
func (a *addresses) inTurn(host string, found []string) []string {
	order := slices.Clone(found)
	for i := len(order) - 1; i > 0; i-- {
		j := min(int(a.jitter(time.Duration(i+1))), i)
		order[i], order[j] = order[j], order[i]
	}
	slices.SortStableFunc(order, func(x, y string) int {
		switch a.last[host] {
		case x:
			return 1
		case y:
			return -1
		}
		return 0
	})
	return order
}

// within gives one of so many that are left its share of the time.
func within(ctx context.Context, left int) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
}

// distinct is each address once, in their order: one that is found twice, or also in the form of the other family, is one server with one share of the time.
func distinct(found []string) []string {
	all := make([]string, len(found))
	for i, text := range found {
		all[i] = text
		if address, err := netip.ParseAddr(text); err == nil {
			all[i] = address.Unmap().String()
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// several tells whether there are two addresses of one family.
func several(found []string) bool {
	count := map[bool]int{}
	for _, text := range found {
		if address, err := netip.ParseAddr(text); err == nil {
			count[address.Is4()]++
		}
	}
	return count[true] > 1 || count[false] > 1
}
