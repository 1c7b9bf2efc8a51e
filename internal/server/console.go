package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/protocol/console"
	"github.com/tutti-project/tutti/internal/protocol/front"
	tuttitls "github.com/tutti-project/tutti/internal/protocol/tls"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// consoleListener is where browsers come. Agents' listener asks for certificates; this one never does.
type consoleListener struct {
	front   *tuttitls.Front // nil: without TLS, on the loopback only
	socket  net.Listener
	server  *http.Server
	address string // https://HOST:PORT, as people reach it
}

// openConsole opens it over the table of routes; nil where it is not wanted.
func (p *parts) openConsole(ctx context.Context, opener frontOpener, routes http.Handler, access *atomic.Bool) (*consoleListener, error) {
	c := opener.config
	if c.ConsoleListen == "" {
		return nil, nil //nolint:nilnil // nobody asked for one
	}
	pages, err := console.New(console.Config{API: routes})
	if err != nil {
		return nil, err
	}
	l := &consoleListener{server: &http.Server{
		// Of a login's body this route says how much is taken; of the API's, its own routes say it again.
		Handler: p.front(front.Route{Handler: pages, Bytes: api.MaxLogin}, access), IdleTimeout: 2 * time.Minute, ReadHeaderTimeout: 30 * time.Second,
		MaxHeaderBytes: maxBrowserHeaderBytes, BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}}
	scheme := "https"
	if c.ConsolePlain {
		scheme = "http"
		if l.socket, err = new(net.ListenConfig).Listen(ctx, "tcp", c.ConsoleListen); err != nil {
			return nil, fmt.Errorf("listen on %s: %w; another program may use the port: give another with --console-listen", c.ConsoleListen, err)
		}
	} else {
		if l.front, err = opener.on(ctx, "console-listen", c.ConsoleListen); err != nil {
			return nil, err
		}
		l.socket = l.front
		l.front.Configure(l.server)
	}
	l.address = consoleAddress(c, scheme, l.socket.Addr())
	return l, nil
}

// maxBrowserHeaderBytes is more than browsers send.
const maxBrowserHeaderBytes = 64 << 10

// consoleAddress is how people reach the console: as the settings say, or by the name that is in the certificate.
func consoleAddress(c settings.Config, scheme string, address net.Addr) string {
	if c.ConsoleURL != "" {
		return strings.TrimSuffix(c.ConsoleURL, "/")
	}
	return scheme + "://" + serverHost(address)
}

// consoleAt is the address of the console; empty until it is open, or where it is not wanted.
func consoleAt(listeners *atomic.Pointer[openListeners]) string {
	if d := listeners.Load(); d != nil && d.console.Load() != nil {
		return d.console.Load().address
	}
	return ""
}
