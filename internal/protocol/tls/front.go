package tls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Authority tells who is still welcome. *pki.Revocations is one.
type Authority interface {
	// CheckPeer is asked once per handshake and once per request, and must be quick.
	CheckPeer(cert *x509.Certificate) error
	// OnRevoke registers a hook that is called after CheckPeer refuses the serials.
	OnRevoke(hook func(serials []*big.Int))
}

// Config is what a Front needs. Zero limits mean the defaults.
type Config struct {
	Authority   Authority
	Certificate tls.Certificate
	ClientCAs   *x509.CertPool
	// Unasked leaves clients alone: nobody is asked for a certificate, as browsers would ask their user which one.
	Unasked bool
	// MinVersion is TLS 1.2 unless set: older Puppet clients speak no newer one.
	MinVersion uint16
	// HandshakeTimeout is how long a client may take to shake hands, while we do not let it wait; 15 seconds.
	HandshakeTimeout time.Duration
	// MaxConcurrentHandshakes may compute at once; two for each core. More would not be faster, and all
	// else that the server does would wait behind them.
	MaxConcurrentHandshakes int
	// MaxConnections may be open at once; 50 000.
	MaxConnections int
	Limits         Limits
	// ProxiedFrom are load balancers: what they pass on begins with a PROXY header (version 2), and is refused without one.
	ProxiedFrom []netip.Prefix
	Log         *slog.Logger
}

// Front is a net.Listener of TLS connections.
type Front struct {
	inner   net.Listener
	cfg     Config
	base    *tls.Config // what every connection starts from; keeps the session tickets' keys
	secrets atomic.Pointer[tls.Config]
	turns   *turns        // of handshakes that compute
	room    chan struct{} // one for each open connection
	closing chan struct{}
	close   func()

	crowd *crowd

	innards *innards // of a tls.Conn; nil: unknown

	mu    sync.Mutex
	peers map[string]*conn // by serial number; others with the same one follow
}

var _ net.Listener = (*Front)(nil)

// New wraps inner. Closing the Front closes inner, and no accepted connection.
func New(inner net.Listener, cfg Config) (*Front, error) {
	cfg = cfg.withDefaults()
	if cfg.Authority == nil || cfg.Log == nil || inner == nil {
		return nil, fault.New(fault.Invalid, "a TLS front needs a listener, an authority and a log")
	}
	f := &Front{
		inner:   inner,
		cfg:     cfg,
		turns:   newTurns(cfg.MaxConcurrentHandshakes),
		room:    make(chan struct{}, cfg.MaxConnections),
		closing: make(chan struct{}),
		peers:   map[string]*conn{},
		innards: lookInside(),
		crowd:   newCrowd(cfg.Limits),
	}
	f.close = sync.OnceFunc(func() { close(f.closing) })
	if err := f.Reload(cfg.Certificate, cfg.ClientCAs); err != nil {
		return nil, err
	}
	f.base = &tls.Config{MinVersion: cfg.MinVersion, NextProtos: protocols(), GetConfigForClient: f.configFor}
	cfg.Authority.OnRevoke(f.expel)
	return f, nil
}

func (c Config) withDefaults() Config {
	if c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS12
	}
	if c.HandshakeTimeout <= 0 {
		c.HandshakeTimeout = 15 * time.Second
	}
	if c.MaxConcurrentHandshakes <= 0 {
		c.MaxConcurrentHandshakes = 2 * runtime.GOMAXPROCS(0)
	}
	if c.MaxConnections <= 0 {
		c.MaxConnections = 50_000
	}
	return c
}

func protocols() []string { return []string{"h2", "http/1.1"} }

// Reload exchanges the server's certificate and the CAs of clients for all
// handshakes that begin from now on.
func (f *Front) Reload(certificate tls.Certificate, clientCAs *x509.CertPool) error {
	if len(certificate.Certificate) == 0 || certificate.PrivateKey == nil || clientCAs == nil {
		return fault.New(fault.Invalid, "a TLS front needs a certificate with its key and the CAs of its clients")
	}
	asked := tls.VerifyClientCertIfGiven
	if f.cfg.Unasked {
		asked = tls.NoClientCert
	}
	f.secrets.Store(&tls.Config{
		MinVersion:   f.cfg.MinVersion,
		NextProtos:   protocols(),
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   asked,
		ClientCAs:    clientCAs,
		// A file of 10 KB would otherwise go out in eight records.
		DynamicRecordSizingDisabled: true,
	})
	return nil
}

// Accept waits for room, then for a connection. The connection has not shaken
// hands yet.
func (f *Front) Accept() (net.Conn, error) {
	select {
	case f.room <- struct{}{}:
	case <-f.closing:
		return nil, net.ErrClosed
	}
	for {
		raw, err := f.inner.Accept()
		if err != nil {
			<-f.room
			return nil, err
		}
		if f.passesOn(raw.RemoteAddr()) { // whose it is, is read by who serves it: nobody else waits
			return newConn(f, raw, &proxied{}).above, nil
		}
		address, counted := f.crowd.countedAs(raw.RemoteAddr())
		if counted && !f.crowd.enter(address) {
			_ = raw.Close() // before it cost anything
			f.tellRefused(raw.RemoteAddr(), errTooManyFromOne.Error())
			continue
		}
		c := newConn(f, raw, nil)
		c.place = place{address: address, counted: counted}
		return c.above, nil
	}
}

// tellRefused logs that connections are refused, now and then.
func (f *Front) tellRefused(remote net.Addr, why string) {
	if n := f.crowd.tells(time.Now()); n > 0 {
		f.cfg.Log.Warn("connections refused", "why", why, "remote", remote.String(), "refused", n)
	}
}

// Close stops accepting.
func (f *Front) Close() error {
	f.close()
	return f.inner.Close()
}

// ended says whether Close was called.
func (f *Front) ended() bool {
	select {
	case <-f.closing:
		return true
	default:
		return false
	}
}

// Addr is the inner listener's address.
func (f *Front) Addr() net.Addr { return f.inner.Addr() }

// configFor gives a connection the newest secrets and ties its end of the
// handshake to its registration.
func (f *Front) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	c, ok := hello.Conn.(*conn)
	if !ok {
		return nil, errors.New("a connection came from elsewhere")
	}
	cfg := f.secrets.Load().Clone()
	pool := cfg.ClientCAs
	cfg.VerifyConnection = func(state tls.ConnectionState) error { return f.admit(c, state, pool) }
	return cfg, nil
}

// admit decides on a peer whose handshake is nearly done.
func (f *Front) admit(c *conn, state tls.ConnectionState, pool *x509.CertPool) error {
	if len(state.PeerCertificates) > 0 {
		peer := state.PeerCertificates[0]
		if state.DidResume { // the pool may have changed since that was verified
			if err := verify(peer, state.PeerCertificates[1:], pool); err != nil {
				return err
			}
		}
		// Registered first: a revocation that happens now either is seen by
		// CheckPeer, or finds the connection here.
		f.register(c, fleet.Serial(peer.SerialNumber))
		if err := f.cfg.Authority.CheckPeer(peer); err != nil {
			f.cfg.Log.Warn("TLS client refused", "remote", c.RemoteAddr().String(), "err", err)
			return err
		}
	} else if !f.crowd.enterAnonymous(&c.place) {
		f.tellRefused(c.RemoteAddr(), errTooMany.Error())
		return errTooMany
	}
	c.shaken()
	return nil
}

func verify(peer *x509.Certificate, others []*x509.Certificate, pool *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, cert := range others {
		between.AddCert(cert)
	}
	_, err := peer.Verify(x509.VerifyOptions{
		Roots: pool, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}

func (f *Front) register(c *conn, serial string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.left { // its time was up meanwhile
		return
	}
	c.serial, c.after = serial, f.peers[serial]
	if c.after != nil {
		c.after.before = c
	}
	f.peers[serial] = c
}

// gone forgets a connection that was closed.
func (f *Front) gone(c *conn) {
	<-f.room
	f.crowd.leave(&c.place)
	f.mu.Lock()
	defer f.mu.Unlock()
	c.left = true
	if c.after != nil {
		c.after.before = c.before
	}
	switch {
	case c.before != nil:
		c.before.after = c.after
	case c.after != nil:
		f.peers[c.serial] = c.after
	case f.peers[c.serial] == c: // it may never have been registered
		delete(f.peers, c.serial)
	}
}

// expel closes the connections of revoked certificates.
func (f *Front) expel(serials []*big.Int) {
	for _, c := range f.connectionsOf(serials) {
		f.cfg.Log.Info("connection closed, its certificate was revoked", "remote", c.RemoteAddr().String(), "serial", c.serialText())
		_ = c.Close() // it is going away either way
	}
}

func (f *Front) connectionsOf(serials []*big.Int) []*conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []*conn
	for _, serial := range serials {
		for c := f.peers[fleet.Serial(serial)]; c != nil; c = c.after {
			found = append(found, c)
		}
	}
	return found
}
