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
	crlNumber *big.Int
	anchor    pki.Anchor
	journal   []pki.JournalLine
	held      chan struct{} // holds one token: the holder of the CA
}

var _ pki.Store = (*Memory)(nil)

// Secrets is a pki.Shared in memory: the key is always right.
type Secrets struct {
	mu   sync.Mutex
	kept map[string][]byte
}

var _ pki.Shared = (*Secrets)(nil)

// Load implements pki.Shared.
func (s *Secrets) Load(_ context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.kept[name]), nil
}

// Keep implements pki.Shared.
func (s *Secrets) Keep(_ context.Context, name string, content []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string][]byte{}
	}
	s.kept[name] = bytes.Clone(content)
	return nil
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		requests:  map[fleet.Certname]pki.Request{},
		certs:     map[string]pki.Certificate{},
		tokens:    map[fleet.Digest]pki.Token{},
		crlNumber: new(big.Int),
		held:      make(chan struct{}, 1),
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

// ReplaceRequest implements pki.Store.
func (m *Memory) ReplaceRequest(_ context.Context, r pki.Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.current(r.Certname); ok && c.RevokedAt.IsZero() {
		return fault.New(fault.Conflict, "%s has a certificate already", r.Certname)
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

// RequestHeads implements pki.Store.
func (m *Memory) RequestHeads(context.Context) ([]pki.RequestHead, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []pki.RequestHead
	for _, name := range slices.Sorted(maps.Keys(m.requests)) {
		all = append(all, m.requests[name].RequestHead)
	}
	slices.SortStableFunc(all, func(a, b pki.RequestHead) int { return a.ReceivedAt.Compare(b.ReceivedAt) })
	return all, nil
}

// DropRequests implements pki.Store.
func (m *Memory) DropRequests(_ context.Context, names []fleet.Certname) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.requests)
	for _, name := range names {
		delete(m.requests, name)
	}
	return before - len(m.requests), nil
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

// ServerCertificates implements pki.Store.
func (m *Memory) ServerCertificates(context.Context) ([]pki.Certificate, error) {
	return m.matching(func(c pki.Certificate) bool { return c.Server }), nil
}

// Unrevoked implements pki.Store.
func (m *Memory) Unrevoked(_ context.Context, name fleet.Certname) ([]pki.Certificate, error) {
	return m.matching(func(c pki.Certificate) bool { return c.Certname == name && !c.Server && c.RevokedAt.IsZero() }), nil
}

// Ended implements pki.Store.
func (m *Memory) Ended(_ context.Context, names []fleet.Certname, now time.Time) (map[fleet.Certname]pki.Ended, error) {
	ended := map[fleet.Certname]pki.Ended{}
	for _, name := range names {
		certs := m.matching(func(c pki.Certificate) bool { return c.Certname == name && !c.Server })
		if e, all := pki.EndedOf(certs, now); all {
			ended[name] = e
		}
	}
	return ended, nil
}

// History implements pki.Store.
func (m *Memory) History(context.Context) ([]pki.Certificate, error) {
	return m.matching(func(pki.Certificate) bool { return true }), nil
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

// PruneCertificates implements pki.Store.
func (m *Memory) PruneCertificates(_ context.Context, before time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := len(m.certs)
	maps.DeleteFunc(m.certs, func(_ string, c pki.Certificate) bool { return c.Spent(before) })
	return all - len(m.certs), nil
}

// PruneJoinTokens implements pki.Store.
func (m *Memory) PruneJoinTokens(_ context.Context, before time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := len(m.tokens)
	maps.DeleteFunc(m.tokens, func(_ fleet.Digest, t pki.Token) bool { return t.ExpiresAt.Before(before) })
	return all - len(m.tokens), nil
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

// Token implements pki.Store.
func (m *Memory) Token(_ context.Context, hash fleet.Digest) (pki.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.tokens[hash]
	if !ok {
		return t, fault.New(fault.NotFound, "there is no such join token")
	}
	return t, nil
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

// DropTokens implements pki.Store.
func (m *Memory) DropTokens(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.tokens)
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
