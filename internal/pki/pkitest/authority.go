package pkitest

import (
	"crypto"
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"log/slog"
	"testing"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// OIDAdmin is the extension pp_cli_auth, by which a certificate is an administrator's.
var OIDAdmin = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 34380, 1, 3, 39}

// Open returns an authority that signs whatever it is asked for, with a Memory behind it.
func Open(t *testing.T) *pki.Authority {
	t.Helper()
	ca, err := pki.Open(t.Context(), pki.Config{
		Dir: t.TempDir(), Autosign: pki.AutosignPolicy{All: true}, AllowAuthorizationExtensions: true,
	}, NewMemory(), slog.New(slog.DiscardHandler))
	must(t, err)
	return ca
}

// Admin is what makes a certificate an administrator's.
func Admin(t *testing.T) pkix.Extension {
	t.Helper()
	return Text(t, OIDAdmin, "true")
}

// Enrol asks for a certificate and signs it, if the authority does not do so by itself.
// A nil key means a fresh one.
func Enrol(t *testing.T, ca *pki.Authority, name string, key crypto.Signer, extensions ...pkix.Extension) tls.Certificate {
	t.Helper()
	if key == nil {
		key = NewKey(t)
	}
	certname := fleet.Certname(name)
	signed, err := ca.Requests.Submit(t.Context(), certname, CSR{Name: name, Key: key, Extensions: extensions}.PEM(t), "")
	must(t, err)
	if !signed {
		_, err = ca.Requests.Sign(t.Context(), certname, 0)
		must(t, err)
	}
	c, err := ca.Certificate(t.Context(), certname)
	must(t, err)
	block, _ := pem.Decode(c.PEM)
	return tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}
}
