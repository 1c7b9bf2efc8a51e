package pkitest

import (
	"context"
	"maps"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// CAAnchor implements pki.Store.
func (m *Memory) CAAnchor(context.Context) (pki.Anchor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.anchor, nil
}

// ChangeCA implements pki.Store.
func (m *Memory) ChangeCA(_ context.Context, c pki.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.anchor == c.After {
		return nil
	}
	if m.anchor != c.Before {
		return fault.New(fault.Conflict, "the records stand at %+v, not at %+v", m.anchor, c.Before)
	}
	for _, cert := range c.Issued {
		if _, known := m.certs[cert.Serial.String()]; known {
			return fault.New(fault.Conflict, "a certificate with serial number %s exists already", cert.Serial)
		}
	}
	for _, cert := range c.Issued {
		if cert.Current {
			m.free(cert.Certname)
		}
		m.certs[cert.Serial.String()] = copyCertificate(cert)
	}
	for _, serial := range c.Revoked {
		if cert, known := m.certs[serial.String()]; known && cert.RevokedAt.IsZero() {
			cert.RevokedAt = c.At.UTC()
			m.certs[serial.String()] = cert
		}
	}
	for _, name := range c.Forgotten {
		m.free(name)
	}
	m.anchor = c.After
	return nil
}

// free takes the current mark and the request from a name.
func (m *Memory) free(name fleet.Certname) {
	if c, ok := m.current(name); ok {
		c.Current = false
		m.certs[c.Serial.String()] = c
	}
	delete(m.requests, name)
}

// RestateCA implements pki.Store.
func (m *Memory) RestateCA(_ context.Context, to pki.Anchor, certs []pki.Certificate) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.certs)
	for _, cert := range certs {
		m.certs[cert.Serial.String()] = copyCertificate(cert)
	}
	m.anchor = to
	return nil
}

// Clone is a copy of what the store holds now: a backup.
func (m *Memory) Clone() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMemory()
	for name, r := range m.requests {
		c.requests[name] = copyRequest(r)
	}
	for serial, cert := range m.certs {
		c.certs[serial] = copyCertificate(cert)
	}
	maps.Copy(c.tokens, m.tokens)
	c.crlNumber.Set(m.crlNumber)
	c.anchor = m.anchor
	return c
}
