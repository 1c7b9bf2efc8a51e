package pki_test

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"log/slog"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

var (
	oidRole     = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 34380, 1, 1, 13}
	oidImage    = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 34380, 1, 1, 3}
	oidPrivate  = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 34380, 1, 2, 7}
	oidBasic    = asn1.ObjectIdentifier{2, 5, 29, 19}
	oidKeyUsage = asn1.ObjectIdentifier{2, 5, 29, 15}
	quiet       = slog.New(slog.DiscardHandler)
	allowEvery  = pki.AutosignPolicy{All: true}
)

func open(t *testing.T, cfg pki.Config, store pki.Store) *pki.Authority {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir() + "/ca"
	}
	a, err := pki.Open(t.Context(), cfg, store, quiet)
	must(t, err)
	return a
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Fatalf("error = %v, want kind %s", err, want)
	}
}

func submit(t *testing.T, a *pki.Authority, c pkitest.CSR) bool {
	t.Helper()
	signed, err := a.Requests.Submit(t.Context(), fleet.Certname(c.Name), c.PEM(t), "")
	must(t, err)
	return signed
}

// submitFrom sends a request from an address; it is left waiting.
func submitFrom(t *testing.T, a *pki.Authority, name fleet.Certname, from string) {
	t.Helper()
	signed, err := a.Requests.Submit(t.Context(), name, pkitest.CSR{Name: string(name)}.PEM(t), from)
	must(t, err)
	if signed {
		t.Errorf("%s was signed", name)
	}
}

// waiting lists the names whose requests wait.
func waiting(t *testing.T, a *pki.Authority) string {
	t.Helper()
	entries, err := a.List(t.Context())
	must(t, err)
	var names []string
	for _, e := range entries {
		if e.State == pki.Requested {
			names = append(names, string(e.Certname))
		}
	}
	return strings.Join(names, " ")
}

// certificate fetches and parses a name's certificate.
func certificate(t *testing.T, a *pki.Authority, name fleet.Certname) *x509.Certificate {
	t.Helper()
	c, err := a.Certificate(t.Context(), name)
	must(t, err)
	return parse(t, c.PEM)
}

func parse(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatal("no PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	return cert
}

func list(t *testing.T, a *pki.Authority) *x509.RevocationList {
	t.Helper()
	text, _ := a.Revocations.CRL()
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatal("no PEM")
	}
	parsed, err := x509.ParseRevocationList(block.Bytes)
	must(t, err)
	bundle, _ := a.Bundle()
	must(t, parsed.CheckSignatureFrom(parse(t, bundle)))
	return parsed
}

func keyIn(t *testing.T, path string) *ecdsa.PrivateKey {
	t.Helper()
	block, _ := pem.Decode(readFile(t, path))
	if block == nil {
		t.Fatal("no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	must(t, err)
	return key.(*ecdsa.PrivateKey)
}

func decodePEM(text []byte) []byte {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	return block.Bytes
}
