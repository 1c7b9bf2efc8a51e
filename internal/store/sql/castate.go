package sql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

func readAnchor(ctx context.Context, q querier, lock string) (a pki.Anchor, err error) {
	err = q.row(ctx, "SELECT identity, seq, chain FROM ca_anchor WHERE id = 1"+lock).Scan(&a.Identity, &a.Seq, &a.Chain)
	if errors.Is(err, sql.ErrNoRows) {
		return pki.Anchor{}, nil
	}
	return a, err
}

func writeAnchor(ctx context.Context, q querier, a pki.Anchor) error {
	_, err := q.exec(ctx, `INSERT INTO ca_anchor (id, identity, seq, chain) VALUES (1, $1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET identity = excluded.identity, seq = excluded.seq, chain = excluded.chain`, a.Identity, a.Seq, a.Chain)
	return err
}

// CAAnchor implements pki.Store.
func (s *Authority) CAAnchor(ctx context.Context) (pki.Anchor, error) {
	a, err := readAnchor(ctx, s.reads, "")
	return a, explain(err, "read where the CA's records stand")
}

// ChangeCA implements pki.Store.
func (s *Authority) ChangeCA(ctx context.Context, c pki.Change) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		have, err := readAnchor(ctx, q, s.dialect.forUpdate)
		if err != nil || have == c.After {
			return err
		}
		if have != c.Before {
			return fault.New(fault.Conflict,
				"the database stands at change %d of CA %s, not at change %d of CA %s", have.Seq, have.Identity, c.Before.Seq, c.Before.Identity)
		}
		if err := s.issue(ctx, q, c.Issued); err != nil {
			return err
		}
		for _, serial := range c.Revoked {
			if _, err := q.exec(ctx, "UPDATE certificates SET revoked_at = $1 WHERE serial = $2 AND revoked_at = 0", micros(c.At), serialKey(serial)); err != nil {
				return err
			}
		}
		for _, name := range c.Forgotten {
			if err := s.takeName(ctx, q, name); err != nil {
				return err
			}
		}
		if c.Line != nil {
			if err := keepLine(ctx, q, pki.JournalLine{Seq: c.After.Seq, Text: c.Line}); err != nil {
				return err
			}
		}
		return writeAnchor(ctx, q, c.After)
	})
	s.noted(err)
	return explain(err, "apply a change of the CA")
}

func (s *Authority) issue(ctx context.Context, q querier, certs []pki.Certificate) error {
	for _, c := range certs {
		if c.Current {
			if err := s.takeName(ctx, q, c.Certname); err != nil {
				return err
			}
		}
		if err := insertCertificate(ctx, q, c); err != nil {
			return err
		}
		if !c.Current {
			continue
		}
		if err := s.note(ctx, q, compile.NewlySigned, c.Certname, nil); err != nil {
			return err
		}
	}
	return nil
}

func insertCertificate(ctx context.Context, q querier, c pki.Certificate) error {
	if c.PEM == nil {
		c.PEM = []byte{}
	}
	count, err := q.exec(ctx, "INSERT INTO certificates ("+certificateColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (serial) DO NOTHING`, serialKey(c.Serial), c.Certname, c.PEM, micros(c.NotBefore), micros(c.NotAfter),
		micros(c.IssuedAt), micros(c.RevokedAt), bit(c.Current), bit(c.Server))
	if err == nil && count == 0 {
		return fault.New(fault.Conflict, "a certificate with serial number %s exists already", c.Serial)
	}
	return err
}

// takeName makes room for a new certificate or request of name.
func (s *Authority) takeName(ctx context.Context, q querier, name fleet.Certname) error {
	if err := s.lockName(ctx, q, name); err != nil {
		return err
	}
	if _, err := q.exec(ctx, "UPDATE certificates SET current = 0 WHERE certname = $1 AND current = 1", name); err != nil {
		return err
	}
	_, err := q.exec(ctx, "DELETE FROM requests WHERE certname = $1", name)
	return err
}

// RestateCA implements pki.Store.
func (s *Authority) RestateCA(ctx context.Context, to pki.Anchor, certs []pki.Certificate) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		for _, table := range []string{"certificates", "ca_journal"} {
			if _, err := q.exec(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		for _, c := range certs {
			if err := insertCertificate(ctx, q, c); err != nil {
				return err
			}
		}
		return writeAnchor(ctx, q, to)
	})
	return explain(err, "restate the CA's records")
}
