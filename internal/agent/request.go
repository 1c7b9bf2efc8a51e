package agent

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// newKey makes a private key, and its form in a file.
func newKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// parseKey reads a private key as Puppet, OpenSSL and newKey write it.
func parseKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fault.New(fault.Invalid, "there is no private key in PEM")
	}
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the private key cannot be read; keys with a pass phrase cannot be used")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fault.New(fault.Invalid, "the private key is of a kind that cannot sign")
	}
	return signer, nil
}

var (
	oidChallenge   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}
	oidECDSASHA256 = asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}
	oidRSASHA256   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}
)

// attribute is one of a request.
type attribute struct {
	ID     asn1.ObjectIdentifier
	Values []asn1.RawValue `asn1:"set"`
}

// newRequest makes a certificate request (RFC 2986) in PEM. A token goes into it as its challenge
// password, which crypto/x509 does not know; more are further attributes.
func newRequest(name fleet.Certname, key crypto.Signer, token string, more ...attribute) ([]byte, error) {
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("write the public key: %w", err)
	}
	attributes := append([]attribute{}, more...)
	if token != "" {
		password, err := textAttribute(oidChallenge, token)
		if err != nil {
			return nil, err
		}
		attributes = append(attributes, password)
	}
	content, err := asn1.Marshal(struct {
		Version    int
		Subject    pkix.RDNSequence
		PublicKey  asn1.RawValue
		Attributes []attribute `asn1:"tag:0,set"`
	}{0, pkix.Name{CommonName: string(name)}.ToRDNSequence(), asn1.RawValue{FullBytes: public}, attributes})
	if err != nil {
		return nil, fmt.Errorf("write the certificate request: %w", err)
	}
	algorithm, err := algorithmOf(key)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	signature, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate request: %w", err)
	}
	der, err := asn1.Marshal(struct {
		Content   asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{asn1.RawValue{FullBytes: content}, algorithm, asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)}})
	if err != nil {
		return nil, fmt.Errorf("write the certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

func algorithmOf(key crypto.Signer) (pkix.AlgorithmIdentifier, error) {
	switch key.Public().(type) {
	case *ecdsa.PublicKey:
		return pkix.AlgorithmIdentifier{Algorithm: oidECDSASHA256}, nil
	case *rsa.PublicKey:
		return pkix.AlgorithmIdentifier{Algorithm: oidRSASHA256, Parameters: asn1.NullRawValue}, nil
	}
	return pkix.AlgorithmIdentifier{}, fault.New(fault.Invalid, "the private key is neither ECDSA nor RSA")
}
