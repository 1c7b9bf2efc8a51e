package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Trusted is what a node's certificate says about it, as Puppet's $trusted:
// authenticated, certname, domain, hostname, extensions, external. external is
// empty: whoever knows more puts it there.
func (a *Authority) Trusted(cert *x509.Certificate) (json.RawMessage, error) {
	name := cert.Subject.CommonName
	hostname, domain, dotted := strings.Cut(name, ".")
	trusted := struct {
		Authenticated string            `json:"authenticated"`
		Certname      string            `json:"certname"`
		Domain        *string           `json:"domain"`
		Hostname      string            `json:"hostname"`
		Extensions    map[string]string `json:"extensions"`
		External      struct{}          `json:"external"`
	}{Authenticated: "remote", Certname: name, Hostname: hostname, Extensions: a.named(puppetExtensions(cert))}
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

// named maps short names, or identifiers where there is none, to values. A
// value of an early CA may be bare text instead of a DER string.
func (a *Authority) named(extensions []pkix.Extension) map[string]string {
	values := map[string]string{}
	for _, ext := range extensions {
		name, known := a.names[ext.Id.String()]
		if !known {
			name = ext.Id.String()
		}
		text, ok := extensionText(ext.Value)
		if !ok && utf8.Valid(ext.Value) {
			text, ok = string(ext.Value), true
		}
		if ok {
			values[name] = text
		}
	}
	return values
}
