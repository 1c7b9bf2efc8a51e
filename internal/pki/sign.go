package pki

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"log/slog"
	"math/big"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// comment is what every certificate of a node says about itself.
const comment = "Tutti Fleet Certificate"

// Renew issues a new certificate for the key, names and extensions of a good
// one. peer's chain must have been verified. The old one stays good until it ends.
func (a *Authority) Renew(ctx context.Context, peer *x509.Certificate) (Certificate, error) {
	if !a.allowRenewal {
		return Certificate{}, fault.New(fault.NotFound, "renewal of certificates is switched off")
	}
	if err := a.Revocations.CheckPeer(peer); err != nil {
		return Certificate{}, err
	}
	name, err := fleet.ParseCertname(peer.Subject.CommonName)
	if err != nil {
		return Certificate{}, err
	}
	if err := a.issuer.reserved.check(name, altNamesOf(peer)); err != nil {
		return Certificate{}, err
	}
	done, err := a.records.take(ctx)
	if err != nil {
		return Certificate{}, err
	}
	defer done()
	have, err := a.store.Certificate(ctx, name)
	if err != nil {
		return Certificate{}, err
	}
	if !have.RevokedAt.IsZero() || !holdsKey(have, peer.PublicKey) {
		return Certificate{}, fault.New(fault.Denied, "the certificate shown is not the current one of %s", name)
	}
	return a.issuer.certify(ctx, subject{name: name, key: peer.PublicKey, altNames: altNamesOf(peer), copied: puppetExtensions(peer)}, 0)
}

func altNamesOf(cert *x509.Certificate) []altName {
	var names []altName
	for _, dns := range cert.DNSNames {
		names = append(names, altName{dns: dns})
	}
	for _, ip := range cert.IPAddresses {
		names = append(names, altName{ip: ip})
	}
	return names
}

// issuer signs certificates and makes them known. Its callers have the turn of the records.
type issuer struct {
	ca       *atomic.Pointer[ca]
	records  *records
	reserved *reservation
	ttl      time.Duration // of a certificate of which nothing else is said
	log      *slog.Logger
}

// request issues what a request asks for.
func (i *issuer) request(ctx context.Context, r *csr, ttl time.Duration) (Certificate, error) {
	return i.certify(ctx, subject{name: r.name, key: r.PublicKey, altNames: r.altNames, copied: r.requested}, ttl)
}

// subject is what a certificate says about its holder.
type subject struct {
	name     fleet.Certname
	key      crypto.PublicKey
	altNames []altName
	copied   []pkix.Extension
}

// certify signs and stores a certificate.
func (i *issuer) certify(ctx context.Context, s subject, ttl time.Duration) (Certificate, error) {
	template, err := leafTemplate(s)
	if err != nil {
		return Certificate{}, err
	}
	cert, err := i.sign(template, s.key, ttl)
	if err != nil {
		return Certificate{}, err
	}
	c := certificateOf(cert)
	c.Certname, c.Current, c.IssuedAt = s.name, true, now()
	if err := i.records.commit(ctx, Change{At: now(), Issued: []Certificate{c}}); err != nil {
		return Certificate{}, err
	}
	i.log.InfoContext(ctx, "certificate signed", "node", s.name, "serial", fleet.Serial(c.Serial), "not_after", c.NotAfter)
	return c, nil
}

func certificateOf(cert *x509.Certificate) Certificate {
	return Certificate{
		Certname: fleet.Certname(cert.Subject.CommonName), Serial: cert.SerialNumber, PEM: encodeCertificate(cert.Raw),
		NotBefore: cert.NotBefore.UTC(), NotAfter: cert.NotAfter.UTC(), IssuedAt: cert.NotBefore.UTC(),
	}
}

func leafTemplate(s subject) (*x509.Certificate, error) {
	names, err := encodeAltNames(append([]altName{{dns: string(s.name)}}, s.altNames...))
	if err != nil {
		return nil, err
	}
	note, err := asn1.MarshalWithParams(comment, "ia5")
	if err != nil {
		return nil, err
	}
	extra := []pkix.Extension{{Id: oidSubjectAltName, Value: names}, {Id: oidNetscapeComment, Value: note}}
	return &x509.Certificate{
		Subject:         pkix.Name{CommonName: string(s.name)},
		KeyUsage:        x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		ExtraExtensions: append(extra, s.copied...),
	}, nil
}

// newSerial makes a serial number: 128 random bits, and one more that is set, so
// that it lies above every number that an imported CA counted.
func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128))
	if err != nil {
		return nil, err
	}
	return serial.SetBit(serial, 128, 1), nil
}

// sign completes a template and signs it with a serial number of its own. A
// certificate never outlives its CA; a zero ttl means the setting's.
func (i *issuer) sign(template *x509.Certificate, key crypto.PublicKey, ttl time.Duration) (*x509.Certificate, error) {
	if ttl == 0 {
		ttl = i.ttl
	}
	signer := i.ca.Load()
	if err := signer.checkTime(time.Now()); err != nil {
		return nil, err
	}
	id, err := keyID(key)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.SubjectKeyId = id
	template.BasicConstraintsValid = true
	template.NotBefore = now().Add(-min(backdate, ttl)) // a day before a life of hours would make it old at once
	template.NotAfter = now().Add(ttl)
	if end := signer.signer().NotAfter; template.NotAfter.After(end) {
		template.NotAfter = end
	}
	template.SignatureAlgorithm = signatureAlgorithm(signer.key)
	der, err := x509.CreateCertificate(rand.Reader, template, signer.signer(), key, signer.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
