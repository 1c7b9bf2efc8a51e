package pki

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// ServerCertificate returns the listener's certificate for names (host names
// and addresses, the first one is its subject). It is made again when the
// names change, the CA changes, or its end is near. It serves only as a server's:
// it can never be shown as a node's.
func (a *Authority) ServerCertificate(ctx context.Context, names []string) (tls.Certificate, error) {
	alt, err := serverNames(names)
	if err != nil {
		return tls.Certificate{}, err
	}
	done, err := a.take(ctx)
	if err != nil {
		return tls.Certificate{}, err
	}
	defer done()
	a.reserved.add(ofServer, alt...)
	content, err := readFile(filepath.Join(a.cfg.Dir, serverFile))
	if err != nil {
		return tls.Certificate{}, err
	}
	if content != nil {
		key, cert, err := parsePair(content)
		if err == nil && a.serves(cert, alt) {
			return a.tlsCertificate(key, cert), a.keepServerRow(ctx, cert)
		}
		a.log.InfoContext(ctx, "server certificate is made again", "names", names, "err", err)
	}
	return a.makeServerCertificate(ctx, names[0], alt)
}

// RotateServer makes a new key and certificate for names, whatever there is. The
// former one stays good until RevokeFormerServers, so that the listener can change in
// between.
func (a *Authority) RotateServer(ctx context.Context, names []string) (tls.Certificate, error) {
	alt, err := serverNames(names)
	if err != nil {
		return tls.Certificate{}, err
	}
	done, err := a.take(ctx)
	if err != nil {
		return tls.Certificate{}, err
	}
	defer done()
	a.reserved.add(ofServer, alt...)
	return a.makeServerCertificate(ctx, names[0], alt)
}

// RevokeFormerServers revokes every certificate of the server's but the current one:
// whoever has a copy of an old key cannot pose as the server to a node that knows the new
// revocation list.
func (a *Authority) RevokeFormerServers(ctx context.Context, current *x509.Certificate) error {
	done, err := a.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	servers, err := a.store.ServerCertificates(ctx)
	if err != nil {
		return err
	}
	c := Change{At: now()}
	for _, former := range servers {
		if former.RevokedAt.IsZero() && former.Serial.Cmp(current.SerialNumber) != 0 {
			c.Revoked = append(c.Revoked, former.Serial)
		}
	}
	if len(c.Revoked) == 0 {
		return nil
	}
	if err := a.commit(ctx, c); err != nil {
		return err
	}
	a.log.InfoContext(ctx, "former server certificates revoked", "certificates", len(c.Revoked))
	return a.renewList(ctx, true)
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
func (a *Authority) serves(cert *x509.Certificate, names []altName) bool {
	have, want := altNameTexts(altNamesOf(cert)), altNameTexts(names)
	slices.Sort(have)
	slices.Sort(want)
	return slices.Equal(have, slices.Compact(want)) && cert.CheckSignatureFrom(a.current().signer()) == nil &&
		time.Now().After(cert.NotBefore) && time.Until(cert.NotAfter) > min(serverRenewal, cert.NotAfter.Sub(cert.NotBefore)/4)
}

func (a *Authority) makeServerCertificate(ctx context.Context, name string, alt []altName) (tls.Certificate, error) {
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
	cert, err := a.signLeaf(&x509.Certificate{
		Subject:         pkix.Name{CommonName: name},
		KeyUsage:        x509.KeyUsageDigitalSignature,
		ExtKeyUsage:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		ExtraExtensions: []pkix.Extension{{Id: oidSubjectAltName, Value: names}},
	}, key.Public(), a.cfg.LeafTTL)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := a.keepServerRow(ctx, cert); err != nil {
		return tls.Certificate{}, err
	}
	if err := writeFile(a.cfg.Dir, serverFile, slices.Concat(keyPEM, encodeCertificate(cert.Raw)), 0o600); err != nil {
		return tls.Certificate{}, err
	}
	a.log.InfoContext(ctx, "server certificate made", "name", name, "not_after", cert.NotAfter)
	return a.tlsCertificate(key, cert), nil
}

// keepServerRow makes the store remember a certificate of the server's, also one
// that was made before servers' were remembered: its number and its names are
// nobody else's from then on.
func (a *Authority) keepServerRow(ctx context.Context, cert *x509.Certificate) error {
	c := certificateOf(cert)
	c.Server, c.IssuedAt = true, now()
	servers, err := a.store.ServerCertificates(ctx)
	if err != nil {
		return err
	}
	for _, known := range servers {
		if known.Serial.Cmp(c.Serial) == 0 {
			return nil
		}
	}
	return a.commit(ctx, Change{At: now(), Issued: []Certificate{c}})
}

// tlsCertificate adds the CAs below the root: a client that only knows the root
// needs them.
func (a *Authority) tlsCertificate(key crypto.Signer, cert *x509.Certificate) tls.Certificate {
	chain := [][]byte{cert.Raw}
	for _, above := range a.current().chain {
		if !selfIssued(above) {
			chain = append(chain, above.Raw)
		}
	}
	return tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: cert}
}
