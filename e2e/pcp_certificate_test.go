package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"github.com/tutti-project/tutti/internal/wire"
)

// issuer is a CA's certificate and key.
type issuer struct{ tls.Certificate }

// ownIssuer is the CA of the server itself.
func ownIssuer(t *testing.T, s *server) issuer {
	t.Helper()
	path := filepath.Join(s.data, "ca", "ca.pem")
	pair, err := tls.LoadX509KeyPair(path, path)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{pair}
}

// strange is a CA that calls itself as another one.
func (i issuer) strange(t *testing.T) issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: i.Leaf.Subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}}
}

// issue signs a certificate that holds from one day to another, counted from today.
func (i issuer) issue(t *testing.T, name string, from, until int, purpose x509.ExtKeyUsage) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1 << 40), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().AddDate(0, 0, from), NotAfter: time.Now().AddDate(0, 0, until),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{purpose},
	}, i.Leaf, key.Public(), i.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Whoever comes with a wrong certificate is told what is wrong with it before anything else, on both
// paths, and the server's log tells it, too.
func TestWrongCertificatesOverPCP(t *testing.T) {
	begin(t)
	s := startServer(t, "--autosign", "all", "--log-level", "debug")
	own := ownIssuer(t, s)
	revoked := enrol(t, s, "revoked").pcp(t, "", "/pcp2/agent", wire.V2).associate()
	s.tutti(t, "ca", "revoke", "revoked")
	refusedByAll(t, revoked.node)
	for name, c := range map[string]struct {
		certificate tls.Certificate
		alert       string
	}{
		"of another CA":      {own.strange(t).issue(t, "web1", -1, 1, x509.ExtKeyUsageClientAuth), "unknown certificate authority"},
		"expired":            {own.issue(t, "web1", -2, -1, x509.ExtKeyUsageClientAuth), "expired certificate"},
		"not yet valid":      {own.issue(t, "web1", 1, 2, x509.ExtKeyUsageClientAuth), "expired certificate"},
		"for something else": {own.issue(t, "web1", -1, 1, x509.ExtKeyUsageEmailProtection), "bad certificate"},
		"revoked":            {revoked.node.client.Transport.(*http.Transport).TLSClientConfig.Certificates[0], "bad certificate"},
	} {
		for _, path := range []string{"/pcp/agent", "/pcp2/agent"} {
			dialer := ws.Dialer{Timeout: patience, TLSConfig: &tls.Config{
				RootCAs: s.roots(t), Certificates: []tls.Certificate{c.certificate}, MaxVersion: tls.VersionTLS12, MinVersion: tls.VersionTLS12,
			}}
			_, _, _, err := dialer.Dial(t.Context(), "wss://localhost:"+s.port()+path)
			if err == nil || !strings.Contains(err.Error(), c.alert) {
				t.Errorf("a certificate %s on %s: %v, want %q", name, path, err, c.alert)
			}
		}
	}
	for _, why := range []string{"revoked", "certificate signed by unknown authority", "certificate has expired"} {
		s.logged(t, "TLS", why)
	}
}
