package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// closeLimit is by when a half-open login has to be closed: ten seconds for the body of a stranger, and what the machine needs.
const closeLimit = 20 * time.Second

// password is of the one real user.
const password = "correct horse battery staple"

// halfOpen begins logins and sends no more than a byte a second of every second one's body. A real login must work meanwhile.
func (s settings) halfOpen(ctx context.Context, server *rivals.Tutti) (row measure.Row, note string, err error) {
	client, err := server.API()
	if err != nil {
		return row, "", err
	}
	user := api.UserCreateRequest{Name: "ann", Roles: []string{"viewer"}, Password: password}
	if _, err := api.UserCreate.Call(ctx, client, user); err != nil {
		return row, "", err
	}
	if _, err := login(ctx, server); err != nil { // the first one's memory is not the flood's
		return row, "", err
	}
	if err := measure.Settle(ctx, 2*time.Second); err != nil {
		return row, "", err
	}
	before, err := server.Usage()
	if err != nil {
		return row, "", err
	}
	watching, enough := context.WithCancel(ctx)
	peak := make(chan int64, 1)
	go func() {
		pss, _ := measure.Peak(watching, 100*time.Millisecond, server.Usage)
		peak <- pss
	}()
	var opening errgroup.Group
	opening.SetLimit(32)
	conns := make([]*tls.Conn, s.Logins)
	for i := range conns {
		opening.Go(func() (err error) {
			conns[i], err = openLogin(ctx, server, source(i/s.Each))
			return err
		})
	}
	if err = opening.Wait(); err == nil {
		err = measure.Settle(ctx, time.Second)
	}
	enough()
	growth := max(0, <-peak-before.PSSBytes)
	if err != nil {
		return row, "", err
	}
	var lock sync.Mutex
	var ended errgroup.Group
	var latest time.Duration
	held, opened := 0, time.Now()
	for i, conn := range conns {
		ended.Go(func() error {
			took, err := outlast(conn, i%2 == 0)
			lock.Lock()
			defer lock.Unlock()
			latest = max(latest, took)
			if took > time.Second {
				held++
			}
			return err
		})
	}
	took, err := login(ctx, server)
	err = errors.Join(err, ended.Wait())
	row = measure.Row{Server: "tutti", Case: "logins", Figures: map[string]float64{
		"logins": float64(s.Logins), "held": float64(held), "growth_mb": float64(growth) / (1 << 20), "login_ms": ms(took), "closed_s": latest.Seconds(),
	}}
	note = fmt.Sprintf("logins: the server grew by %d MB, aim below %d MB: %s; a real login took %s meanwhile; the last was closed %s after all were open",
		growth>>20, aimGrowth>>20, verdict(growth < aimGrowth), took.Round(time.Millisecond), time.Since(opened).Round(100*time.Millisecond))
	return row, note, err
}

// openLogin sends the head of a login and the first byte of its body.
func openLogin(ctx context.Context, server *rivals.Tutti, from netip.Addr) (*tls.Conn, error) {
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), Timeout: 30 * time.Second},
		Config:    server.Trust(),
	}
	conn, err := dialer.DialContext(ctx, "tcp4", server.URL()[len("https://"):])
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "POST %s/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 8000\r\n\r\n{", api.Prefix)
	return conn.(*tls.Conn), err
}

// outlast waits until the server has closed conn, and says how long that took; meanwhile it trickles, or not.
func outlast(conn *tls.Conn, trickles bool) (time.Duration, error) {
	defer func() { _ = conn.Close() }()
	began := time.Now()
	over := make(chan struct{})
	defer close(over)
	if trickles {
		go func() {
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for {
				select {
				case <-over:
					return
				case <-tick.C:
				}
				if _, err := conn.Write([]byte(" ")); err != nil {
					return
				}
			}
		}()
	}
	if err := conn.SetReadDeadline(began.Add(closeLimit)); err != nil {
		return 0, err
	}
	buffer := make([]byte, 4096)
	for {
		_, err := conn.Read(buffer)
		if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
			return time.Since(began), fmt.Errorf("a half-open login is open %s later", closeLimit)
		}
		if err != nil {
			return time.Since(began), nil // closed, as it should be
		}
	}
}

// login logs the real user in and says how long that took.
func login(ctx context.Context, server *rivals.Tutti) (time.Duration, error) {
	from := stranger(server, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	defer from.CloseIdleConnections()
	body, err := json.Marshal(api.LoginRequest{Name: "ann", Password: password}) //nolint:gosec // a login sends it
	if err != nil {
		return 0, err
	}
	began := time.Now()
	status, text, err := exchange(ctx, from, http.MethodPost, server.LocalhostURL()+api.Prefix+"/session", "application/json", body)
	if err != nil || status >= http.StatusBadRequest {
		return 0, fmt.Errorf("the real login: status %d, %v: %s", status, err, text) //nolint:errorlint // it may be nil
	}
	return time.Since(began), nil
}
