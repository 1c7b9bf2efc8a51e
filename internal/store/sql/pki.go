package sql

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// Authority is what the CA issued, revoked and was asked for.
type Authority struct {
	*base
	held chan struct{} // SQLite: holds one token of whoever holds the CA
}

// lockName lets one process at a time change who a name stands for.
func (s *Authority) lockName(ctx context.Context, q querier, name fleet.Certname) error {
	if !s.dialect.postgres {
		return nil
	}
	_, err := q.exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 2))", string(name))
	return err
}

func scanRequest(row scanner) (r pki.Request, err error) {
	err = row.Scan(&r.Certname, &r.PEM, at(&r.ReceivedAt), &r.From)
	return r, err
}

func scanRequestHead(row scanner) (h pki.RequestHead, err error) {
	err = row.Scan(&h.Certname, at(&h.ReceivedAt), &h.From)
	return h, err
}

const insertRequest = "INSERT INTO requests (certname, pem, received_at, origin) VALUES ($1, $2, $3, $4) ON CONFLICT (certname) DO "

// free is a Conflict if a name has a good certificate; nobody changes that before the transaction ends.
func (s *Authority) free(ctx context.Context, q querier, name fleet.Certname) error {
	if err := s.lockName(ctx, q, name); err != nil {
		return err
	}
	good, err := one[int64](q.row(ctx, "SELECT COUNT(*) FROM certificates WHERE certname = $1 AND current = 1 AND revoked_at = 0", name))
	if err == nil && good > 0 {
		return fault.New(fault.Conflict, "%s has a certificate already", name)
	}
	return err
}

// ReplaceRequest implements pki.Store.
func (s *Authority) ReplaceRequest(ctx context.Context, r pki.Request) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if err := s.free(ctx, q, r.Certname); err != nil {
			return err
		}
		_, err := q.exec(ctx, insertRequest+"UPDATE SET pem = excluded.pem, received_at = excluded.received_at, origin = excluded.origin",
			r.Certname, r.PEM, micros(r.ReceivedAt), r.From)
		return err
	})
	return explain(err, "replace a certificate request of %s", r.Certname)
}

// SaveRequest implements pki.Store.
func (s *Authority) SaveRequest(ctx context.Context, r pki.Request) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		if err := s.free(ctx, q, r.Certname); err != nil {
			return err
		}
		if count, err := q.exec(ctx, insertRequest+"NOTHING", r.Certname, r.PEM, micros(r.ReceivedAt), r.From); err != nil || count > 0 {
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
func (s *Authority) Request(ctx context.Context, name fleet.Certname) (pki.Request, error) {
	r, err := scanRequest(s.reads.row(ctx, "SELECT certname, pem, received_at, origin FROM requests WHERE certname = $1", name))
	return r, explain(missing(err, "no certificate request of %s waits", name), "read a certificate request")
}

// Requests implements pki.Store.
func (s *Authority) Requests(ctx context.Context) ([]pki.Request, error) {
	list, err := collect(ctx, s.reads, scanRequest, "SELECT certname, pem, received_at, origin FROM requests ORDER BY certname")
	return list, explain(err, "list certificate requests")
}

// RequestHeads implements pki.Store.
func (s *Authority) RequestHeads(ctx context.Context) ([]pki.RequestHead, error) {
	list, err := collect(ctx, s.reads, scanRequestHead, "SELECT certname, received_at, origin FROM requests ORDER BY received_at, certname")
	return list, explain(err, "count certificate requests")
}

// DropRequests implements pki.Store.
func (s *Authority) DropRequests(ctx context.Context, names []fleet.Certname) (dropped int, err error) {
	err = s.write(ctx, func(ctx context.Context, q querier) error {
		dropped = 0
		for _, name := range names {
			count, err := q.exec(ctx, "DELETE FROM requests WHERE certname = $1", name)
			if err != nil {
				return err
			}
			dropped += int(count)
		}
		return nil
	})
	return dropped, explain(err, "drop certificate requests")
}

// DeleteRequest implements pki.Store.
func (s *Authority) DeleteRequest(ctx context.Context, name fleet.Certname) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		count, err := q.exec(ctx, "DELETE FROM requests WHERE certname = $1", name)
		if err == nil && count == 0 {
			return fault.New(fault.NotFound, "no certificate request of %s waits", name)
		}
		return err
	})
	return explain(err, "delete a certificate request")
}

// NextCRLNumber implements pki.Store.
func (s *Authority) NextCRLNumber(ctx context.Context) (*big.Int, error) { return s.next(ctx, "crl") }

// RaiseCRLNumber implements pki.Store.
func (s *Authority) RaiseCRLNumber(ctx context.Context, n *big.Int) error {
	return s.raise(ctx, "crl", n)
}

func (s *Authority) next(ctx context.Context, counter string) (*big.Int, error) {
	var n *big.Int
	err := s.count(ctx, counter, func(value *big.Int) *big.Int {
		n = new(big.Int).Add(value, big.NewInt(1))
		return n
	})
	return n, err
}

func (s *Authority) raise(ctx context.Context, counter string, n *big.Int) error {
	return s.count(ctx, counter, func(value *big.Int) *big.Int {
		if value.Cmp(n) >= 0 {
			return value
		}
		return n
	})
}

// count replaces a counter's value.
func (s *Authority) count(ctx context.Context, counter string, step func(*big.Int) *big.Int) error {
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

const certificateColumns = "serial, certname, pem, not_before, not_after, issued_at, revoked_at, current, server"

// serialKey writes a serial number so that text order is the order of numbers.
func serialKey(n *big.Int) string { return fmt.Sprintf("%064x", n) }

func scanCertificate(row scanner) (c pki.Certificate, err error) {
	var serial string
	err = row.Scan(&serial, &c.Certname, &c.PEM, at(&c.NotBefore), at(&c.NotAfter), at(&c.IssuedAt), at(&c.RevokedAt), &c.Current, &c.Server)
	if err != nil {
		return c, err
	}
	var ok bool
	if c.Serial, ok = new(big.Int).SetString(serial, 16); !ok {
		return c, fmt.Errorf("a certificate has the serial number %q", serial)
	}
	return c, nil
}

// Certificate implements pki.Store.
func (s *Authority) Certificate(ctx context.Context, name fleet.Certname) (pki.Certificate, error) {
	c, err := scanCertificate(s.reads.row(ctx, "SELECT "+certificateColumns+" FROM certificates WHERE certname = $1 AND current = 1", name))
	return c, explain(missing(err, "there is no certificate of %s", name), "read a certificate")
}

// Certificates implements pki.Store.
func (s *Authority) Certificates(ctx context.Context) ([]pki.Certificate, error) {
	list, err := collect(ctx, s.reads, scanCertificate, "SELECT "+certificateColumns+" FROM certificates WHERE current = 1 ORDER BY certname")
	return list, explain(err, "list certificates")
}

// ServerCertificates implements pki.Store.
func (s *Authority) ServerCertificates(ctx context.Context) ([]pki.Certificate, error) {
	list, err := collect(ctx, s.reads, scanCertificate, "SELECT "+certificateColumns+" FROM certificates WHERE server = 1 ORDER BY serial")
	return list, explain(err, "list the server's certificates")
}

// Unrevoked implements pki.Store.
func (s *Authority) Unrevoked(ctx context.Context, name fleet.Certname) ([]pki.Certificate, error) {
	list, err := collect(ctx, s.reads, scanCertificate, "SELECT "+certificateColumns+` FROM certificates
		WHERE certname = $1 AND revoked_at = 0 AND server = 0 ORDER BY serial`, name)
	return list, explain(err, "list the certificates of %s", name)
}

// Ended implements pki.Store.
func (s *Authority) Ended(ctx context.Context, names []fleet.Certname, now time.Time) (map[fleet.Certname]pki.Ended, error) {
	list, err := jsonNames(names)
	if err != nil {
		return nil, err
	}
	certs, err := collect(ctx, s.reads, scanCertificate, "SELECT "+certificateColumns+` FROM certificates
		WHERE server = 0 AND certname IN (SELECT value FROM `+s.words().Elements("$1")+` l) ORDER BY certname`, list)
	if err != nil {
		return nil, explain(err, "read the certificates of nodes")
	}
	of := map[fleet.Certname][]pki.Certificate{}
	for _, c := range certs {
		of[c.Certname] = append(of[c.Certname], c)
	}
	ended := map[fleet.Certname]pki.Ended{}
	for name, certs := range of {
		if e, all := pki.EndedOf(certs, now); all {
			ended[name] = e
		}
	}
	return ended, nil
}

// History implements pki.Store.
func (s *Authority) History(ctx context.Context) ([]pki.Certificate, error) {
	list, err := collect(ctx, s.reads, scanCertificate, "SELECT "+certificateColumns+" FROM certificates ORDER BY serial")
	return list, explain(err, "list all certificates")
}

// Revoked implements pki.Store.
func (s *Authority) Revoked(ctx context.Context) ([]pki.Certificate, error) {
	list, err := collect(ctx, s.reads, scanCertificate, "SELECT "+certificateColumns+" FROM certificates WHERE revoked_at <> 0 ORDER BY serial")
	return list, explain(err, "list revoked certificates")
}

// SaveToken implements pki.Store.
func (s *Authority) SaveToken(ctx context.Context, t pki.Token) error {
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

// Token implements pki.Store.
func (s *Authority) Token(ctx context.Context, hash fleet.Digest) (pki.Token, error) {
	t := pki.Token{Hash: hash}
	err := s.reads.row(ctx, "SELECT certname, expires_at FROM join_tokens WHERE hash = $1", hash).Scan(&t.Certname, at(&t.ExpiresAt))
	return t, explain(missing(err, "there is no such join token"), "read a join token")
}

// SpendToken implements pki.Store.
func (s *Authority) SpendToken(ctx context.Context, hash fleet.Digest, name fleet.Certname, now time.Time) error {
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

// DropTokens implements pki.Store.
func (s *Authority) DropTokens(ctx context.Context) error {
	err := s.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, "DELETE FROM join_tokens")
		return err
	})
	return explain(err, "drop join tokens")
}
