package tls_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	tuttitls "github.com/tutti-project/tutti/internal/protocol/tls"
)

var (
	loopback  = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	elsewhere = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
)

// proxyHead is a header of version 2, made by hand. Command 0 is LOCAL, 1 is PROXY; family 0x11 is TCP over IPv4, 0x21 over IPv6.
func proxyHead(command, family byte, body ...byte) string {
	head := []byte("\r\n\r\n\x00\r\nQUIT\n")
	head = append(head, 0x20|command, family, byte(len(body)>>8), byte(len(body)))
	return string(append(head, body...))
}

var (
	// From 192.0.2.7 port 51000 to 198.51.100.1 port 8140.
	fromFour = []byte{192, 0, 2, 7, 198, 51, 100, 1, 0xc7, 0x38, 0x1f, 0xcc}
	// From 2001:db8::7 port 51000 to 2001:db8::1 port 8140.
	fromSix = []byte("\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\xc7\x38\x1f\xcc")
)

func fromAddress(last byte) string {
	body := bytes.Clone(fromFour)
	body[3] = last
	return proxyHead(1, 0x11, body...)
}

// loglines are what was logged.
type loglines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *loglines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *loglines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// proxiedHouse answers with the address that it takes for the client's.
func proxiedHouse(t *testing.T, cfg tuttitls.Config) (*house, *loglines) {
	t.Helper()
	said := &loglines{}
	cfg.Log = slog.New(slog.NewTextHandler(said, nil))
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	return openOn(t, inner, cfg, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RemoteAddr) }), said
}

// introduced connects with a header before TLS, and asks. It returns the connection with what is answered, or why nothing is.
func (h *house) introduced(t *testing.T, head string) (*tls.Conn, string, error) {
	t.Helper()
	raw, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.addr)
	must(t, err)
	t.Cleanup(func() { _ = raw.Close() })
	must(t, raw.SetDeadline(time.Now().Add(patience)))
	if _, err := io.WriteString(raw, head); err != nil {
		return nil, "", err
	}
	conn := tls.Client(raw, &tls.Config{RootCAs: h.ca.Pool(), ServerName: "127.0.0.1"})
	if err := conn.HandshakeContext(t.Context()); err != nil {
		return nil, "", err
	}
	transport := &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+h.addr+"/", nil)
	must(t, err)
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return conn, string(text), err
}

func TestWhoIsBehindALoadBalancer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		head string
		want string // the client; empty: it is refused
		told string
	}{
		"over IPv4":                    {proxyHead(1, 0x11, fromFour...), "192.0.2.7:51000", ""},
		"over IPv6":                    {proxyHead(1, 0x21, fromSix...), "[2001:db8::7]:51000", ""},
		"with more that it knows":      {proxyHead(1, 0x11, append(bytes.Clone(fromFour), "\x02\x00\x03pup\x04\x00\x07padding"...)...), "192.0.2.7:51000", ""},
		"it looks whether we live":     {proxyHead(0, 0), "127.0.0.1:", ""},
		"it names nobody":              {proxyHead(1, 0), "", "cannot be read"},
		"nothing before TLS":           {"", "", "no PROXY header (version 2) came"},
		"version 1":                    {"PROXY TCP4 192.0.2.7 198.51.100.1 51000 8140\r\n", "", "no PROXY header (version 2) came"},
		"version 3":                    {strings.Replace(proxyHead(1, 0x11, fromFour...), "\x21\x11", "\x31\x11", 1), "", "cannot be read"},
		"another command":              {proxyHead(7, 0x11, fromFour...), "", "cannot be read"},
		"no such family":               {proxyHead(1, 0x55, fromFour...), "", "cannot be read"},
		"an address that is too short": {proxyHead(1, 0x21, fromFour...), "", "cannot be read"},
		"more than is read":            {proxyHead(1, 0x11, append(bytes.Clone(fromFour), make([]byte, 3000)...)...), "", "a PROXY header of 3012 bytes"},
		"two of them":                  {proxyHead(1, 0x11, fromFour...) + proxyHead(1, 0x11, fromFour...), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, said := proxiedHouse(t, tuttitls.Config{ProxiedFrom: loopback})
			_, got, err := h.introduced(t, c.head)
			switch {
			case c.want == "" && err == nil:
				t.Errorf("it is taken for one of %s", got)
			case c.want != "" && (err != nil || !strings.HasPrefix(got, c.want)):
				t.Errorf("got %q, %v, want %s", got, err, c.want)
			}
			if !strings.Contains(said.String(), c.told) || c.told == "" && strings.Contains(said.String(), "refused") && c.want != "" {
				t.Errorf("the log says %q, want %q", said, c.told)
			}
		})
	}
}

// Whoever is not named cannot say that it is somebody else, and needs no header.
func TestAHeaderFromAnybodyElseIsRefused(t *testing.T) {
	t.Parallel()
	for name, from := range map[string][]netip.Prefix{"nobody is named": nil, "others are named": elsewhere} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, said := proxiedHouse(t, tuttitls.Config{ProxiedFrom: from})
			for _, head := range []string{proxyHead(1, 0x11, fromFour...), "PROXY TCP4 192.0.2.7 198.51.100.1 51000 8140\r\n"} {
				if _, got, err := h.introduced(t, head); err == nil {
					t.Errorf("%q: it is taken for one of %s", head, got)
				}
			}
			if !strings.Contains(said.String(), "a PROXY header came from an address that proxy_protocol_from does not name") ||
				!strings.Contains(said.String(), "remote=127.0.0.1:") {
				t.Errorf("the log says %q", said)
			}
			if _, got, err := h.introduced(t, ""); err != nil || !strings.HasPrefix(got, "127.0.0.1:") {
				t.Errorf("without a header: %q, %v", got, err)
			}
		})
	}
}

// A load balancer that says nothing, or half of a header, loses its connection, and holds up nobody meanwhile.
func TestAHeaderThatDoesNotCome(t *testing.T) {
	t.Parallel()
	h, _ := proxiedHouse(t, tuttitls.Config{ProxiedFrom: loopback, HandshakeTimeout: 2 * time.Second})
	whole := proxyHead(1, 0x11, fromFour...)
	began := time.Now()
	ended := make(chan time.Duration)
	for _, part := range []string{"", whole[:5], whole[:16], whole[:len(whole)-1], whole} {
		raw, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.addr)
		must(t, err)
		t.Cleanup(func() { _ = raw.Close() })
		_, err = io.WriteString(raw, part)
		must(t, err)
		go func() {
			_, _ = io.Copy(io.Discard, raw)
			ended <- time.Since(began)
		}()
	}
	if _, got, err := h.introduced(t, whole); err != nil || got != "192.0.2.7:51000" || time.Since(began) > 2*time.Second {
		t.Errorf("meanwhile: %q, %v, after %s", got, err, time.Since(began))
	}
	for range 5 {
		select {
		case took := <-ended:
			if took < 2*time.Second {
				t.Errorf("a connection was ended after %s", took)
			}
		case <-time.After(patience):
			t.Fatal("a connection without a header stays")
		}
	}
}

// Limits hold for each client behind a load balancer, and not for all of them together.
func TestClientsBehindALoadBalancerAreCounted(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]tuttitls.Limits{
		"all of them": {PerAddress: 1}, "without a certificate": {AnonymousPerAddress: 1},
		"who is exempt": {PerAddress: 1, AnonymousPerAddress: 1, Exempt: append(loopback, netip.MustParsePrefix("192.0.2.9/32"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, said := proxiedHouse(t, tuttitls.Config{ProxiedFrom: loopback, Limits: limits})
			first, _, err := h.introduced(t, fromAddress(7))
			must(t, err)
			_, got, err := h.introduced(t, fromAddress(8))
			if err != nil || got != "192.0.2.8:51000" {
				t.Errorf("another client: %q, %v", got, err)
			}
			if _, got, err := h.introduced(t, fromAddress(7)); err == nil {
				t.Errorf("a second connection of a client that may have one: %s", got)
			}
			if !strings.Contains(said.String(), "remote=192.0.2.7:51000") {
				t.Errorf("the log says %q", said)
			}
			for range 2 {
				if _, _, err := h.introduced(t, fromAddress(9)); err != nil && len(limits.Exempt) > 0 {
					t.Errorf("an exempt client: %v", err)
				}
			}
			must(t, first.Close())
			for end := time.Now().Add(patience); ; {
				if _, _, err := h.introduced(t, fromAddress(7)); err == nil {
					break
				} else if time.Now().After(end) {
					t.Fatalf("no connection is taken although another one ended: %v", err)
				}
			}
		})
	}
}

// Who only looks whether somebody is here is not refused, and nothing is logged: some close such a connection, some reset it.
func TestALookSendsNoHeader(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"closed": io.EOF, "reset": &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
	} {
		if _, got := tuttitls.ReadProxyHeader(iotest.ErrReader(err)); got != io.EOF { //nolint:errorlint // it is told apart from what has more to say
			t.Errorf("%s: %v", name, got)
		}
		if _, got := tuttitls.ReadProxyHeader(io.MultiReader(strings.NewReader("\r\n"), iotest.ErrReader(err))); errors.Is(got, io.EOF) || got == nil {
			t.Errorf("%s in the middle of a header: %v", name, got)
		}
	}
}

// What a header says is what is read, and what follows it is left alone.
func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte(proxyHead(1, 0x11, fromFour...)))
	f.Add([]byte(proxyHead(1, 0x21, fromSix...) + "rest"))
	f.Add([]byte(proxyHead(0, 0)))
	f.Add([]byte(proxyHead(1, 0x31, make([]byte, 216)...)))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := bytes.NewReader(text)
		client, err := tuttitls.ReadProxyHeader(r)
		if err != nil {
			return
		}
		taken := text[:len(text)-r.Len()]
		if want := 16 + int(taken[14])<<8 + int(taken[15]); len(taken) != want || !strings.HasPrefix(string(taken), "\r\n\r\n\x00\r\nQUIT\n") {
			t.Fatalf("%x is taken for a header", taken)
		}
		if client == nil {
			return
		}
		want := netip.AddrPort{}
		switch taken[13] {
		case 0x11:
			want = netip.AddrPortFrom(netip.AddrFrom4([4]byte(taken[16:20])), uint16(taken[24])<<8|uint16(taken[25]))
		case 0x21:
			want = netip.AddrPortFrom(netip.AddrFrom16([16]byte(taken[16:32])).Unmap(), uint16(taken[48])<<8|uint16(taken[49]))
		}
		if taken[12] != 0x21 || fmt.Sprint(client) != fmt.Sprint(want) {
			t.Fatalf("%x is read as %s, want %s", taken, client, want)
		}
	})
}
