package pki

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// ca is the signing key with its certificates. It never changes once made.
type ca struct {
	key      crypto.Signer
	chain    []*x509.Certificate // signing certificate first, root last
	bundle   []byte              // chain in PEM
	pool     *x509.CertPool
	modified time.Time
	identity string // what journal and store know it by; empty in a file of an earlier version
}

func newCA(key crypto.Signer, chain []*x509.Certificate, modified time.Time) (*ca, error) {
	chain, err := orderChain(key, chain)
	if err != nil {
		return nil, err
	}
	if err := checkSigner(chain[0]); err != nil {
		return nil, err
	}
	c := &ca{key: key, chain: chain, pool: x509.NewCertPool(), modified: modified}
	for _, cert := range chain {
		c.bundle = append(c.bundle, encodeCertificate(cert.Raw)...)
		c.pool.AddCert(cert)
	}
	return c, nil
}

func (c *ca) signer() *x509.Certificate { return c.chain[0] }

// orderChain puts the certificate of key first and its issuers behind it.
func orderChain(key crypto.Signer, certs []*x509.Certificate) ([]*x509.Certificate, error) {
	at := slices.IndexFunc(certs, func(cert *x509.Certificate) bool { return sameKey(cert.PublicKey, key.Public()) })
	if at < 0 {
		return nil, fault.New(fault.Invalid, "the CA's private key fits none of its certificates: both must come from the same CA")
	}
	chain := []*x509.Certificate{certs[at]}
	for last := certs[at]; !selfIssued(last); last = chain[len(chain)-1] {
		next := slices.IndexFunc(certs, func(cert *x509.Certificate) bool {
			return !slices.Contains(chain, cert) && last.CheckSignatureFrom(cert) == nil
		})
		if next < 0 {
			return nil, fault.New(fault.Invalid, "the CA's bundle ends at %q, whose issuer is missing: it must go up to the root", last.Subject)
		}
		chain = append(chain, certs[next])
	}
	return chain, nil
}

func selfIssued(cert *x509.Certificate) bool { return bytes.Equal(cert.RawIssuer, cert.RawSubject) }

func checkSigner(cert *x509.Certificate) error {
	switch {
	case !cert.IsCA:
		return fault.New(fault.Invalid, "%q is not a CA certificate", cert.Subject)
	case cert.KeyUsage != 0 && cert.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != x509.KeyUsageCertSign|x509.KeyUsageCRLSign:
		return fault.New(fault.Invalid, "the CA certificate %q may not sign certificates and revocation lists", cert.Subject)
	case len(cert.SubjectKeyId) == 0:
		return fault.New(fault.Invalid, "the CA certificate %q has no subject key identifier", cert.Subject)
	}
	return nil
}

// checkTime says in plain words when a clock and the CA disagree.
func (c *ca) checkTime(now time.Time) error {
	for _, cert := range c.chain {
		if now.Before(cert.NotBefore) {
			return fault.New(fault.Unavailable, "the CA certificate %q is not valid before %s and this machine's clock says %s: set the clock",
				cert.Subject, stamp(cert.NotBefore), stamp(now))
		}
		if now.After(cert.NotAfter) {
			return fault.New(fault.Unavailable, "the CA certificate %q ended at %s and this machine's clock says %s: set the clock, or make or import a new CA",
				cert.Subject, stamp(cert.NotAfter), stamp(now))
		}
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// openCA loads the CA, or makes it at the first start.
func openCA(ctx context.Context, cfg Config, store Store) (*ca, error) {
	content, err := readFile(filepath.Join(cfg.Dir, caFile))
	if err != nil {
		return nil, err
	}
	if content == nil {
		if err := nothingIssued(ctx, cfg.Dir, store); err != nil {
			return nil, err
		}
		return createCA(cfg)
	}
	return loadCA(cfg.Dir, content)
}

// nothingIssued keeps a lost key from being replaced silently: every node would
// be locked out.
func nothingIssued(ctx context.Context, dir string, store Store) error {
	issued, err := store.Certificates(ctx)
	if err != nil {
		return err
	}
	anchor, err := store.CAAnchor(ctx)
	if err == nil && (len(issued) > 0 || anchor.Seq > 0) {
		return fault.New(fault.Conflict, "%s is missing, but the database's CA has issued certificates (%d stand for a name): restore the directory from a backup",
			filepath.Join(dir, caFile), len(issued))
	}
	return err
}

func loadCA(dir string, content []byte) (*ca, error) {
	path := filepath.Join(dir, caFile)
	key, err := parseKey(content)
	if err != nil {
		return nil, describe(err, path)
	}
	certs, err := parseCertificates(content)
	if err != nil {
		return nil, describe(err, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "%s cannot be read", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fault.New(fault.Denied, "others may read the CA's private key in %s: set its mode to 0600", path)
	}
	loaded, err := newCA(key, certs, info.ModTime())
	if err != nil {
		return nil, describe(err, path)
	}
	loaded.identity = identityIn(content)
	return loaded, keepCopy(dir, loaded)
}

// describe puts the place before a fault's sentence and keeps its kind.
func describe(err error, place string) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return &fault.Error{Kind: f.Kind, Detail: place + ": " + f.Detail, Err: f.Err}
	}
	return err
}

func createCA(cfg Config) (*ca, error) {
	key, err := newKey(cfg.KeyType)
	if err != nil {
		return nil, err
	}
	cert, err := selfSign(cfg, key, time.Now())
	if err != nil {
		return nil, err
	}
	made, err := newCA(key, []*x509.Certificate{cert}, time.Now())
	if err != nil {
		return nil, err
	}
	return made, saveCA(cfg.Dir, made)
}

func saveCA(dir string, c *ca) error {
	key, err := encodeKey(c.key)
	if err != nil {
		return err
	}
	var head []byte
	if c.identity != "" {
		head = []byte(identityLine + c.identity + "\n")
	}
	if err := writeFile(dir, caFile, slices.Concat(head, key, c.bundle), 0o600); err != nil {
		return err
	}
	return keepCopy(dir, c)
}

// keepCopy writes the bundle for people and tools; nothing reads it back.
func keepCopy(dir string, c *ca) error {
	old, err := readFile(filepath.Join(dir, caCopyFile))
	if err == nil && bytes.Equal(old, c.bundle) {
		return nil
	}
	return writeFile(dir, caCopyFile, c.bundle, 0o644)
}

func selfSign(cfg Config, key crypto.Signer, now time.Time) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	name := cfg.CAName
	if name == "" {
		name = "Tutti CA " + hex.EncodeToString(serial.Bytes()[1:5])
	}
	id, err := keyID(key.Public())
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(cfg.CATTL),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		SubjectKeyId:          id,
		AuthorityKeyId:        id,
		SignatureAlgorithm:    signatureAlgorithm(key),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
