package pki

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// ServerCertificates are those of the listener. They serve only as a server's, and their names are no node's.
type ServerCertificates struct {
	dir         string
	store       CertificateStore
	issuer      *issuer
	records     *records
	revocations *Revocations
	log         *slog.Logger
}

// Certificate returns the listener's certificate for names (host names
// and addresses, the first one is its subject). It is made again when the
// names change, the CA changes, or its end is near. It serves only as a server's:
// it can never be shown as a node's.
func (s *ServerCertificates) Certificate(ctx context.Context, names []string) (tls.Certificate, error) {
	alt, err := serverNames(names)
	if err != nil {
		return tls.Certificate{}, err
	}
	done, err := s.records.take(ctx)
	if err != nil {
		return tls.Certificate{}, err
	}
	defer done()
	s.issuer.reserved.add(ofServer, alt...)
	content, err := readFile(filepath.Join(s.dir, serverFile))
	if err != nil {
		return tls.Certificate{}, err
	}
	if content != nil {
		key, cert, err := parsePair(content)
		if err == nil && s.serves(cert, alt) {
			return s.tlsCertificate(key, cert), s.keepRow(ctx, cert)
		}
		s.log.InfoContext(ctx, "server certificate is made again", "names", names, "err", err)
	}
	return s.make(ctx, names[0], alt)
}

// Rotate makes a new key and certificate for names, whatever there is. The
// former one stays good until RevokeFormer, so that the listener can change in
// between.
func (s *ServerCertificates) Rotate(ctx context.Context, names []string) (tls.Certificate, error) {
	alt, err := serverNames(names)
	if err != nil {
		return tls.Certificate{}, err
	}
	done, err := s.records.take(ctx)
	if err != nil {
		return tls.Certificate{}, err
	}
	defer done()
	s.issuer.reserved.add(ofServer, alt...)
	return s.make(ctx, names[0], alt)
}

// madeFile names the certificates of this server, by number: the store has those of other servers, too.
const madeFile = "server-made.txt"

// made is the numbers of this server's certificates.
func (s *ServerCertificates) made() (map[string]bool, error) {
	content, err := readFile(filepath.Join(s.dir, madeFile))
	numbers := map[string]bool{}
	for number := range strings.FieldsSeq(string(content)) {
		numbers[number] = true
	}
	return numbers, err
}

// noteMade remembers that a certificate is this server's.
func (s *ServerCertificates) noteMade(serial *big.Int) error {
	ours, err := s.made()
	if err != nil || ours[serial.Text(16)] {
		return err
	}
	ours[serial.Text(16)] = true
	return writeFile(s.dir, madeFile, []byte(strings.Join(slices.Sorted(maps.Keys(ours)), "\n")+"\n"), 0o600)
}

// RevokeFormer revokes every certificate of the server's but the current one:
// whoever has a copy of an old key cannot pose as the server to a node that knows the new
// revocation list.
func (s *ServerCertificates) RevokeFormer(ctx context.Context, current *x509.Certificate) error {
	done, err := s.records.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	servers, err := s.store.ServerCertificates(ctx)
	if err != nil {
		return err
	}
	ours, err := s.made()
	if err != nil {
		return err
	}
	c := Change{At: now()}
	for _, former := range servers {
		if former.RevokedAt.IsZero() && former.Serial.Cmp(current.SerialNumber) != 0 && (!s.records.shared || ours[former.Serial.Text(16)]) {
			c.Revoked = append(c.Revoked, former.Serial)
		}
	}
	if len(c.Revoked) == 0 {
		return nil
	}
	if err := s.records.commit(ctx, c); err != nil {
		return err
	}
	s.log.InfoContext(ctx, "former server certificates revoked", "certificates", len(c.Revoked))
	return s.revocations.renew(ctx, true)
}

func serverNames(names []string) ([]altName, error) {
	if len(names) == 0 {
		return nil, fault.New(fault.Invalid, "the server has no name: give one at least")
	}
	var alt []altName
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			if v4 := ip.To4(); v4 != nil {
				ip = v4
			}
			alt = append(alt, altName{ip: ip})
			continue
		}
		if !validDNS(name) {
			return nil, fault.New(fault.Invalid, "the server name %.80q is neither a host name nor an address", name)
		}
		alt = append(alt, altName{dns: name})
	}
	return alt, nil
}

func parsePair(content []byte) (crypto.Signer, *x509.Certificate, error) {
	key, err := parseKey(content)
	if err != nil {
		return nil, nil, err
	}
	certs, err := parseCertificates(content)
	if err != nil {
		return nil, nil, err
	}
	if !sameKey(certs[0].PublicKey, key.Public()) {
		return nil, nil, fault.New(fault.Invalid, "the server's key does not fit its certificate")
	}
	return key, certs[0], nil
}

// serves tells whether cert still does for names.
func (s *ServerCertificates) serves(cert *x509.Certificate, names []altName) bool {
	have, want := altNameTexts(altNamesOf(cert)), altNameTexts(names)
	slices.Sort(have)
	slices.Sort(want)
	return slices.Equal(have, slices.Compact(want)) && cert.CheckSignatureFrom(s.issuer.ca.Load().signer()) == nil &&
		time.Now().After(cert.NotBefore) && time.Until(cert.NotAfter) > min(serverRenewal, cert.NotAfter.Sub(cert.NotBefore)/4)
}

func (s *ServerCertificates) make(ctx context.Context, name string, alt []altName) (tls.Certificate, error) {
	key, err := newKey(ECDSAP256)
	if err != nil {
		return tls.Certificate{}, err
	}
	names, err := encodeAltNames(alt)
	if err != nil {
		return tls.Certificate{}, err
	}
	if len(name) > 64 { // the most that X.509 allows; clients look at the alternative names
		name = name[:64]
	}
	cert, err := s.issuer.sign(&x509.Certificate{
		Subject:         pkix.Name{CommonName: name},
		KeyUsage:        x509.KeyUsageDigitalSignature,
		ExtKeyUsage:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		ExtraExtensions: []pkix.Extension{{Id: oidSubjectAltName, Value: names}},
	}, key.Public(), 0)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := s.keepRow(ctx, cert); err != nil {
		return tls.Certificate{}, err
	}
	if err := writeFile(s.dir, serverFile, slices.Concat(keyPEM, encodeCertificate(cert.Raw)), 0o600); err != nil {
		return tls.Certificate{}, err
	}
	s.log.InfoContext(ctx, "server certificate made", "name", name, "not_after", cert.NotAfter)
	return s.tlsCertificate(key, cert), nil
}

// keepRow makes the store remember a certificate of the server's, also one
// that was made before servers' were remembered: its number and its names are
// nobody else's from then on.
func (s *ServerCertificates) keepRow(ctx context.Context, cert *x509.Certificate) error {
	c := certificateOf(cert)
	c.Server, c.IssuedAt = true, now()
	if err := s.noteMade(c.Serial); err != nil {
		return err
	}
	servers, err := s.store.ServerCertificates(ctx)
	if err != nil {
		return err
	}
	for _, known := range servers {
		if known.Serial.Cmp(c.Serial) == 0 {
			return nil
		}
	}
	return s.records.commit(ctx, Change{At: now(), Issued: []Certificate{c}})
}

// tlsCertificate adds the CAs below the root: a client that only knows the root
// needs them.
func (s *ServerCertificates) tlsCertificate(key crypto.Signer, cert *x509.Certificate) tls.Certificate {
	chain := [][]byte{cert.Raw}
	for _, above := range s.issuer.ca.Load().chain {
		if !selfIssued(above) {
			chain = append(chain, above.Raw)
		}
	}
	return tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: cert}
}
