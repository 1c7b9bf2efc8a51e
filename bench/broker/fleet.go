package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/bench/internal/authority"
)

// keyKinds is what clients' keys can be. Puppet makes RSA keys of 4096 bits, older ones of 2048, and elliptic ones where it is told to.
var keyKinds = map[string]func() (crypto.Signer, error){
	"ecdsa-p256": func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) },
	"rsa-2048":   func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) },
	"rsa-4096":   func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 4096) },
}

// fleet is the agents, and the controller that orders them.
type fleet struct {
	settings
	ca         *authority.Authority
	address    string
	names      []string
	identities []tls.Certificate
	controller tls.Certificate
	agents     []*agent
}

// newFleet makes the certificates of all of settings' agents, each with a key of its own.
func newFleet(ca *authority.Authority, address string, s settings) (*fleet, error) {
	f := &fleet{settings: s, ca: ca, address: address}
	return f, f.enrol(keyKinds["ecdsa-p256"])
}

// newFleetOf makes a fleet whose agents have certificates of their own, for one key of a kind: making
// thousands of large ones takes hours, and it is not what is measured.
func newFleetOf(kind string, ca *authority.Authority, address string, s settings) (*fleet, error) {
	key, err := keyKinds[kind]()
	if err != nil {
		return nil, err
	}
	f := &fleet{settings: s, ca: ca, address: address}
	return f, f.enrol(func() (crypto.Signer, error) { return key, nil })
}

// enrol makes the certificates of the controller and of all agents.
func (f *fleet) enrol(newKey func() (crypto.Signer, error)) error {
	for i := range f.Agents + 1 {
		name := "controller"
		if i > 0 {
			name = fmt.Sprintf("node-%05d.example.test", i-1)
		}
		key, err := newKey()
		if err != nil {
			return err
		}
		identity, err := f.ca.Issue(name, key)
		switch {
		case err != nil:
			return err
		case i == 0:
			f.controller = identity
		default:
			f.names, f.identities = append(f.names, name), append(f.identities, identity)
		}
	}
	return nil
}

// dial opens a websocket with one certificate. Sources are spread over addresses: one
// has too few ports for all.
func (f *fleet) dial(ctx context.Context, path string, i int, identity tls.Certificate) (*socket, error) {
	version := uint16(tls.VersionTLS13)
	if f.TLS == "1.2" {
		version = tls.VersionTLS12
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%8))}} //nolint:gosec // below ten
	return open(ctx, dialer, f.address, path, &tls.Config{
		RootCAs: f.ca.Pool(), ServerName: "localhost", Certificates: []tls.Certificate{identity}, MinVersion: version, MaxVersion: version,
	})
}

// connect brings all agents there.
func (f *fleet) connect(ctx context.Context) error {
	f.agents = make([]*agent, f.Agents)
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(f.Workers)
	for i := range f.agents {
		work.Go(func() error {
			socket, err := f.dial(ctx, "/pcp2/agent", i, f.identities[i])
			if err == nil {
				f.agents[i], err = associate(socket)
			}
			if err != nil {
				return fmt.Errorf("agent %d: %w", i, err)
			}
			return nil
		})
	}
	return work.Wait()
}

// close drops all agents at once, and waits for their goroutines.
func (f *fleet) close() {
	for _, a := range f.agents {
		if a != nil {
			a.close()
		}
	}
	f.agents = nil
}
