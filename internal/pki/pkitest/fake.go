// Package pkitest holds the conformance suite of pki.Store and the in-memory
// store that passes it. Tests of everything above pki run on Memory.
//
// Errors: Memory returns the faults that the port names. It is safe for
// concurrent use.
package pkitest

import (
	"bytes"
	"context"
	"maps"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// Memory is a pki.Store that forgets everything when it is dropped.
type Memory struct {
	mu        sync.Mutex
	requests  map[fleet.Certname]pki.Request
	certs     map[string]pki.Certificate // by serial number
	tokens    map[fleet.Digest]pki.Token
	serial    *big.Int
	crlNumber *big.Int
}

var _ pki.Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		requests:  map[fleet.Certname]pki.Request{},
		certs:     map[string]pki.Certificate{},
		tokens:    map[fleet.Digest]pki.Token{},
		serial:    new(big.Int),
		crlNumber: new(big.Int),
	}
}

// SaveRequest implements pki.Store.
func (m *Memory) SaveRequest(_ context.Context, r pki.Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.current(r.Certname); ok && c.RevokedAt.IsZero() {
		return fault.New(fault.Conflict, "%s has a certificate already", r.Certname)
	}
	if old, ok := m.requests[r.Certname]; ok {
		if !bytes.Equal(old.PEM, r.PEM) {
			return fault.New(fault.Conflict, "another certificate request of %s waits already", r.Certname)
		}
		return nil
	}
	m.requests[r.Certname] = copyRequest(r)
	return nil
}

// Request implements pki.Store.
func (m *Memory) Request(_ context.Context, name fleet.Certname) (pki.Request, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.requests[name]
	if !ok {
		return pki.Request{}, noRequest(name)
	}
	return copyRequest(r), nil
}

// Requests implements pki.Store.
func (m *Memory) Requests(context.Context) ([]pki.Request, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []pki.Request
	for _, name := range slices.Sorted(maps.Keys(m.requests)) {
		all = append(all, copyRequest(m.requests[name]))
	}
	return all, nil
}

// DeleteRequest implements pki.Store.
func (m *Memory) DeleteRequest(_ context.Context, name fleet.Certname) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.requests[name]; !ok {
		return noRequest(name)
	}
	delete(m.requests, name)
	return nil
}

// NextSerial implements pki.Store.
func (m *Memory) NextSerial(context.Context) (*big.Int, error) { return m.next(m.serial), nil }

// RaiseSerial implements pki.Store.
func (m *Memory) RaiseSerial(_ context.Context, n *big.Int) error {
	m.raise(m.serial, n)
	return nil
}

// NextCRLNumber implements pki.Store.
func (m *Memory) NextCRLNumber(context.Context) (*big.Int, error) { return m.next(m.crlNumber), nil }

// RaiseCRLNumber implements pki.Store.
func (m *Memory) RaiseCRLNumber(_ context.Context, n *big.Int) error {
	m.raise(m.crlNumber, n)
	return nil
}

func (m *Memory) next(counter *big.Int) *big.Int {
	m.mu.Lock()
	defer m.mu.Unlock()
	counter.Add(counter, big.NewInt(1))
	return new(big.Int).Set(counter)
}

func (m *Memory) raise(counter, n *big.Int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n.Cmp(counter) > 0 {
		counter.Set(n)
	}
}

// SaveCertificate implements pki.Store.
func (m *Memory) SaveCertificate(_ context.Context, c pki.Certificate) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.certs[c.Serial.String()]; ok {
		return fault.New(fault.Conflict, "a certificate with serial number %s exists already", c.Serial)
	}
	if c.Current {
		if old, ok := m.current(c.Certname); ok {
			old.Current = false
			m.certs[old.Serial.String()] = old
		}
		delete(m.requests, c.Certname)
	}
	m.certs[c.Serial.String()] = copyCertificate(c)
	return nil
}

// Certificate implements pki.Store.
func (m *Memory) Certificate(_ context.Context, name fleet.Certname) (pki.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.current(name)
	if !ok {
		return pki.Certificate{}, fault.New(fault.NotFound, "there is no certificate of %s", name)
	}
	return copyCertificate(c), nil
}

func (m *Memory) current(name fleet.Certname) (pki.Certificate, bool) {
	for _, c := range m.certs {
		if c.Current && c.Certname == name {
			return c, true
		}
	}
	return pki.Certificate{}, false
}

// Certificates implements pki.Store.
func (m *Memory) Certificates(context.Context) ([]pki.Certificate, error) {
	all := m.matching(func(c pki.Certificate) bool { return c.Current })
	slices.SortFunc(all, func(a, b pki.Certificate) int { return bytes.Compare([]byte(a.Certname), []byte(b.Certname)) })
	return all, nil
}

// Revoked implements pki.Store.
func (m *Memory) Revoked(context.Context) ([]pki.Certificate, error) {
	return m.matching(func(c pki.Certificate) bool { return !c.RevokedAt.IsZero() }), nil
}

// matching lists certificates by serial number.
func (m *Memory) matching(want func(pki.Certificate) bool) []pki.Certificate {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []pki.Certificate
	for _, c := range m.certs {
		if want(c) {
			found = append(found, copyCertificate(c))
		}
	}
	slices.SortFunc(found, bySerial)
	return found
}

// Revoke implements pki.Store.
func (m *Memory) Revoke(_ context.Context, name fleet.Certname, at time.Time) ([]pki.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var marked []pki.Certificate
	for serial, c := range m.certs {
		if c.Certname != name || !c.RevokedAt.IsZero() {
			continue
		}
		c.RevokedAt = at.UTC()
		m.certs[serial] = c
		marked = append(marked, copyCertificate(c))
	}
	slices.SortFunc(marked, bySerial)
	return marked, nil
}

// Forget implements pki.Store.
func (m *Memory) Forget(_ context.Context, name fleet.Certname) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, certified := m.current(name)
	if certified {
		c.Current = false
		m.certs[c.Serial.String()] = c
	}
	_, waiting := m.requests[name]
	delete(m.requests, name)
	if !certified && !waiting {
		return fault.New(fault.NotFound, "there is no certificate and no request of %s", name)
	}
	return nil
}

// SaveToken implements pki.Store.
func (m *Memory) SaveToken(_ context.Context, t pki.Token) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.tokens[t.Hash]; ok {
		return fault.New(fault.Conflict, "that join token exists already")
	}
	m.tokens[t.Hash] = t
	return nil
}

// SpendToken implements pki.Store.
func (m *Memory) SpendToken(_ context.Context, hash fleet.Digest, name fleet.Certname, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t, ok := m.tokens[hash]; !ok || !t.Good(name, now) {
		return fault.New(fault.NotFound, "there is no such join token for %s", name)
	}
	delete(m.tokens, hash)
	return nil
}

func bySerial(a, b pki.Certificate) int { return a.Serial.Cmp(b.Serial) }

func noRequest(name fleet.Certname) error {
	return fault.New(fault.NotFound, "no certificate request of %s waits", name)
}

func copyRequest(r pki.Request) pki.Request {
	r.PEM, r.ReceivedAt = bytes.Clone(r.PEM), r.ReceivedAt.UTC()
	return r
}

func copyCertificate(c pki.Certificate) pki.Certificate {
	c.PEM, c.Serial = bytes.Clone(c.PEM), new(big.Int).Set(c.Serial)
	c.NotBefore, c.NotAfter, c.IssuedAt = c.NotBefore.UTC(), c.NotAfter.UTC(), c.IssuedAt.UTC()
	if !c.RevokedAt.IsZero() {
		c.RevokedAt = c.RevokedAt.UTC()
	}
	return c
}
