package sim

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Enroller gets certificates for nodes from a server that signs at once. All its
// certificates share one key: a key each costs the fleet's machine time, and no server
// can tell. Its methods may be called concurrently.
type Enroller struct {
	url    string
	roots  *x509.CertPool
	key    *ecdsa.PrivateKey
	client *http.Client
}

// NewEnroller asks the server at url, such as https://localhost:8140.
func NewEnroller(url string, roots *x509.CertPool) (*Enroller, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
	}
	return &Enroller{url, roots, key, &http.Client{Transport: transport, Timeout: time.Minute}}, nil
}

// Close drops its connections.
func (e *Enroller) Close() { e.client.CloseIdleConnections() }

// Enrol requests a certificate and fetches it.
func (e *Enroller) Enrol(ctx context.Context, name string) (*tls.Config, error) {
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, e.key)
	if err != nil {
		return nil, fmt.Errorf("enrol %s: %w", name, err)
	}
	body := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
	if _, err := e.do(ctx, http.MethodPut, "certificate_request/"+name, body); err != nil {
		return nil, fmt.Errorf("enrol %s: %w", name, err)
	}
	text, err := e.do(ctx, http.MethodGet, "certificate/"+name, nil)
	if err != nil {
		return nil, fmt.Errorf("enrol %s: %w", name, err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("enrol %s: the server's answer holds no certificate", name)
	}
	pair := tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: e.key}
	return &tls.Config{RootCAs: e.roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// maxAnswerBytes is the longest answer of the CA that is read.
const maxAnswerBytes = 1 << 20

func (e *Enroller) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, e.url+"/puppet-ca/v1/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "text/plain")
	response, err := e.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: status %d: %.200s", method, path, response.StatusCode, text)
	}
	return text, err
}

// Fixed is the TLS settings of a client whose certificate stays the same.
func Fixed(identity *tls.Config) func() (*tls.Config, error) {
	return func() (*tls.Config, error) { return identity, nil }
}
