package pki

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"strings"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// csr is a certificate request that is well formed and signed by its own key.
// Whether it may have what it asks for is checked apart.
type csr struct {
	*x509.CertificateRequest
	name      fleet.Certname
	altNames  []altName
	requested []pkix.Extension // to be copied into the certificate
	challenge string
}

func (r *csr) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: r.Raw})
}

// parseCSR reads one request in PEM and checks what needs no settings.
func parseCSR(text []byte) (*csr, error) {
	if len(text) > MaxRequestBytes {
		return nil, fault.New(fault.Invalid, "the certificate request has %d bytes, at most %d are allowed", len(text), MaxRequestBytes)
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" && block.Type != "NEW CERTIFICATE REQUEST" {
		return nil, fault.New(fault.Invalid, "the body is not a certificate request in PEM")
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, fault.New(fault.Invalid, "there is something behind the certificate request")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the certificate request cannot be read")
	}
	if err := checkKey(parsed.PublicKey); err != nil {
		return nil, err
	}
	if err := checkDigest(parsed.SignatureAlgorithm); err != nil {
		return nil, err
	}
	if err := parsed.CheckSignature(); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the certificate request is not signed by its own key")
	}
	r := &csr{CertificateRequest: parsed}
	if r.name, err = subjectName(parsed.RawSubject); err != nil {
		return nil, err
	}
	if r.challenge, err = challengePassword(parsed.RawTBSCertificateRequest); err != nil {
		return nil, err
	}
	return r, r.sortExtensions()
}

// subjectName returns the CN of a subject that holds nothing else.
func subjectName(raw []byte) (fleet.Certname, error) {
	var subject pkix.RDNSequence
	if rest, err := asn1.Unmarshal(raw, &subject); err != nil || len(rest) > 0 {
		return "", fault.New(fault.Invalid, "the request's subject cannot be read")
	}
	if len(subject) != 1 || len(subject[0]) != 1 || !subject[0][0].Type.Equal(oidCommonName) {
		return "", fault.New(fault.Invalid, "the request's subject must be CN=<certname> and nothing else")
	}
	text, ok := subject[0][0].Value.(string)
	if !ok {
		return "", fault.New(fault.Invalid, "the request's common name is not text")
	}
	return fleet.ParseCertname(text)
}

// sortExtensions keeps what a node may ask for and refuses the rest.
func (r *csr) sortExtensions() error {
	for _, ext := range r.Extensions {
		switch {
		case ext.Id.Equal(oidSubjectAltName):
			names, err := parseAltNames(ext.Value)
			if err != nil {
				return err
			}
			r.altNames = names
		case under(ext.Id, oidPuppetRegistered), under(ext.Id, oidPuppetPrivate), under(ext.Id, oidPuppetAuthorization):
			if _, ok := extensionText(ext.Value); !ok {
				return fault.New(fault.Invalid, "the requested extension %s is not text", ext.Id)
			}
			r.requested = append(r.requested, pkix.Extension{Id: ext.Id, Value: ext.Value})
		case ext.Id.Equal(oidBasicConstraints) && asksForCA(ext.Value):
			return fault.New(fault.Denied, "the request asks for a CA certificate (CA:TRUE)")
		default:
			return fault.New(fault.Denied, "the request asks for the extension %s, which nodes may not ask for", ext.Id)
		}
	}
	return nil
}

func asksForCA(value []byte) bool {
	var constraints struct {
		IsCA    bool `asn1:"optional"`
		PathLen int  `asn1:"optional,default:-1"`
	}
	_, err := asn1.Unmarshal(value, &constraints)
	return err != nil || constraints.IsCA
}

// permit checks a request against the settings and the name it was sent for.
func (c Config) permit(r *csr, name fleet.Certname) error {
	if r.name != name {
		return fault.New(fault.Invalid, "the request's subject is CN=%s, but it was sent for %s", r.name, name)
	}
	for _, alt := range r.altNames {
		if !alt.is(name) && !c.AllowSubjectAltNames {
			return fault.New(fault.Denied, "the request of %s asks for the alternative name %s, which the setting allow-subject-alt-names forbids", name, alt)
		}
	}
	for _, ext := range r.requested {
		if under(ext.Id, oidPuppetAuthorization) && !c.AllowAuthorizationExtensions {
			return fault.New(fault.Denied,
				"the request of %s asks for the authorization extension %s, which the setting allow-authorization-extensions forbids", name, ext.Id)
		}
	}
	return nil
}

// altName is a DNS name or an address.
type altName struct {
	dns string
	ip  net.IP
}

func (a altName) String() string {
	if a.ip != nil {
		return "IP:" + a.ip.String()
	}
	return "DNS:" + a.dns
}

func (a altName) is(name fleet.Certname) bool { return a.ip == nil && a.dns == string(name) }

// The tags of a GeneralName that are accepted.
const (
	tagDNS = 2
	tagIP  = 7
)

// parseAltNames is strict where crypto/x509 passes over kinds it does not know.
func parseAltNames(value []byte) ([]altName, error) {
	var raw []asn1.RawValue
	if rest, err := asn1.Unmarshal(value, &raw); err != nil || len(rest) > 0 {
		return nil, fault.New(fault.Invalid, "the requested alternative names cannot be read")
	}
	names := make([]altName, 0, len(raw))
	for _, v := range raw {
		switch {
		case v.Class == asn1.ClassContextSpecific && v.Tag == tagDNS && validDNS(string(v.Bytes)):
			names = append(names, altName{dns: string(v.Bytes)})
		case v.Class == asn1.ClassContextSpecific && v.Tag == tagIP && (len(v.Bytes) == net.IPv4len || len(v.Bytes) == net.IPv6len):
			names = append(names, altName{ip: bytes.Clone(v.Bytes)})
		default:
			return nil, fault.New(fault.Denied, "an alternative name is neither a DNS name without wildcard nor an IP address")
		}
	}
	return names, nil
}

func validDNS(name string) bool {
	if name == "" || len(name) > 253 || name[0] == '.' || strings.Contains(name, "..") {
		return false
	}
	return strings.IndexFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
	}) < 0
}

// encodeAltNames is the extension's value for own and the others, each once.
func encodeAltNames(names []altName) ([]byte, error) {
	var raw []asn1.RawValue
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name.String()] {
			continue
		}
		seen[name.String()] = true
		value := asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tagDNS, Bytes: []byte(name.dns)}
		if name.ip != nil {
			value = asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tagIP, Bytes: name.ip}
		}
		raw = append(raw, value)
	}
	return asn1.Marshal(raw)
}

// challengePassword finds the password attribute, which crypto/x509 leaves out.
func challengePassword(tbs []byte) (string, error) {
	var info struct {
		Raw        asn1.RawContent
		Version    int
		Subject    asn1.RawValue
		PublicKey  asn1.RawValue
		Attributes []asn1.RawValue `asn1:"tag:0"`
	}
	if _, err := asn1.Unmarshal(tbs, &info); err != nil {
		return "", fault.Wrap(fault.Invalid, err, "the request's attributes cannot be read")
	}
	for _, raw := range info.Attributes {
		var attribute struct {
			ID     asn1.ObjectIdentifier
			Values []asn1.RawValue `asn1:"set"`
		}
		if _, err := asn1.Unmarshal(raw.FullBytes, &attribute); err != nil || !attribute.ID.Equal(oidChallengePassword) {
			continue // other attributes are the node's own affair
		}
		if len(attribute.Values) != 1 {
			return "", fault.New(fault.Invalid, "the challenge password must have one value")
		}
		text, ok := textOf(attribute.Values[0])
		if !ok {
			return "", fault.New(fault.Invalid, "the challenge password is not text")
		}
		return text, nil
	}
	return "", nil
}

// extensionText decodes an extension's value: one string in DER.
func extensionText(value []byte) (string, bool) {
	var raw asn1.RawValue
	if rest, err := asn1.Unmarshal(value, &raw); err != nil || len(rest) > 0 {
		return "", false
	}
	return textOf(raw)
}

func textOf(v asn1.RawValue) (string, bool) {
	if v.Class != asn1.ClassUniversal || v.IsCompound {
		return "", false
	}
	switch v.Tag {
	case asn1.TagUTF8String, asn1.TagIA5String, asn1.TagPrintableString, asn1.TagT61String:
		return string(v.Bytes), utf8.Valid(v.Bytes)
	default:
		return "", false
	}
}
