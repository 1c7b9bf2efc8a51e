package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tutti-project/tutti/internal/program/programtest"
)

// network is places around a hub, which is where the story is told. Each place has a network namespace; what one sends another passes through the
// hub, and the hub can drop it, each way apart. The story itself reaches every place, whatever is cut.
type network struct {
	t      *testing.T
	places map[string]*place
	dir    string // of scripts
}

// place is where a process runs.
type place struct {
	name, address string
	among         []*place // that the name anyServer stands for
}

// anyServer is the name of all servers, as a list in DNS is.
const anyServer = "tutti"

// newNetwork needs a process that is alone.
func newNetwork(t *testing.T, names ...string) *network {
	t.Helper()
	n := &network{t: t, places: map[string]*place{}, dir: t.TempDir()}
	if err := errors.Join(os.MkdirAll("/run/netns", 0o755), unix.Mount("tmpfs", "/run/netns", "tmpfs", 0, "")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	n.ip("link", "set", "lo", "up")
	hosts := "127.0.0.1 localhost\n"
	for i, name := range names {
		p := &place{name: name, address: fmt.Sprintf("10.77.%d.2", i+1)}
		n.places[name] = p
		hub, inside := fmt.Sprintf("hub%d", i+1), fmt.Sprintf("in%d", i+1)
		n.ip("netns", "add", name)
		n.ip("link", "add", hub, "type", "veth", "peer", "name", inside, "netns", name)
		n.ip("addr", "add", fmt.Sprintf("10.77.%d.1/24", i+1), "dev", hub)
		n.ip("link", "set", hub, "up")
		n.ip("-n", name, "addr", "add", p.address+"/24", "dev", inside)
		n.ip("-n", name, "link", "set", inside, "up")
		n.ip("-n", name, "link", "set", "lo", "up")
		n.ip("-n", name, "route", "add", "default", "via", fmt.Sprintf("10.77.%d.1", i+1))
		hosts += p.address + " " + name + "\n"
	}
	known := filepath.Join(n.dir, "hosts")
	writeFile(t, known, hosts)
	if err := unix.Mount(known, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *network) ip(args ...string) {
	n.t.Helper()
	if r := execute(n.t, cleanEnv(), time.Minute, "ip", args...); r.code != 0 {
		n.t.Fatalf("ip %s: %s", strings.Join(args, " "), r.text())
	}
}

// through is the words before a program that is to run in a place. It keeps its process number.
func (n *network) through(place string) []string {
	return []string{"nsenter", "--net=/run/netns/" + place}
}

// program is a program that does in a place what another one does.
func (n *network) program(place, program string) string {
	n.t.Helper()
	path := filepath.Join(n.dir, place+"-"+filepath.Base(program))
	return programtest.Write(n.t, path, "#!/bin/sh\nexec "+strings.Join(n.through(place), " ")+" "+shellQuoted(program)+" \"$@\"\n")
}

// link is one way from one place to another.
type link struct{ from, to string }

func (l link) back() link { return link{l.to, l.from} }

// rule is the hub's for what goes along a link: to drop it, or to refuse it with words to its sender.
func (n *network) rule(l link, refuse bool) []string {
	what := "blackhole"
	if refuse {
		what = "unreachable"
	}
	return []string{"pref", "100", "from", n.places[l.from].address, "to", n.places[l.to].address, what}
}

func (n *network) cut(l link, refuse bool) {
	n.ip(append([]string{"rule", "add"}, n.rule(l, refuse)...)...)
}

func (n *network) heal(l link, refuse bool) {
	n.ip(append([]string{"rule", "del"}, n.rule(l, refuse)...)...)
}

// dial opens a connection from a place. To anyServer it tries all of them, in any order, as who has a list from DNS.
func (p *place) dial(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var to []string
	for _, other := range p.among {
		if host == anyServer || host == other.name {
			to = append(to, net.JoinHostPort(other.address, port))
		}
	}
	rand.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
	for _, one := range to {
		var conn net.Conn
		if conn, err = p.dialOne(ctx, one); err == nil {
			return conn, nil
		}
	}
	return nil, errors.Join(err, ctx.Err())
}

// dialWithin is how long a place waits for one address before it tries the next.
const dialWithin = 2 * time.Second

func (p *place) dialOne(ctx context.Context, address string) (conn net.Conn, err error) {
	err = p.inside(func() (err error) {
		conn, err = (&net.Dialer{Timeout: dialWithin}).DialContext(ctx, "tcp4", address)
		return err
	})
	return conn, err
}

// inside does something whose sockets are those of a place.
func (p *place) inside(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread, which is in another namespace, ends with this function
		done <- func() error {
			where, err := os.Open("/run/netns/" + p.name)
			if err != nil {
				return err
			}
			defer func() { _ = where.Close() }()
			if err := unix.Setns(int(where.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			return do()
		}()
	}()
	return <-done
}

// What one place sends does not arrive where a link is cut, and what comes the other way does; what is refused fails at once.
func TestLinksAreCutOneWay(t *testing.T) {
	begin(t)
	if !alone(t) {
		return
	}
	n := newNetwork(t, "a", "b")
	ears := map[string]net.PacketConn{}
	for _, p := range n.places {
		if err := p.inside(func() (err error) {
			ears[p.name], err = net.ListenPacket("udp4", p.address+":7")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ears[p.name].Close() })
	}
	arrives := func(l link) bool {
		t.Helper()
		to := &net.UDPAddr{IP: net.ParseIP(n.places[l.to].address), Port: 7}
		if _, err := ears[l.from].WriteTo([]byte("x"), to); err != nil {
			return false
		}
		_ = ears[l.to].SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		_, _, err := ears[l.to].ReadFrom(make([]byte, 9))
		return err == nil
	}
	for _, l := range []link{{"a", "b"}, {"b", "a"}} {
		for _, refuse := range []bool{false, true} {
			if !arrives(l) || !arrives(l.back()) {
				t.Fatalf("nothing is cut, and something does not arrive between %s and %s", l.from, l.to)
			}
			n.cut(l, refuse)
			if arrives(l) || !arrives(l.back()) {
				t.Errorf("the way from %s to %s is cut (refused: %t): there %t, back %t", l.from, l.to, refuse, arrives(l), arrives(l.back()))
			}
			from := n.places[l.from]
			from.among = []*place{n.places[l.to]}
			began := time.Now()
			_, err := from.dial(t.Context(), l.to+":9")
			if took := time.Since(began); err == nil || refuse != (took < dialWithin/2) {
				t.Errorf("a connection from %s to %s, refused: %t, fails after %s: %v", l.from, l.to, refuse, took, err)
			}
			n.heal(l, refuse)
		}
	}
}
