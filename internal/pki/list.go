package pki

import (
	"context"
	"crypto/sha1" //nolint:gosec // people compare fingerprints in it
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// State is where a name stands.
type State string

// The states that can be seen.
const (
	Requested State = "requested"
	Signed    State = "signed"
	Revoked   State = "revoked"
)

// Fingerprints of a request or certificate: capital hexadecimal digits with
// colons between.
type Fingerprints struct {
	SHA1, SHA256, SHA512 string
}

// Entry is a request or a certificate as people see it. Serial and the times are
// set for certificates only.
type Entry struct {
	Certname     fleet.Certname
	State        State
	Fingerprints Fingerprints
	// AltNames are "DNS:x" and "IP:y".
	AltNames []string
	// AuthorizationExtensions and Extensions map short names or identifiers to
	// values: those that grant rights, and the others.
	AuthorizationExtensions map[string]string
	Extensions              map[string]string
	Serial                  *big.Int
	NotBefore, NotAfter     time.Time
	RevokedAt               time.Time
	ReceivedAt              time.Time // of a request
	From                    string    // the address that a request came from
	PEM                     []byte
}

// DNSAltNames are the alternative names that are DNS names.
func (e Entry) DNSAltNames() []string {
	names := []string{}
	for _, name := range e.AltNames {
		if strings.HasPrefix(name, "DNS:") {
			names = append(names, name)
		}
	}
	return names
}

// List returns waiting requests, then current certificates, each by name.
func (a *Authority) List(ctx context.Context) ([]Entry, error) {
	requests, err := a.store.Requests(ctx)
	if err != nil {
		return nil, err
	}
	certs, err := a.store.Certificates(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(requests)+len(certs))
	for _, r := range requests {
		entries = a.appendEntry(ctx, entries, r.Certname)(a.names.requestEntry(r))
	}
	for _, c := range certs {
		entries = a.appendEntry(ctx, entries, c.Certname)(a.names.certificateEntry(c))
	}
	return entries, nil
}

// appendEntry passes over a row that cannot be read, so that one does not hide
// all others.
func (a *Authority) appendEntry(ctx context.Context, to []Entry, name fleet.Certname) func(Entry, error) []Entry {
	return func(e Entry, err error) []Entry {
		if err != nil {
			a.log.ErrorContext(ctx, "stored certificate cannot be read", "node", name, "err", err)
			return to
		}
		return append(to, e)
	}
}

// Show returns a name's certificate, or else its waiting request.
func (a *Authority) Show(ctx context.Context, name fleet.Certname) (Entry, error) {
	c, err := a.store.Certificate(ctx, name)
	if err == nil {
		return a.names.certificateEntry(c)
	}
	if fault.Of(err) != fault.NotFound {
		return Entry{}, err
	}
	r, err := a.store.Request(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return Entry{}, fault.New(fault.NotFound, "there is no certificate and no request of %s", name)
	}
	if err != nil {
		return Entry{}, err
	}
	return a.names.requestEntry(r)
}

// Certificate returns the current certificate of a name, revoked or not.
func (a *Authority) Certificate(ctx context.Context, name fleet.Certname) (Certificate, error) {
	return a.store.Certificate(ctx, name)
}

func (n shortNames) requestEntry(r Request) (Entry, error) {
	parsed, err := parseCSR(r.PEM)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{
		Certname: r.Certname, State: Requested, Fingerprints: fingerprints(parsed.Raw), ReceivedAt: r.ReceivedAt, From: r.From,
		AltNames: altNameTexts(parsed.altNames), PEM: r.PEM,
	}
	e.AuthorizationExtensions, e.Extensions = n.split(parsed.requested)
	return e, nil
}

func (n shortNames) certificateEntry(c Certificate) (Entry, error) {
	certs, err := parseCertificates(c.PEM)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{
		Certname: c.Certname, State: Signed, Fingerprints: fingerprints(certs[0].Raw), Serial: c.Serial, PEM: c.PEM,
		AltNames: altNameTexts(altNamesOf(certs[0])), NotBefore: c.NotBefore, NotAfter: c.NotAfter, RevokedAt: c.RevokedAt,
	}
	if !c.RevokedAt.IsZero() {
		e.State = Revoked
	}
	e.AuthorizationExtensions, e.Extensions = n.split(puppetExtensions(certs[0]))
	return e, nil
}

// EntryOf is a certificate as people see it, without its extensions.
func EntryOf(cert *x509.Certificate) Entry {
	return Entry{
		Certname: fleet.Certname(cert.Subject.CommonName), State: Signed, Fingerprints: fingerprints(cert.Raw), Serial: cert.SerialNumber,
		AltNames: altNameTexts(altNamesOf(cert)), NotBefore: cert.NotBefore.UTC(), NotAfter: cert.NotAfter.UTC(), PEM: encodeCertificate(cert.Raw),
	}
}

func (n shortNames) split(all []pkix.Extension) (authorization, other map[string]string) {
	var grants, rest []pkix.Extension
	for _, ext := range all {
		if under(ext.Id, oidPuppetAuthorization) {
			grants = append(grants, ext)
		} else {
			rest = append(rest, ext)
		}
	}
	return byName(n.named(grants)), byName(n.named(rest))
}

func altNameTexts(names []altName) []string {
	texts := []string{}
	for _, name := range names {
		texts = append(texts, name.String())
	}
	return texts
}

func fingerprints(der []byte) Fingerprints {
	s1, s256, s512 := sha1.Sum(der), sha256.Sum256(der), sha512.Sum512(der) //nolint:gosec // see the import
	return Fingerprints{SHA1: colons(s1[:]), SHA256: colons(s256[:]), SHA512: colons(s512[:])}
}

func colons(sum []byte) string {
	return strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":")
}

// FingerprintOf is the SHA-256 of the first certificate in PEM text, in colon
// form, as people compare it; empty if there is none.
func FingerprintOf(text []byte) string {
	block, _ := pem.Decode(text)
	if block == nil {
		return ""
	}
	return fingerprints(block.Bytes).SHA256
}
