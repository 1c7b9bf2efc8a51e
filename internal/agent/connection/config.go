package connection

import (
	"context"
	"crypto/tls"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
)

// Config is what a Link needs. Zero limits mean the defaults.
type Config struct {
	// URLs are the servers, the preferred one first: wss://HOST:PORT, or with the path of a broker as pxp-agent
	// has it (wss://HOST:8142/pcp2/). ws:// goes without TLS, for tests.
	URLs    []string
	Version wire.Version // V2 if it is zero
	// URI is who this is: the name in the certificate, and the type of client.
	URI wire.URI
	// TLS is asked before every connection, so that a renewed certificate is used. It must not change what it gave.
	TLS func() (*tls.Config, error)
	// Dial opens the connection below TLS; TCP if it is nil.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Resolve finds the addresses of a server's name; as the system does if it is nil, or not at all where Dial is given.
	Resolve   func(ctx context.Context, host string) ([]string, error)
	UserAgent string
	// Receive gets every message but the protocol's own. It must return soon: a pong is not heard meanwhile.
	Receive func(wire.Message)
	// Connected is told of every connection, by the goroutine of Run: it must return soon. Messages may come before.
	Connected func()
	// Explain puts what kept a server (HOST:PORT) from being reached into words, with err in its chain; nil: err says enough.
	Explain func(ctx context.Context, server string, err error) error

	ConnectTimeout  time.Duration // for TCP, TLS, upgrade and association together; 15 s
	PingInterval    time.Duration // 1 minute
	PongTimeout     time.Duration // 20 s
	WriteTimeout    time.Duration // without progress; 30 s
	CloseTimeout    time.Duration // for the server's answer to a farewell; 2 s
	FirstPause      time.Duration // the bound of the first pauses; 2 s
	LongestPause    time.Duration // 32 s
	AwayPause       time.Duration // the bound while nobody is there at the servers' addresses; 8 s
	Steady          time.Duration // how long a connection must last to count as a good one; 20 s
	ReturnAfter     time.Duration // how often the first server is looked for; about 5 minutes
	MaxMessageBytes int64         // 64 MiB
	QueueBytes      int64         // 16 MiB; one message may be larger

	// Jitter returns a time from 0 to below limit; random if it is nil.
	Jitter func(limit time.Duration) time.Duration
	Log    *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Version == 0 {
		c.Version = wire.V2
	}
	switch {
	case c.Resolve != nil:
	case c.Dial != nil:
		c.Resolve = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	default:
		c.Resolve = net.DefaultResolver.LookupHost
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	if c.Jitter == nil {
		c.Jitter = func(limit time.Duration) time.Duration { return rand.N(max(limit, 1)) } //nolint:gosec // no secret
	}
	if c.Receive == nil {
		c.Receive = func(wire.Message) {}
	}
	if c.Connected == nil {
		c.Connected = func() {}
	}
	if c.Explain == nil {
		c.Explain = func(_ context.Context, _ string, err error) error { return err }
	}
	for limit, value := range map[*time.Duration]time.Duration{
		&c.ConnectTimeout: 15 * time.Second, &c.PingInterval: time.Minute, &c.PongTimeout: 20 * time.Second,
		&c.WriteTimeout: 30 * time.Second, &c.CloseTimeout: 2 * time.Second, &c.FirstPause: 2 * time.Second,
		&c.LongestPause: 32 * time.Second, &c.AwayPause: 8 * time.Second, &c.Steady: 20 * time.Second, &c.ReturnAfter: 5 * time.Minute,
	} {
		if *limit <= 0 {
			*limit = value
		}
	}
	if c.MaxMessageBytes <= 0 {
		c.MaxMessageBytes = 64 << 20
	}
	if c.QueueBytes <= 0 {
		c.QueueBytes = 16 << 20
	}
	return c
}

// server is one broker.
type server struct {
	url     *url.URL // with the path to ask for
	address string
	host    string
	port    string
	secure  bool
}

// The brokers' usual port, and paths.
const (
	defaultPort = "8142"
	pathV1      = "/pcp"
	pathV2      = "/pcp2"
)

// CheckURL says whether text can be one of a Config's URLs.
func CheckURL(text string) error {
	_, err := parseServer(text, wire.V2, "agent")
	return err
}

// parseServer finds the address and the path. A path that is given is the broker's mount point; clients of PCP 2
// add their type to it, clients of PCP 1 do not.
func parseServer(text string, version wire.Version, clientType string) (server, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "wss" && u.Scheme != "ws" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return server{}, fault.New(fault.Invalid, "the server %.200q is not of the form wss://HOST:PORT", text)
	}
	port := u.Port()
	if port == "" {
		port = defaultPort
	}
	s := server{address: net.JoinHostPort(u.Hostname(), port), host: u.Hostname(), port: port, secure: u.Scheme == "wss"}
	path := u.Path
	switch mounted := strings.Trim(path, "/") != ""; {
	case version == wire.V2 && !mounted:
		path = pathV2 + "/" + clientType
	case version == wire.V2:
		path = strings.TrimSuffix(path, "/") + "/" + clientType
	case !mounted && clientType == "agent":
		path = pathV1
	case !mounted:
		path = pathV1 + "/" + clientType
	}
	s.url = &url.URL{Scheme: u.Scheme, Host: s.address, Path: path}
	return s, nil
}

// servers checks a Config and finds its servers.
func (c Config) servers() ([]server, error) {
	if c.Log == nil || len(c.URLs) == 0 {
		return nil, fault.New(fault.Invalid, "a link needs a log and at least one server")
	}
	if _, err := wire.ParseURI(string(c.URI)); err != nil {
		return nil, fault.New(fault.Invalid, "a link needs to know who it is: %s", fault.Detail(err))
	}
	all := make([]server, 0, len(c.URLs))
	for _, text := range c.URLs {
		s, err := parseServer(text, c.Version, c.URI.Type())
		if err != nil {
			return nil, err
		}
		if s.secure && c.TLS == nil {
			return nil, fault.New(fault.Invalid, "the server %s needs TLS, and there is no certificate", text)
		}
		same := func(other server) bool { return *other.url == *s.url }
		if !slices.ContainsFunc(all, same) { // one that is named twice would be tried twice as often
			all = append(all, s)
		}
	}
	return all, nil
}
