// Package authority issues certificates with a server's own CA key: asking the
// server for ten thousand would measure something else.
//
// An Authority is safe for concurrent use. Errors are those of files and keys.
package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"path/filepath"
	"sync/atomic"
	"time"
)

// Authority signs as the server would.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.PrivateKey
	pool        *x509.CertPool
	shared      *ecdsa.PrivateKey
	serial      atomic.Int64
}

// firstSerial is far below the numbers that the server gives.
const firstSerial = 1 << 40

// Open reads the CA of a server's data directory.
func Open(data string) (*Authority, error) {
	file := filepath.Join(data, "ca", "ca.pem") // certificate and key are in there
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		return nil, err
	}
	a := &Authority{certificate: pair.Leaf, key: pair.PrivateKey, pool: x509.NewCertPool()}
	a.pool.AddCert(a.certificate)
	a.serial.Store(firstSerial)
	a.shared, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return a, err
}

// Pool trusts the server.
func (a *Authority) Pool() *x509.CertPool { return a.pool }

// Issue makes a certificate for name and its key.
func (a *Authority) Issue(name string, key crypto.Signer) (tls.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(a.serial.Add(1)), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(5, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}, a.certificate, key.Public(), a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// Client gives TLS settings with a certificate for name. All of these have one key.
func (a *Authority) Client(name string) (*tls.Config, error) {
	pair, err := a.Issue(name, a.shared)
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: a.pool, ServerName: "localhost", Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
