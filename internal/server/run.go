package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/protocol/puppetdb"
	tuttitls "github.com/tutti-project/tutti/internal/protocol/tls"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/preflight"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// Options is what a server gets from its caller besides its settings.
type Options struct {
	Load   func() (settings.Config, error) // reads the settings again
	Hangup <-chan os.Signal                // asks for that
	Out    io.Writer                       // what a newcomer needs to know
	Err    io.Writer                       // the log
}

// Run serves until ctx ends, then stops in order. It returns nil after an
// orderly stop.
func Run(ctx context.Context, c settings.Config, o Options) (err error) {
	log := newLogger(c, o.Err)
	if err := preflight.Start(ctx, c, log.Logger); err != nil {
		return err
	}
	p, err := open(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }() //nolint:contextcheck // ctx may be over, and the store is closed even so
	if err := p.openToken(ctx); err != nil {
		return err
	}
	reached, err := p.listen(ctx, c)
	if err != nil {
		return err
	}
	welcome(o.Out, p.data, p.ca, reached.address, c.AdminTokenLifetime)
	return p.serve(ctx, reached, o)
}

// openListeners are those that agents and people reach, and what is needed to change their certificate.
type openListeners struct {
	front   *tuttitls.Front
	further []*tuttitls.Front               // the same on broker_listen, orchestrator_listen and rbac_listen, as far as they are set
	console atomic.Pointer[consoleListener] // may be nil
	server  *http.Server
	health  *health
	access  *atomic.Bool
	address string // https://HOST:PORT
}

// listen opens the listener with the server's certificate.
func (p *parts) listen(ctx context.Context, c settings.Config) (*openListeners, error) {
	certificate, err := p.ca.Server.Certificate(ctx, c.ServerNames())
	if err != nil {
		return nil, err
	}
	d := &openListeners{health: p.health(), access: new(atomic.Bool)}
	d.access.Store(c.AccessLog)
	opener := frontOpener{ca: p.ca, config: c, certificate: certificate, log: p.log.Logger}
	if d.front, err = opener.on(ctx, "listen", c.Listen); err != nil {
		return nil, err
	}
	for _, further := range [][2]string{{"broker-listen", c.BrokerListen}, {"orchestrator-listen", c.OrchestratorListen}, {"rbac-listen", c.RBACListen}} {
		if further[1] == "" {
			continue
		}
		front, err := opener.on(ctx, further[0], further[1])
		if err != nil {
			return nil, errors.Join(err, d.close())
		}
		d.further = append(d.further, front)
	}
	p.listeners.Store(d)
	if err := p.openBroker(c, d.access); err != nil {
		return nil, errors.Join(err, d.close())
	}
	routes, err := p.routes(d.health)
	if err == nil {
		d.address = "https://" + clientHost(d.front.Addr())
		err = p.data.Write(datadir.AddressFile, d.address+"\n")
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	opened, err := p.openConsole(ctx, opener.forBrowsers(), routes, d.access)
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.console.Store(opened)
	handler, err := hearing(p, p.front(routes, d.access))
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.server = &http.Server{
		Handler: handler, IdleTimeout: 2 * time.Minute, ReadHeaderTimeout: 30 * time.Second,
		MaxHeaderBytes: maxHeaderBytes, BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	d.front.Configure(d.server)
	return d, nil
}

// frontOpener opens the addresses of the listener, each with the same certificate and bounds.
type frontOpener struct {
	ca          *pki.Authority
	config      settings.Config
	certificate tls.Certificate
	log         *slog.Logger
	browsers    bool // no client is asked for a certificate
}

// forBrowsers opens addresses where nobody is asked for a certificate.
func (o frontOpener) forBrowsers() frontOpener {
	o.browsers = true
	return o
}

// on opens one address; flag is what it is called on the command line.
func (o frontOpener) on(ctx context.Context, flag, address string) (*tuttitls.Front, error) {
	c := o.config
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; another program may use the port: give another with --%s", address, err, flag)
	}
	exempt, err := c.Exempt()
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	proxies, err := c.Proxies()
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	front, err := tuttitls.New(socket, tuttitls.Config{
		Authority:      o.ca.Revocations,
		Certificate:    o.certificate,
		ClientCAs:      o.ca.Pool(),
		Unasked:        o.browsers,
		MaxConnections: c.MaxConnections,
		ProxiedFrom:    proxies,
		Log:            o.log,
		Limits: tuttitls.Limits{
			PerAddress:          c.MaxConnectionsPerAddress,
			Anonymous:           c.MaxAnonymousConnections,
			AnonymousPerAddress: c.MaxAnonymousPerAddress,
			Exempt:              exempt,
		},
	})
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return front, nil
}

// fronts is all addresses.
func (d *openListeners) fronts() []*tuttitls.Front {
	return append([]*tuttitls.Front{d.front}, d.further...)
}

// shown is all listeners that show the certificate.
func (d *openListeners) shown() []*tuttitls.Front {
	all := d.fronts()
	if l := d.console.Load(); l != nil && l.front != nil {
		all = append(all, l.front)
	}
	return all
}

// show exchanges the certificate, and the CAs of clients, for all handshakes that begin from now on.
func (d *openListeners) show(certificate tls.Certificate, clients *x509.CertPool) error {
	for _, front := range d.shown() {
		if err := front.Reload(certificate, clients); err != nil {
			return err
		}
	}
	return nil
}

// drain lets open requests finish, those of agents and of browsers at once, and says what it gave up.
func (d *openListeners) drain(timeout time.Duration, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var all sync.WaitGroup
	finish := func(server *http.Server, cut string) {
		if err := server.Shutdown(ctx); err != nil {
			log.WarnContext(ctx, cut, "err", err)
			_ = server.Close()
		}
	}
	if l := d.console.Load(); l != nil {
		all.Go(func() { finish(l.server, "open requests of browsers were cut off") })
	}
	finish(d.server, "open requests were cut off")
	all.Wait()
}

func (d *openListeners) close() error {
	var err error
	for _, front := range d.fronts() {
		err = errors.Join(err, front.Close())
	}
	if l := d.console.Load(); l != nil {
		err = errors.Join(err, l.socket.Close())
	}
	return err
}

// maxHeaderBytes allows a GET of a catalog with its facts in the query, as old
// agents send it.
const maxHeaderBytes = 1 << 20

// clientHost is how commands on this machine reach a listener.
func clientHost(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return address.String()
	}
	if tcp.IP.IsUnspecified() || tcp.IP.IsLoopback() {
		return fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return tcp.String()
}

// serverHost is how other servers, and people elsewhere, reach a listener.
func serverHost(address net.Addr) string {
	if tcp, ok := address.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("%s:%d", settings.ServerName(), tcp.Port)
	}
	return clientHost(address)
}

func (p *parts) health() *health {
	reads := func(ctx context.Context) error {
		_, err := p.store.Nodes.Nodes(ctx, inventory.Page{Limit: 1})
		return err
	}
	store := storage{p.disk, p.store, p.log.Logger}
	h := &health{version: p.ruby.DefaultPuppet, database: reads, services: []service{
		{name: "server"},
		{name: "ca"},
		{name: puppetDBStatus, version: puppetdb.Version, more: asPuppetDB},
		{name: orchestratorStatus},
		{name: "storage", check: store.check, more: store.status},
		{name: "content", check: func(context.Context) error { return nil }, more: contentStatus(p.blobs)},
		{name: "compile-cells", check: func(context.Context) error { return nil }, more: isolation(p.cells)},
	}}
	if p.near != nil {
		h.cut = p.near.cut
		h.services = append(h.services, service{name: "near", check: func(context.Context) error { return nil }, more: p.near.status})
	}
	return h
}

// serve runs every component until ctx ends or one of them fails, then stops
// from the outside in.
func (p *parts) serve(ctx context.Context, d *openListeners, o Options) error {
	p.disk.Look(time.Now())
	if err := p.disk.Problem(); err != nil {
		p.log.ErrorContext(ctx, "the disk is full: this server starts read-only", "err", err)
	}
	p.store.Guard(p.disk.Admit)
	p.blobs.Guard(p.disk.Admit)
	running := start(context.WithoutCancel(ctx),
		stage{
			"compile workers":       p.ruby.Run,
			"claim on the database": p.store.HoldClaim,
			"leases":                p.leases.Run,
			"list of servers":       attend(p, "https://"+serverHost(d.front.Addr())),
		},
		stage{ // these compile: they end first
			"answers of nodes":   p.jobs.Run,
			"events of runs":     p.events.Run,
			"who was connected":  p.register.Run,
			"who is connected":   p.broker.RunSeats,
			"nodes' modules":     p.catalogue.Run,
			"hints":              p.hinter.Run,
			"hints of modules":   p.moduleHinter.Run,
			"certificates":       p.ca.Run,
			"last use of tokens": p.access.Run,
			"work trees":         p.housekeeper.runHere,
			"memory":             returnMemory,
			"disk":               storage{p.disk, p.store, p.log.Logger}.watch,
			"reload":             func(ctx context.Context) error { return p.reloads(ctx, d, o) },
			"drain":              drain(p, d.health),
		}.and(compiling(p)).and(doneOnce(p)).and(heardOfOthers(p)).and(modulesOfOthers(p)).and(nearWork(p)),
		stage{ // clients are told first
			"broker":     p.broker.Run,
			"websockets": p.sockets.Run,
		})
	serving := make(chan error, len(d.fronts())+1)
	for _, front := range d.fronts() {
		go func() { serving <- d.server.Serve(front) }()
	}
	if l := d.console.Load(); l != nil {
		go func() { serving <- l.server.Serve(l.socket) }()
		p.log.InfoContext(ctx, "serving the console", "address", l.address)
	}
	p.log.InfoContext(ctx, "serving", "address", d.address, "data", p.data.Path)

	var cause error
	select {
	case <-ctx.Done():
		p.log.InfoContext(ctx, "stopping", "deadline", p.config.Load().ShutdownTimeout)
	case cause = <-running.failed:
	case cause = <-p.stored:
		p.stored <- nil // close waits for it, too
	case cause = <-serving:
	}
	d.health.stopping.Store(true)
	close(p.stopping)
	d.drain(p.config.Load().ShutdownTimeout, p.log.Logger) //nolint:contextcheck // ctx is done, and requests go on
	err := running.stop(cause)
	p.log.InfoContext(ctx, "stopped")
	return errors.Join(cause, err)
}

// reloads follows SIGHUP, and looks at the server's certificate daily, until ctx
// is done.
func (p *parts) reloads(ctx context.Context, d *openListeners, o Options) error {
	daily := time.NewTicker(24 * time.Hour)
	defer daily.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-daily.C: // the server's certificate may be near its end
			if err := renewCertificate(ctx, p.ca, d, *p.config.Load()); err != nil {
				p.log.ErrorContext(ctx, "server certificate not renewed, will retry", "err", err)
			}
		case <-o.Hangup:
			if err := p.openToken(ctx); err != nil {
				p.log.ErrorContext(ctx, "administrator's token not read again", "err", err)
			}
			if err := p.reload(ctx, d, o.Load); err != nil {
				p.log.ErrorContext(ctx, "reload refused, the settings stay as they were", "err", err)
			}
		}
	}
}

// reload applies the settings that may change while running, and names those
// that changed but need a restart. All that can be refused is checked before
// anything is changed; the certificate comes last, for asking for it may make it.
func (p *parts) reload(ctx context.Context, d *openListeners, load func() (settings.Config, error)) error {
	fresh, err := load()
	if err != nil {
		return err
	}
	old := p.config.Load()
	applied, waiting := settings.Merge(*old, fresh)
	autosign, err := p.operator.autosignPolicy(applied)
	if err != nil {
		return err
	}
	if err := p.operator.checkTruster(applied); err != nil {
		return err
	}
	if err := p.operator.checkNodeClassifier(applied); err != nil {
		return err
	}
	if err := renewCertificate(ctx, p.ca, d, applied); err != nil {
		return err
	}
	if err := p.ca.Requests.SetAutosign(autosign); err != nil {
		return err
	}
	p.config.Store(&applied)
	p.log.set(applied.LogLevel)
	d.access.Store(applied.AccessLog)
	p.log.InfoContext(ctx, "settings read again", "need_restart", waiting)
	return nil
}

// renewCertificate makes the listener use a certificate that is good for the
// server's names: the one it has, or a new one.
func renewCertificate(ctx context.Context, ca *pki.Authority, d *openListeners, c settings.Config) error {
	certificate, err := ca.Server.Certificate(ctx, c.ServerNames())
	if err != nil {
		return err
	}
	return d.show(certificate, ca.Pool())
}

// welcome tells a newcomer what to do next. tokenLife is that of the administrator's token.
func welcome(out io.Writer, data *datadir.Dir, ca *pki.Authority, address string, tokenLife time.Duration) {
	bundle, _ := ca.Bundle()
	_, port, _ := net.SplitHostPort(address[len("https://"):])
	_, _ = fmt.Fprintf(out, "Tutti serves %s (data in %s)\n", address, data.Path)
	if !data.Fresh {
		return
	}
	made := "a certificate authority, a database and an administrator's token were made"
	if data.HadCA {
		made = "an administrator's token was made; the certificate authority is the one that was here before"
	}
	_, _ = fmt.Fprintf(out, `
First start: %s.
  CA certificate   %s
                   SHA256 %s
  admin token      %s

Next, in another shell on this machine:
  export TUTTI_DATA=%s
  tutti code deploy production DIR     # a control repository: manifests, modules, hiera.yaml
  tutti ca token                       # prints the command that joins a node; its names for this server: docs/enrol.md
  puppet agent --test --server %s --serverport %s     # or so, on a node without tutti; then: tutti ca sign NAME
The admin token is for the start (%s). Make yourself a user: tutti user create NAME --role administrator

`, made, data.Join(datadir.CAFile), pki.FingerprintOf(bundle), data.Join(datadir.TokenFile), data.Path, settings.ServerName(), port, lifeText(tokenLife))
}

// lifeText says how long the administrator's token is good.
func lifeText(life time.Duration) string {
	if life == 0 {
		return "it is good until it is revoked"
	}
	return "it is good for " + fault.Duration(life)
}
