package pkitest

import (
	"bytes"
	"context"
	"maps"
	"slices"

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
	if c.Line != nil {
		m.journal = append(m.journal, pki.JournalLine{Seq: c.After.Seq, Text: bytes.Clone(c.Line)})
	}
	m.anchor = c.After
	return nil
}

// HoldCA implements pki.Store.
func (m *Memory) HoldCA(ctx context.Context) (release func(), err error) {
	select {
	case m.held <- struct{}{}:
		return func() { <-m.held }, nil
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "the CA is busy")
	}
}

// JournalLines implements pki.Store.
func (m *Memory) JournalLines(_ context.Context, from int64) (lines []pki.JournalLine, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.journal {
		if line.Seq >= from && len(lines) < 3 {
			lines = append(lines, pki.JournalLine{Seq: line.Seq, Text: bytes.Clone(line.Text)})
		}
	}
	return lines, nil
}

// KeepJournal implements pki.Store.
func (m *Memory) KeepJournal(_ context.Context, at pki.Anchor, lines []pki.JournalLine) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.anchor != at {
		return fault.New(fault.Conflict, "the records stand at %+v, not at %+v", m.anchor, at)
	}
	m.journal = slices.Clone(lines)
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
	m.anchor, m.journal = to, nil
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
	c.anchor, c.journal = m.anchor, slices.Clone(m.journal)
	return c
}
