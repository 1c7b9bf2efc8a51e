package agent

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Names of what 'tutti agent join' writes.
const (
	caName          = "ca.pem"
	certificateName = "certificate.pem"
	keyName         = "key.pem"
	crlName         = "crl.pem"
)

// maxCertificates bounds a bundle.
const maxCertificates = 20

// parseCertificates reads a bundle in PEM.
func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "a certificate cannot be read: %v", err)
		}
		if all = append(all, c); len(all) > maxCertificates {
			return nil, fault.New(fault.Invalid, "there are more than %d certificates", maxCertificates)
		}
	}
	if len(all) == 0 {
		return nil, fault.New(fault.Invalid, "there is no certificate in PEM")
	}
	return all, nil
}

// fingerprint is the SHA-256 of a certificate, as Puppet writes it.
func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	pairs := make([]string, len(sum))
	for i, b := range sum {
		pairs[i] = fmt.Sprintf("%02X", b)
	}
	return strings.Join(pairs, ":")
}

// parseFingerprint reads a SHA-256 with or without colons, in any case.
func parseFingerprint(text string) ([]byte, error) {
	digits := strings.ToLower(strings.TrimSpace(text))
	digits = strings.TrimPrefix(strings.TrimPrefix(digits, "sha256:"), "(sha256) ")
	sum, err := hex.DecodeString(strings.ReplaceAll(digits, ":", ""))
	if err != nil || len(sum) != sha256.Size {
		return nil, fault.New(fault.Invalid, "--ca-fingerprint %.100q is no SHA-256: it has 64 hexadecimal digits, in pairs with colons or without", text)
	}
	return sum, nil
}

// proven checks a CA's bundle against the fingerprint of one of its certificates. The others
// must be linked to that one by signatures: nobody can slip in a CA of his own.
func proven(bundle []*x509.Certificate, sum []byte) error {
	linked := map[*x509.Certificate]bool{}
	var reach []*x509.Certificate
	for _, c := range bundle {
		if have := sha256.Sum256(c.Raw); bytes.Equal(have[:], sum) {
			linked[c], reach = true, []*x509.Certificate{c}
		}
	}
	if len(reach) == 0 {
		return fault.New(fault.Denied, "the CA of the server has the fingerprint %s, which is not the one that was given; "+
			"somebody may be in between, or the fingerprint is another CA's: `tutti ca token` on the server prints the right one", fingerprint(bundle[0]))
	}
	for len(reach) > 0 {
		from := reach[0]
		reach = reach[1:]
		for _, c := range bundle {
			if !linked[c] && (c.CheckSignatureFrom(from) == nil || from.CheckSignatureFrom(c) == nil) {
				linked[c] = true
				reach = append(reach, c)
			}
		}
	}
	for _, c := range bundle {
		if !linked[c] {
			return fault.New(fault.Denied, "the server's CA certificates hold one that the fingerprint does not prove: %.100q", c.Subject.String())
		}
	}
	return nil
}

func poolOf(bundle []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range bundle {
		pool.AddCert(c)
	}
	return pool
}

// sameKey tells whether two public keys are one.
func sameKey(a, b crypto.PublicKey) bool {
	key, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && key.Equal(b)
}
