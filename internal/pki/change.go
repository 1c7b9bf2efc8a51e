package pki

import (
	"encoding/json"
	"math/big"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Anchor is how far a CA has come: its identity, the number of its last change,
// and a digest over every change up to it. Journal and store each have one; records
// with another identity are another CA's, and of two with the same number and
// different chains one is a copy that went its own way.
type Anchor struct {
	Identity string `json:"identity"`
	Seq      int64  `json:"seq"`
	Chain    string `json:"chain"`
}

// Change is one step of a CA, from one anchor to the next: certificates that were
// issued, serial numbers that were revoked, names that may be asked for again.
type Change struct {
	Before, After Anchor
	At            time.Time
	Issued        []Certificate
	Revoked       []*big.Int
	Forgotten     []fleet.Certname
	// Line is how the journal says it. Stores keep it where several authorities share the CA; nil: nobody else needs it.
	Line []byte
}

// ended is what a change revokes, by number.
func (c Change) ended() (certs []Certificate) {
	for _, serial := range c.Revoked {
		certs = append(certs, Certificate{Serial: serial})
	}
	for _, cert := range c.Issued {
		if !cert.RevokedAt.IsZero() {
			certs = append(certs, cert)
		}
	}
	return certs
}

// entry is a change as the journal keeps it.
type entry struct {
	Seq       int64            `json:"seq"`
	At        time.Time        `json:"at"`
	Issued    []entryCert      `json:"issued,omitempty"`
	Revoked   []string         `json:"revoked,omitempty"` // hexadecimal
	Forgotten []fleet.Certname `json:"forgotten,omitempty"`
}

type entryCert struct {
	Certname  fleet.Certname `json:"certname,omitempty"`
	Serial    string         `json:"serial"` // hexadecimal
	PEM       string         `json:"pem,omitempty"`
	NotBefore time.Time      `json:"not_before"`
	NotAfter  time.Time      `json:"not_after"`
	IssuedAt  time.Time      `json:"issued_at"`
	RevokedAt *time.Time     `json:"revoked_at,omitempty"`
	Current   bool           `json:"current,omitempty"`
	Server    bool           `json:"server,omitempty"`
}

func (c Change) encode() ([]byte, error) {
	e := entry{Seq: c.After.Seq, At: c.At, Forgotten: c.Forgotten}
	for _, serial := range c.Revoked {
		e.Revoked = append(e.Revoked, serial.Text(16))
	}
	for _, cert := range c.Issued {
		kept := entryCert{
			Certname: cert.Certname, Serial: cert.Serial.Text(16), PEM: string(cert.PEM), NotBefore: cert.NotBefore.UTC(),
			NotAfter: cert.NotAfter.UTC(), IssuedAt: cert.IssuedAt.UTC(), Current: cert.Current, Server: cert.Server,
		}
		if at := cert.RevokedAt.UTC(); !cert.RevokedAt.IsZero() {
			kept.RevokedAt = &at
		}
		e.Issued = append(e.Issued, kept)
	}
	return json.Marshal(e)
}

func decodeChange(text []byte) (Change, error) {
	var e entry
	if err := json.Unmarshal(text, &e); err != nil {
		return Change{}, err
	}
	c := Change{At: e.At, Forgotten: e.Forgotten, After: Anchor{Seq: e.Seq}}
	for _, number := range e.Revoked {
		serial, err := parseSerial(number)
		if err != nil {
			return Change{}, err
		}
		c.Revoked = append(c.Revoked, serial)
	}
	for _, kept := range e.Issued {
		serial, err := parseSerial(kept.Serial)
		if err != nil {
			return Change{}, err
		}
		cert := Certificate{
			Certname: kept.Certname, Serial: serial, PEM: []byte(kept.PEM), NotBefore: kept.NotBefore,
			NotAfter: kept.NotAfter, IssuedAt: kept.IssuedAt, Current: kept.Current, Server: kept.Server,
		}
		if kept.RevokedAt != nil {
			cert.RevokedAt = *kept.RevokedAt
		}
		c.Issued = append(c.Issued, cert)
	}
	return c, nil
}

func parseSerial(number string) (*big.Int, error) {
	serial, ok := new(big.Int).SetString(number, 16)
	if !ok || serial.Sign() < 0 || serial.BitLen() > 160 {
		return nil, fault.New(fault.Invalid, "%.50q is no serial number", number)
	}
	return serial, nil
}

// ledger is what a row of changes adds up to.
type ledger struct {
	certs   map[string]*Certificate // by serial number
	current map[fleet.Certname]*Certificate
}

func newLedger() *ledger {
	return &ledger{certs: map[string]*Certificate{}, current: map[fleet.Certname]*Certificate{}}
}

func (l *ledger) apply(c Change) {
	for _, cert := range c.Issued {
		l.add(cert)
	}
	for _, serial := range c.Revoked {
		if cert := l.certs[serial.String()]; cert != nil && cert.RevokedAt.IsZero() {
			cert.RevokedAt = c.At
		}
	}
	for _, name := range c.Forgotten {
		if cert := l.current[name]; cert != nil {
			cert.Current = false
			delete(l.current, name)
		}
	}
}

func (l *ledger) add(cert Certificate) {
	l.certs[cert.Serial.String()] = &cert
	if !cert.Current {
		return
	}
	if old := l.current[cert.Certname]; old != nil {
		old.Current = false
	}
	l.current[cert.Certname] = &cert
}

// merge adds what only others know: certificates, and that one was revoked. What
// stands for a name stays.
func (l *ledger) merge(certs []Certificate) {
	for _, cert := range certs {
		known := l.certs[cert.Serial.String()]
		switch {
		case known == nil:
			cert.Current = cert.Current && l.current[cert.Certname] == nil
			l.add(cert)
		case known.RevokedAt.IsZero():
			known.RevokedAt = cert.RevokedAt
		}
	}
}

// rows lists the certificates by serial number.
func (l *ledger) rows() []Certificate {
	rows := make([]Certificate, 0, len(l.certs))
	for _, cert := range l.certs {
		rows = append(rows, *cert)
	}
	slices.SortFunc(rows, func(a, b Certificate) int { return a.Serial.Cmp(b.Serial) })
	return rows
}
