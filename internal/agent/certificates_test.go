package agent

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

// enrolled writes a node's files as a join does, and returns where.
func enrolled(t *testing.T, ca *pki.Authority, name string) Config {
	t.Helper()
	c := Config{Dir: t.TempDir()}.Filled()
	key, text, err := newKey()
	must(t, err)
	certificate := pkitest.Enrol(t, ca, name, key)
	bundle, _ := ca.Bundle()
	list, _ := ca.Revocations.CRL()
	for path, content := range map[string][]byte{
		c.CAFile: bundle, c.KeyFile: text, c.CRLFile: list, c.CertificateFile: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
	} {
		must(t, write(path, content, 0o600))
	}
	return c
}

// TestRequestsThatTheCAUnderstands: a token of the CA's makes it sign, with both kinds of key.
func TestRequestsThatTheCAUnderstands(t *testing.T) {
	t.Parallel()
	ca, err := pki.Open(t.Context(), pki.Config{Dir: t.TempDir()}, pkitest.NewMemory(), discard)
	must(t, err)
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	fresh, text, err := newKey()
	must(t, err)
	again, err := parseKey(text)
	must(t, err)
	if !sameKey(fresh.Public(), again.Public()) {
		t.Error("a key is another one when it is read")
	}
	token, err := ca.Requests.NewJoinToken(t.Context(), "web1", 1e12)
	must(t, err)
	request, err := newRequest("web1", fresh, token)
	must(t, err)
	signed, err := ca.Requests.Submit(t.Context(), "web1", request, "")
	if err != nil || !signed {
		t.Errorf("with a token: signed %v, %v", signed, err)
	}
	request, err = newRequest("web2", old, "")
	must(t, err)
	signed, err = ca.Requests.Submit(t.Context(), "web2", request, "")
	if err != nil || signed {
		t.Errorf("without a token: signed %v, %v", signed, err)
	}
	request, err = newRequest("web3", fresh, token)
	must(t, err)
	if _, err = ca.Requests.Submit(t.Context(), "web3", request, ""); fault.Of(err) != fault.Denied {
		t.Errorf("with a token that is used up: %v", err)
	}
}

func TestFingerprintsProveABundle(t *testing.T) {
	t.Parallel()
	ours, theirs := bundleOf(t, pkitest.Open(t)), bundleOf(t, pkitest.Open(t))
	text := fingerprint(ours[0])
	for form, ok := range map[string]bool{
		text: true, strings.ToLower(text): true, strings.ReplaceAll(text, ":", ""): true, "SHA256:" + text: true, " " + text + "\n": true,
		text[:len(text)-3]: false, "": false, text + ":00": false, strings.Replace(text, ":", ":G", 1): false,
	} {
		sum, err := parseFingerprint(form)
		if (err == nil) != ok {
			t.Errorf("%q: %v", form, err)
		}
		if ok {
			must(t, proven(ours, sum))
		}
	}
	sum, err := parseFingerprint(text)
	must(t, err)
	if err := proven(theirs, sum); fault.Of(err) != fault.Denied || !strings.Contains(err.Error(), fingerprint(theirs[0])) {
		t.Errorf("another CA: %v", err)
	}
	if err := proven([]*x509.Certificate{ours[0], theirs[0]}, sum); fault.Of(err) != fault.Denied {
		t.Errorf("another CA slipped in: %v", err)
	}
}

func bundleOf(t *testing.T, ca *pki.Authority) []*x509.Certificate {
	t.Helper()
	text, _ := ca.Bundle()
	bundle, err := parseCertificates(text)
	must(t, err)
	return bundle
}

func TestAnIdentityFollowsItsFiles(t *testing.T) {
	t.Parallel()
	ca, err := pki.Open(t.Context(), pki.Config{Dir: t.TempDir(), Autosign: pki.AutosignPolicy{All: true}, AllowRenewal: true}, pkitest.NewMemory(), discard)
	must(t, err)
	c := enrolled(t, ca, "web1")
	id, err := LoadIdentity(c)
	must(t, err)
	if id.Name() != "web1" {
		t.Errorf("the name is %q", id.Name())
	}
	before := id.Certificate()
	renewed, err := ca.Renew(t.Context(), before)
	must(t, err)
	must(t, write(c.CertificateFile, renewed.PEM, 0o644))
	if id.Certificate().SerialNumber.Cmp(before.SerialNumber) == 0 {
		t.Error("the renewed certificate is not used")
	}
	// What cannot be used changes nothing: half a file, another's certificate.
	must(t, os.WriteFile(c.CertificateFile, renewed.PEM[:50], 0o600))
	config, err := id.TLS()
	must(t, err)
	other := enrolled(t, ca, "web2")
	text, err := os.ReadFile(other.CertificateFile)
	must(t, err)
	must(t, write(c.CertificateFile, text, 0o644))
	if id.Name() != "web1" || config.Certificates[0].Leaf.Subject.CommonName != "web1" {
		t.Error("a certificate that cannot be used is used")
	}
}

func TestIdentitiesThatCannotBe(t *testing.T) {
	t.Parallel()
	ca := pkitest.Open(t)
	for want, spoil := range map[string]func(Config){
		"has not joined":               func(c Config) { must(t, os.Remove(c.CertificateFile)) },
		"is not the key of":            func(c Config) { _, text, _ := newKey(); must(t, write(c.KeyFile, text, 0o600)) },
		"no private key in PEM":        func(c Config) { must(t, write(c.KeyFile, nil, 0o600)) },
		"there is no certificate":      func(c Config) { must(t, write(c.CAFile, []byte("x"), 0o600)) },
		"a certificate cannot be read": func(c Config) { must(t, write(c.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE"}), 0o600)) },
		"revocation list cannot":       func(c Config) { must(t, write(c.CRLFile, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL"}), 0o600)) },
	} {
		c := enrolled(t, ca, "web-"+strings.ReplaceAll(strings.ToLower(want[:5]), " ", "-")+"-x")
		spoil(c)
		if _, err := LoadIdentity(c); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), filepath.Dir(c.KeyFile)) {
			t.Errorf("%v, want the path and %q", err, want)
		}
	}
	without := enrolled(t, ca, "without-list")
	must(t, os.Remove(without.CRLFile))
	if _, err := LoadIdentity(without); err != nil {
		t.Errorf("without a revocation list: %v", err)
	}
}

// A server whose certificate was revoked is not believed any more once the list says so.
func TestRevokedServers(t *testing.T) {
	t.Parallel()
	ca := pkitest.Open(t)
	server := pkitest.Enrol(t, ca, "server1", pkitest.NewKey(t))
	leaf, err := x509.ParseCertificate(server.Certificate[0])
	must(t, err)
	chain := [][]*x509.Certificate{{leaf, bundleOf(t, ca)[0]}}
	c := enrolled(t, ca, "web1")
	id, err := LoadIdentity(c)
	must(t, err)
	config, err := id.TLS()
	must(t, err)
	must(t, config.VerifyConnection(tls.ConnectionState{VerifiedChains: chain}))
	must(t, ca.Revoke(t.Context(), "server1"))
	list, _ := ca.Revocations.CRL()
	must(t, write(c.CRLFile, list, 0o644))
	config, err = id.TLS()
	must(t, err)
	if err := config.VerifyConnection(tls.ConnectionState{VerifiedChains: chain}); err == nil || !strings.Contains(err.Error(), "server1") {
		t.Errorf("a revoked server: %v", err)
	}
	others := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate[0]})
	if err := acceptable(bytes.Join([][]byte{others}, nil), id); fault.Of(err) != fault.Invalid {
		t.Errorf("another's certificate for a renewed one: %v", err)
	}
}

func FuzzFiles(f *testing.F) {
	_, key, _ := newKey()
	f.Add(key)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if all, err := parseCertificates(text); err == nil && (len(all) == 0 || len(all) > maxCertificates) {
			t.Errorf("%d certificates", len(all))
		}
		if signer, err := parseKey(text); err == nil && signer == nil {
			t.Error("no key and no error")
		}
		if all, err := parseLists(text); err == nil && len(all) > maxLists {
			t.Errorf("%d lists", len(all))
		}
		if sum, err := parseFingerprint(string(text)); err == nil && len(sum) != 32 {
			t.Errorf("a fingerprint of %d bytes", len(sum))
		}
	})
}

// A certificate that lives for days is renewed in the last third of its life, with several tries; one that lives for years, as the
// setting says.
func TestRenewalComesInTime(t *testing.T) {
	t.Parallel()
	born := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	for _, c := range []struct {
		life, before, age time.Duration
		want              bool
	}{
		{5 * 365 * day, 60 * day, 5*365*day - 61*day, false},
		{5 * 365 * day, 60 * day, 5*365*day - 60*day, true},
		{5 * 365 * day, 0, 5*365*day - day, false},
		{30 * day, 60 * day, 19 * day, false},
		{30 * day, 60 * day, 20 * day, true},
		{3 * day, 60 * day, day, false},
		{3 * day, 60 * day, 2 * day, true},
		{2 * 6 * time.Hour, 60 * day, 6*time.Hour + time.Hour, false}, // one of six hours, as the CA makes it, an hour ago
	} {
		cert := &x509.Certificate{NotBefore: born, NotAfter: born.Add(c.life)}
		if got := renewalDue(cert, c.before, born.Add(c.age)); got != c.want {
			t.Errorf("life %s, setting %s, age %s: due %t", c.life, c.before, c.age, got)
		}
		if pause := pauseFor(cert); pause > c.life/6 || pause > 2*day || pause < min(day/2, c.life/24) {
			t.Errorf("life %s: looks again after %s", c.life, pause)
		}
	}
}

// A node that comes back shortly before its certificate ends looks at it before that.
func TestWhoHasLittleTimeLeftLooksSooner(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct{ left, most, want time.Duration }{
		{5 * 365 * 24 * time.Hour, retry, retry},
		{200 * time.Hour, daily, 20 * time.Hour},
		{time.Hour, retry, 6 * time.Minute},
		{5 * time.Second, retry, time.Second},
		{0, retry, retry},
		{-time.Hour, daily, daily},
	} {
		if got := inTime(&x509.Certificate{NotAfter: now.Add(c.left)}, c.most, now); got != c.want {
			t.Errorf("%s left: looks within %s, want %s", c.left, got, c.want)
		}
	}
}
