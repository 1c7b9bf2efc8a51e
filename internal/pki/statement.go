package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"sync/atomic"

	"github.com/tutti-project/tutti/internal/fault"
)

// auditPurpose begins every text that SignAudit signs. It keeps the texts that the CA's key signs apart: no
// certificate, revocation list or line of the journal begins like this.
const auditPurpose = "tutti audit head\n"

// AuditKey signs heads of the audit log, and knows them again: the CA's key, for this purpose only.
type AuditKey struct{ ca *atomic.Pointer[ca] }

// SignAudit signs a head of the audit log with the CA's key. It names the CA's certificate by its fingerprint.
func (k AuditKey) SignAudit(text []byte) (signer string, signature []byte, err error) {
	if !bytes.HasPrefix(text, []byte(auditPurpose)) {
		return "", nil, fault.New(fault.Invalid, "the CA's key signs heads of the audit log only where they say so in their first line")
	}
	c := k.ca.Load()
	signature, err = signText(c.key, text)
	return signerName(c.signer()), signature, err
}

// CheckAudit tells whether the signature over a head is this CA's.
func (k AuditKey) CheckAudit(signer string, text, signature []byte) error {
	return auditGood([]*x509.Certificate{k.ca.Load().signer()}, signer, text, signature)
}

// CheckAuditOf is CheckAudit for whoever has only certificates of CAs, in PEM.
func CheckAuditOf(bundle []byte, signer string, text, signature []byte) error {
	certs, err := parseCertificates(bundle)
	if err != nil {
		return err
	}
	return auditGood(certs, signer, text, signature)
}

func auditGood(certs []*x509.Certificate, signer string, text, signature []byte) error {
	for _, cert := range certs {
		if signerName(cert) != signer {
			continue
		}
		if !bytes.HasPrefix(text, []byte(auditPurpose)) || !textGood(cert.PublicKey, text, signature) {
			return fault.New(fault.Denied, "the CA %s did not sign this", cert.Subject.CommonName)
		}
		return nil
	}
	return fault.New(fault.Denied, "it is said to be of the certificate with the SHA-256 %.64s, which is not this CA's", signer)
}

func signerName(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// signText signs a text as each kind of key does: its SHA-256, or the text itself with Ed25519.
func signText(key crypto.Signer, text []byte) ([]byte, error) {
	if _, ok := key.Public().(ed25519.PublicKey); ok {
		return key.Sign(rand.Reader, text, crypto.Hash(0))
	}
	sum := sha256.Sum256(text)
	return key.Sign(rand.Reader, sum[:], crypto.SHA256)
}

func textGood(public crypto.PublicKey, text, signature []byte) bool {
	sum := sha256.Sum256(text)
	switch key := public.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, text, signature)
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, sum[:], signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil
	default:
		return false
	}
}
