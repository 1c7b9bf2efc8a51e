package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// lockName lets one process at a time change who a name stands for.
func (s *Store) lockName(ctx context.Context, q querier, name fleet.Certname) error {
	if !s.dialect.postgres {
		return nil
	}
	_, err := q.exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 2))", string(name))
	return err
}

func scanRequest(row scanner) (r pki.Request, err error) {
	err = row.Scan(&r.Certname, &r.PEM, at(&r.ReceivedAt))
	return r, err
}

// SaveRequest implements pki.Store.
func (s *Store) SaveRequest(ctx context.Context, r pki.Request) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if err := s.lockName(ctx, q, r.Certname); err != nil {
			return err
		}
		good, err := one[int64](q.row(ctx, "SELECT COUNT(*) FROM certificates WHERE certname = $1 AND current = 1 AND revoked_at = 0", r.Certname))
		if err != nil {
			return err
		}
		if good > 0 {
			return fault.New(fault.Conflict, "%s has a certificate already", r.Certname)
		}
		if count, err := q.exec(ctx, "INSERT INTO requests (certname, pem, received_at) VALUES ($1, $2, $3) ON CONFLICT (certname) DO NOTHING",
			r.Certname, r.PEM, micros(r.ReceivedAt)); err != nil || count > 0 {
			return err
		}
		old, err := one[[]byte](q.row(ctx, "SELECT pem FROM requests WHERE certname = $1", r.Certname))
		if err == nil && !bytes.Equal(old, r.PEM) {
			return fault.New(fault.Conflict, "another certificate request of %s waits already", r.Certname)
		}
		return err
	})
	return explain(err, "save a certificate request of %s", r.Certname)
}

// Request implements pki.Store.
func (s *Store) Request(ctx context.Context, name fleet.Certname) (pki.Request, error) {
	r, err := scanRequest(s.reads.row(ctx, "SELECT certname, pem, received_at FROM requests WHERE certname = $1", name))
	return r, explain(missing(err, "no certificate request of %s waits", name), "read a certificate request")
}

// Requests implements pki.Store.
func (s *Store) Requests(ctx context.Context) ([]pki.Request, error) {
	list, err := collect(ctx, s.reads, scanRequest, "SELECT certname, pem, received_at FROM requests ORDER BY certname")
	return list, explain(err, "list certificate requests")
}

// DeleteRequest implements pki.Store.
func (s *Store) DeleteRequest(ctx context.Context, name fleet.Certname) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		count, err := q.exec(ctx, "DELETE FROM requests WHERE certname = $1", name)
		if err == nil && count == 0 {
			return fault.New(fault.NotFound, "no certificate request of %s waits", name)
		}
		return err
	})
	return explain(err, "delete a certificate request")
}

// NextSerial implements pki.Store.
func (s *Store) NextSerial(ctx context.Context) (*big.Int, error) { return s.next(ctx, "serial") }

// RaiseSerial implements pki.Store.
func (s *Store) RaiseSerial(ctx context.Context, n *big.Int) error { return s.raise(ctx, "serial", n) }

// NextCRLNumber implements pki.Store.
func (s *Store) NextCRLNumber(ctx context.Context) (*big.Int, error) { return s.next(ctx, "crl") }

// RaiseCRLNumber implements pki.Store.
func (s *Store) RaiseCRLNumber(ctx context.Context, n *big.Int) error { return s.raise(ctx, "crl", n) }

func (s *Store) next(ctx context.Context, counter string) (*big.Int, error) {
	var n *big.Int
	err := s.count(ctx, counter, func(value *big.Int) *big.Int {
		n = new(big.Int).Add(value, big.NewInt(1))
		return n
	})
	return n, err
}

func (s *Store) raise(ctx context.Context, counter string, n *big.Int) error {
	return s.count(ctx, counter, func(value *big.Int) *big.Int {
		if value.Cmp(n) >= 0 {
			return value
		}
		return n
	})
}

// count replaces a counter's value.
func (s *Store) count(ctx context.Context, counter string, step func(*big.Int) *big.Int) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		text, err := one[string](q.row(ctx, "SELECT value FROM counters WHERE name = $1"+s.dialect.forUpdate, counter))
		if err != nil {
			return err
		}
		value, ok := new(big.Int).SetString(text, 16)
		if !ok {
			return fmt.Errorf("counter %s holds %q", counter, text)
		}
		_, err = q.exec(ctx, "UPDATE counters SET value = $1 WHERE name = $2", step(value).Text(16), counter)
		return err
	})
	return explain(err, "count %s numbers", counter)
}

const certificateColumns = "serial, certname, pem, not_before, not_after, issued_at, revoked_at, current"

// serialKey writes a serial number so that text order is the order of numbers.
func serialKey(n *big.Int) string { return fmt.Sprintf("%064x", n) }

func scanCertificate(row scanner) (c pki.Certificate, err error) {
	var serial string
	err = row.Scan(&serial, &c.Certname, &c.PEM, at(&c.NotBefore), at(&c.NotAfter), at(&c.IssuedAt), at(&c.RevokedAt), &c.Current)
	if err != nil {
		return c, err
	}
	var ok bool
	if c.Serial, ok = new(big.Int).SetString(serial, 16); !ok {
		return c, fmt.Errorf("a certificate has the serial number %q", serial)
	}
	return c, nil
}

// SaveCertificate implements pki.Store.
func (s *Store) SaveCertificate(ctx context.Context, c pki.Certificate) error {
	if c.PEM == nil {
		c.PEM = []byte{}
	}
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if err := s.lockName(ctx, q, c.Certname); err != nil {
			return err
		}
		if c.Current {
			if err := takeName(ctx, q, c.Certname); err != nil {
				return err
			}
		}
		count, err := q.exec(ctx, "INSERT INTO certificates ("+certificateColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (serial) DO NOTHING`, serialKey(c.Serial), c.Certname, c.PEM, micros(c.NotBefore), micros(c.NotAfter),
			micros(c.IssuedAt), micros(c.RevokedAt), bit(c.Current))
		if err == nil && count == 0 {
			return fault.New(fault.Conflict, "a certificate with serial number %s exists already", c.Serial)
		}
		if err != nil || !c.Current {
			return err
		}
		return s.note(ctx, q, compile.NewlySigned, c.Certname, nil)
	})
	s.noted(err)
	return explain(err, "save a certificate of %s", c.Certname)
}

// takeName makes room for a new certificate of name.
func takeName(ctx context.Context, q querier, name fleet.Certname) error {
	if _, err := q.exec(ctx, "UPDATE certificates SET current = 0 WHERE certname = $1 AND current = 1", name); err != nil {
		return err
	}
	_, err := q.exec(ctx, "DELETE FROM requests WHERE certname = $1", name)
	return err
}

// Certificate implements pki.Store.
func (s *Store) Certificate(ctx context.Context, name fleet.Certname) (pki.Certificate, error) {
	c, err := scanCertificate(s.reads.row(ctx, "SELECT "+certificateColumns+" FROM certificates WHERE certname = $1 AND current = 1", name))
	return c, explain(missing(err, "there is no certificate of %s", name), "read a certificate")
}

// Certificates implements pki.Store.
func (s *Store) Certificates(ctx context.Context) ([]pki.Certificate, error) {
	list, err := collect(ctx, s.reads, scanCertificate, "SELECT "+certificateColumns+" FROM certificates WHERE current = 1 ORDER BY certname")
	return list, explain(err, "list certificates")
}

// Revoke implements pki.Store.
func (s *Store) Revoke(ctx context.Context, name fleet.Certname, now time.Time) (marked []pki.Certificate, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		rows, err := collect(ctx, q, scanCertificate, "SELECT "+certificateColumns+` FROM certificates
			WHERE certname = $1 AND revoked_at = 0 ORDER BY serial`+s.dialect.forUpdate, name)
		if err != nil {
			return err
		}
		if _, err := q.exec(ctx, "UPDATE certificates SET revoked_at = $1 WHERE certname = $2 AND revoked_at = 0", micros(now), name); err != nil {
			return err
		}
		for i := range rows {
			rows[i].RevokedAt = instant(micros(now))
		}
		marked = rows
		return nil
	})
	return marked, explain(err, "revoke %s", name)
}

// Revoked implements pki.Store.
func (s *Store) Revoked(ctx context.Context) ([]pki.Certificate, error) {
	list, err := collect(ctx, s.reads, scanCertificate, "SELECT "+certificateColumns+" FROM certificates WHERE revoked_at <> 0 ORDER BY serial")
	return list, explain(err, "list revoked certificates")
}

// Forget implements pki.Store.
func (s *Store) Forget(ctx context.Context, name fleet.Certname) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if err := s.lockName(ctx, q, name); err != nil {
			return err
		}
		certified, err := q.exec(ctx, "UPDATE certificates SET current = 0 WHERE certname = $1 AND current = 1", name)
		if err != nil {
			return err
		}
		waiting, err := q.exec(ctx, "DELETE FROM requests WHERE certname = $1", name)
		if err == nil && certified == 0 && waiting == 0 {
			return fault.New(fault.NotFound, "there is no certificate and no request of %s", name)
		}
		return err
	})
	return explain(err, "forget %s", name)
}

// SaveToken implements pki.Store.
func (s *Store) SaveToken(ctx context.Context, t pki.Token) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		count, err := q.exec(ctx, "INSERT INTO join_tokens (hash, certname, expires_at) VALUES ($1, $2, $3) ON CONFLICT (hash) DO NOTHING",
			t.Hash, t.Certname, micros(t.ExpiresAt))
		if err == nil && count == 0 {
			return fault.New(fault.Conflict, "that join token exists already")
		}
		return err
	})
	return explain(err, "save a join token")
}

// SpendToken implements pki.Store.
func (s *Store) SpendToken(ctx context.Context, hash fleet.Digest, name fleet.Certname, now time.Time) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		t := pki.Token{Hash: hash}
		err := q.row(ctx, "SELECT certname, expires_at FROM join_tokens WHERE hash = $1"+s.dialect.forUpdate, hash).
			Scan(&t.Certname, at(&t.ExpiresAt))
		if errors.Is(err, sql.ErrNoRows) || err == nil && !t.Good(name, now) {
			return fault.New(fault.NotFound, "there is no such join token for %s", name)
		}
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, "DELETE FROM join_tokens WHERE hash = $1", hash)
		return err
	})
	return explain(err, "spend a join token")
}
