package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

const (
	minRSABits     = 2048
	maxRSABits     = 8192 // a larger one costs us time for every check
	minRSAExponent = 65537
)

func newKey(keyType string) (crypto.Signer, error) {
	if keyType == RSA4096 {
		return rsa.GenerateKey(rand.Reader, 4096)
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// checkKey tells whether a public key is strong enough for a certificate.
func checkKey(public crypto.PublicKey) error {
	switch key := public.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return fault.New(fault.Denied, "the RSA key has %d bits: use %d to %d", bits, minRSABits, maxRSABits)
		}
		if key.E < minRSAExponent {
			return fault.New(fault.Denied, "the RSA key has the public exponent %d: make one with %d, as every tool does by itself", key.E, minRSAExponent)
		}
		return nil
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return nil
		}
		return fault.New(fault.Denied, "the elliptic curve %s is not accepted: use P-256, P-384 or P-521", key.Params().Name)
	case ed25519.PublicKey:
		return nil
	default:
		return fault.New(fault.Denied, "the key is neither RSA nor EC nor Ed25519")
	}
}

// checkDigest refuses signatures over digests for which collisions were found.
func checkDigest(algorithm x509.SignatureAlgorithm) error {
	switch algorithm {
	case x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA, x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS,
		x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512, x509.PureEd25519:
		return nil
	case x509.UnknownSignatureAlgorithm, x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.DSAWithSHA256, x509.ECDSAWithSHA1:
	}
	return fault.New(fault.Denied, "the certificate request is signed by %s: sign it with SHA-256 or better", algorithm)
}

func sameKey(a, b crypto.PublicKey) bool {
	key, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && key.Equal(b)
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// parseKey finds the one private key in PEM text: PKCS #8, PKCS #1 or SEC 1.
func parseKey(text []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if !strings.HasSuffix(block.Type, "PRIVATE KEY") {
			continue
		}
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return nil, fault.New(fault.Invalid, "the private key is encrypted: decrypt it first, for example with openssl pkey")
		}
		return parseKeyDER(block.Bytes)
	}
	return nil, fault.New(fault.Invalid, "there is no private key in PEM")
}

func parseKeyDER(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	return nil, fault.New(fault.Invalid, "the private key is neither RSA nor EC nor Ed25519, or its encoding is broken")
}

// keyID is a certificate's subject key identifier (RFC 7093, method 1).
func keyID(public crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(der)
	return sum[:20], nil
}

func signatureAlgorithm(key crypto.Signer) x509.SignatureAlgorithm {
	switch key.Public().(type) {
	case *rsa.PublicKey:
		return x509.SHA256WithRSA
	case *ecdsa.PublicKey:
		return x509.ECDSAWithSHA256
	default:
		return x509.UnknownSignatureAlgorithm // Ed25519 has one only
	}
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// parseCertificates reads every certificate in PEM text, in order.
func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "certificate %d is broken", len(certs)+1)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, fault.New(fault.Invalid, "there is no certificate in PEM")
	}
	return certs, nil
}
