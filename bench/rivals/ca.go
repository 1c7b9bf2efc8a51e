package rivals

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// CA is a certificate authority that lives for one benchmark. All its keys are
// ECDSA P-256, so that every server pays the same for a handshake.
type CA struct {
	CertPath, CRLPath string

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool

	mu      sync.Mutex // guards what follows
	serial  int64
	clients map[string]*tls.Config
}

// NewCA makes a CA and writes its certificate and an empty CRL into dir.
func NewCA(dir string) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make CA: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Puppet CA: bench"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make CA: %w", err)
	}
	ca := &CA{
		CertPath: filepath.Join(dir, "ca.pem"), CRLPath: filepath.Join(dir, "crl.pem"),
		cert: cert, key: key, pool: x509.NewCertPool(), serial: 1, clients: map[string]*tls.Config{},
	}
	ca.pool.AddCert(cert)
	return ca, ca.write(now)
}

func (ca *CA) write(now time.Time) error {
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: now.Add(-time.Hour), NextUpdate: now.Add(48 * time.Hour)}
	crl, err := x509.CreateRevocationList(rand.Reader, list, ca.cert, ca.key)
	if err != nil {
		return fmt.Errorf("make CRL: %w", err)
	}
	if err := writePEM(ca.CertPath, "CERTIFICATE", ca.cert.Raw); err != nil {
		return err
	}
	return writePEM(ca.CRLPath, "X509 CRL", crl)
}

// Issue makes a key and a certificate for name, good for localhost as a server
// and for name as a client.
func (ca *CA) Issue(name string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("issue certificate: %w", err)
	}
	ca.mu.Lock()
	ca.serial++
	serial := ca.serial
	ca.mu.Unlock()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{name, "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("issue certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// IssueFiles is Issue for servers that read PEM files.
func (ca *CA) IssueFiles(dir, name string) (certPath, keyPath string, err error) {
	pair, err := ca.Issue(name)
	if err != nil {
		return "", "", err
	}
	der, err := x509.MarshalECPrivateKey(pair.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		return "", "", fmt.Errorf("issue certificate: %w", err)
	}
	certPath, keyPath = filepath.Join(dir, name+".cert.pem"), filepath.Join(dir, name+".key.pem")
	if err := writePEM(certPath, "CERTIFICATE", pair.Certificate[0]); err != nil {
		return "", "", err
	}
	return certPath, keyPath, writePEM(keyPath, "EC PRIVATE KEY", der)
}

// Client gives TLS settings with a certificate for name, the same ones each time.
func (ca *CA) Client(name string) (*tls.Config, error) {
	ca.mu.Lock()
	known := ca.clients[name]
	ca.mu.Unlock()
	if known != nil {
		return known, nil
	}
	pair, err := ca.Issue(name)
	if err != nil {
		return nil, err
	}
	config := clientConfig(ca.pool, pair)
	ca.mu.Lock()
	defer ca.mu.Unlock()
	ca.clients[name] = config
	return config, nil
}

func clientConfig(pool *x509.CertPool, pair tls.Certificate) *tls.Config {
	return &tls.Config{
		RootCAs: pool, Certificates: []tls.Certificate{pair}, ServerName: "localhost", MinVersion: tls.VersionTLS12,
		DynamicRecordSizingDisabled: true, // an agent's OpenSSL sends full records from the start
	}
}

func writePEM(path, kind string, der []byte) error {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", kind, err)
	}
	return nil
}
