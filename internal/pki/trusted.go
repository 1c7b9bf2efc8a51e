package pki

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"strings"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Issued is the certificate that a node has, revoked or not; NotFound.
func (a *Authority) Issued(ctx context.Context, node fleet.Certname) (*x509.Certificate, error) {
	entry, err := a.Certificate(ctx, node)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(entry.PEM)
	if block == nil {
		return nil, fault.New(fault.Internal, "the stored certificate of %s is not PEM", node)
	}
	return x509.ParseCertificate(block.Bytes)
}

// Trusted is what a node's certificate says about it, as Puppet's $trusted:
// authenticated, certname, extensions, hostname, domain, external, in Puppet's order, which
// code that iterates over it can see. extensions stand in the order of the certificate.
// external is an object of what somebody else knows of the node; nil for nothing.
func (a *Authority) Trusted(cert *x509.Certificate, external json.RawMessage) (json.RawMessage, error) {
	name := cert.Subject.CommonName
	hostname, domain, dotted := strings.Cut(name, ".")
	if external == nil {
		external = json.RawMessage("{}")
	}
	trusted := struct {
		Authenticated string          `json:"authenticated"`
		Certname      string          `json:"certname"`
		Extensions    json.RawMessage `json:"extensions"`
		Hostname      string          `json:"hostname"`
		Domain        *string         `json:"domain"`
		External      json.RawMessage `json:"external"`
	}{Authenticated: "remote", Certname: name, Hostname: hostname, Extensions: object(a.names.named(puppetExtensions(cert))), External: external}
	if dotted {
		trusted.Domain = &domain
	}
	return json.Marshal(trusted)
}

// IsAdmin tells whether a certificate may do everything: pp_cli_auth is "true".
func IsAdmin(cert *x509.Certificate) bool {
	for _, ext := range cert.Extensions {
		if ext.Id.Equal(oidAdmin) {
			text, ok := extensionText(ext.Value)
			return ok && text == "true"
		}
	}
	return false
}

// puppetExtensions are those below Puppet's own identifier.
func puppetExtensions(cert *x509.Certificate) []pkix.Extension {
	var found []pkix.Extension
	for _, ext := range cert.Extensions {
		if under(ext.Id, oidPuppet) {
			found = append(found, pkix.Extension{Id: ext.Id, Value: ext.Value})
		}
	}
	return found
}

// extension is one of a certificate: its short name, or its identifier where there is none.
type extension struct{ name, value string }

// named reads extensions, in their order. A value of an early CA may be bare text instead
// of a DER string.
func (n shortNames) named(extensions []pkix.Extension) []extension {
	var found []extension
	for _, ext := range extensions {
		name, known := n[ext.Id.String()]
		if !known {
			name = ext.Id.String()
		}
		text, ok := extensionText(ext.Value)
		if !ok && utf8.Valid(ext.Value) {
			text, ok = string(ext.Value), true
		}
		if ok {
			found = append(found, extension{name, text})
		}
	}
	return found
}

// object is the JSON object of extensions; encoding/json would sort it.
func object(extensions []extension) json.RawMessage {
	text := []byte{'{'}
	for i, ext := range extensions {
		if i > 0 {
			text = append(text, ',')
		}
		name, _ := json.Marshal(ext.name) // texts always marshal
		value, _ := json.Marshal(ext.value)
		text = append(append(append(text, name...), ':'), value...)
	}
	return append(text, '}')
}

// byName maps extensions from name to value.
func byName(extensions []extension) map[string]string {
	values := map[string]string{}
	for _, ext := range extensions {
		values[ext.name] = ext.value
	}
	return values
}
