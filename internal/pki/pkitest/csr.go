package pkitest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"testing"
)

// CSR describes a certificate request, sound or not. Key is made when nil.
type CSR struct {
	Name       string
	Key        crypto.Signer
	Extensions []pkix.Extension
	Challenge  string
	// Subject replaces CN=Name.
	Subject *pkix.Name
	// Forge breaks the signature.
	Forge bool
}

// NewKey makes an ECDSA P-256 key.
func NewKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Text is an extension with the DER encoding of a text as its value.
func Text(t *testing.T, id asn1.ObjectIdentifier, text string) pkix.Extension {
	t.Helper()
	return pkix.Extension{Id: id, Value: der(t, text, "utf8")}
}

// AltNames is a subject alternative name extension for DNS names.
func AltNames(t *testing.T, names ...string) pkix.Extension {
	t.Helper()
	var raw []asn1.RawValue
	for _, name := range names {
		raw = append(raw, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 2, Bytes: []byte(name)})
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: der(t, raw, "")}
}

type attribute struct {
	ID     asn1.ObjectIdentifier
	Values []asn1.RawValue `asn1:"set"`
}

// PEM encodes the request. It builds the structure by hand, because crypto/x509
// knows no challenge password.
func (c CSR) PEM(t *testing.T) []byte {
	t.Helper()
	if c.Key == nil {
		c.Key = NewKey(t)
	}
	subject := pkix.Name{CommonName: c.Name}
	if c.Subject != nil {
		subject = *c.Subject
	}
	public, err := x509.MarshalPKIXPublicKey(c.Key.Public())
	if err != nil {
		t.Fatal(err)
	}
	tbs := der(t, struct {
		Version    int
		Subject    pkix.RDNSequence
		PublicKey  asn1.RawValue
		Attributes []attribute `asn1:"tag:0,set"`
	}{Subject: subject.ToRDNSequence(), PublicKey: asn1.RawValue{FullBytes: public}, Attributes: c.attributes(t)}, "")
	algorithm, signature := sign(t, c.Key, tbs)
	if c.Forge {
		_, signature = sign(t, c.Key, append(tbs, 0))
	}
	request := der(t, struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{asn1.RawValue{FullBytes: tbs}, algorithm, asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)}}, "")
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
}

func (c CSR) attributes(t *testing.T) []attribute {
	t.Helper()
	attributes := []attribute{}
	if c.Challenge != "" {
		attributes = append(attributes, attribute{
			ID:     asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7},
			Values: []asn1.RawValue{{FullBytes: der(t, c.Challenge, "utf8")}},
		})
	}
	if len(c.Extensions) > 0 {
		attributes = append(attributes, attribute{
			ID:     asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14},
			Values: []asn1.RawValue{{FullBytes: der(t, c.Extensions, "")}},
		})
	}
	return attributes
}

func sign(t *testing.T, key crypto.Signer, message []byte) (pkix.AlgorithmIdentifier, []byte) {
	t.Helper()
	sum := sha256.Sum256(message)
	digest, opts := sum[:], crypto.SignerOpts(crypto.SHA256)
	var algorithm pkix.AlgorithmIdentifier
	switch key.Public().(type) {
	case *rsa.PublicKey:
		algorithm.Algorithm = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}
		algorithm.Parameters = asn1.NullRawValue
	case *ecdsa.PublicKey:
		algorithm.Algorithm = asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}
	case ed25519.PublicKey:
		algorithm.Algorithm = asn1.ObjectIdentifier{1, 3, 101, 112}
		digest, opts = message, crypto.Hash(0)
	default:
		t.Fatalf("no signature algorithm for %T", key)
	}
	signature, err := key.Sign(rand.Reader, digest, opts)
	if err != nil {
		t.Fatal(err)
	}
	return algorithm, signature
}

func der(t *testing.T, value any, params string) []byte {
	t.Helper()
	encoded, err := asn1.MarshalWithParams(value, params)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
