package pki_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

func TestWhatACertificateSays(t *testing.T) {
	t.Parallel()
	a := open(t, pki.Config{Autosign: allowEvery, AllowSubjectAltNames: true, AllowAuthorizationExtensions: true}, pkitest.NewMemory())
	key := pkitest.NewKey(t)
	submit(t, a, pkitest.CSR{Name: "web1.example.com", Key: key, Extensions: []pkix.Extension{
		pkitest.Text(t, oidRole, "frontend"), pkitest.Text(t, oidPrivate, "7"), pkitest.Admin(t),
		pkitest.AltNames(t, "www.example.com", "web1.example.com"),
	}})
	cert := certificate(t, a, "web1.example.com")

	if cert.Subject.String() != "CN=web1.example.com" || cert.SerialNumber.Sign() <= 0 || cert.IsCA || !cert.BasicConstraintsValid {
		t.Errorf("subject %s, serial %s, CA %t", cert.Subject, cert.SerialNumber, cert.IsCA)
	}
	if cert.KeyUsage != x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment || cert.SignatureAlgorithm != x509.ECDSAWithSHA256 {
		t.Errorf("key usage %b, signature %s", cert.KeyUsage, cert.SignatureAlgorithm)
	}
	if diff := cmp.Diff([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, cert.ExtKeyUsage); diff != "" {
		t.Errorf("extended key usage (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"web1.example.com", "www.example.com"}, cert.DNSNames); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if len(cert.SubjectKeyId) == 0 || len(cert.AuthorityKeyId) == 0 || !bytes.Contains(cert.Raw, []byte("Tutti Fleet Certificate")) {
		t.Error("key identifiers or comment are missing")
	}
	if before := time.Since(cert.NotBefore); before < 24*time.Hour || before > 25*time.Hour {
		t.Errorf("valid since %s", before)
	}
	if left := time.Until(cert.NotAfter); left < 1824*24*time.Hour || left > 1825*24*time.Hour {
		t.Errorf("valid for %s", left)
	}
	if !pki.IsAdmin(cert) {
		t.Error("pp_cli_auth is not seen")
	}
	_, err := cert.Verify(x509.VerifyOptions{Roots: a.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, DNSName: "www.example.com"})
	must(t, err)
	must(t, a.Revocations.CheckPeer(cert))

	trusted, err := a.Trusted(cert, nil)
	must(t, err)
	want := `{"authenticated":"remote","certname":"web1.example.com","extensions":{"pp_role":"frontend","1.3.6.1.4.1.34380.1.2.7":"7","pp_cli_auth":"true"},` +
		`"hostname":"web1","domain":"example.com","external":{}}` // in the order in which the request named the extensions
	if string(trusted) != want {
		t.Errorf("trusted data\n got %s\nwant %s", trusted, want)
	}
}

// A certificate of hours was not good for a day before: whoever renews in the last third of a life would find it old at once.
func TestAShortLifeBeginsShortlyBefore(t *testing.T) {
	t.Parallel()
	a := open(t, pki.Config{Autosign: pki.AutosignPolicy{All: true}, LeafTTL: 6 * time.Hour}, pkitest.NewMemory())
	submit(t, a, pkitest.CSR{Name: "web1"})
	if before := time.Since(certificate(t, a, "web1").NotBefore); before < 6*time.Hour || before > 7*time.Hour {
		t.Errorf("valid since %s", before)
	}
}

func TestTrustedDataOfAPlainName(t *testing.T) {
	t.Parallel()
	a := open(t, pki.Config{Autosign: allowEvery, OIDNames: map[string]string{oidPrivate.String(): "rack"}}, pkitest.NewMemory())
	submit(t, a, pkitest.CSR{Name: "web1", Extensions: []pkix.Extension{pkitest.Text(t, oidPrivate, "b7")}})
	trusted, err := a.Trusted(certificate(t, a, "web1"), nil)
	must(t, err)
	var got struct {
		Domain     *string
		Extensions map[string]string
	}
	must(t, json.Unmarshal(trusted, &got))
	if got.Domain != nil || got.Extensions["rack"] != "b7" {
		t.Errorf("trusted data %s", trusted)
	}
}

func TestListAndShow(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a := open(t, pki.Config{AllowAuthorizationExtensions: true}, pkitest.NewMemory())
	for _, name := range []string{"web2", "web1", "web3"} {
		submit(t, a, pkitest.CSR{Name: name, Extensions: []pkix.Extension{pkitest.Admin(t), pkitest.Text(t, oidImage, "base")}})
	}
	_, err := a.Requests.Sign(ctx, "web2", time.Hour)
	must(t, err)
	_, err = a.Requests.Sign(ctx, "web3", 0)
	must(t, err)
	must(t, a.Revoke(ctx, "web3"))
	entries, err := a.List(ctx)
	must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, string(e.Certname)+" "+string(e.State))
		if len(e.Fingerprints.SHA256) != 95 || len(e.Fingerprints.SHA1) != 59 || len(e.Fingerprints.SHA512) != 191 ||
			strings.ToUpper(e.Fingerprints.SHA256) != e.Fingerprints.SHA256 {
			t.Errorf("fingerprints %+v", e.Fingerprints)
		}
		if e.AuthorizationExtensions["pp_cli_auth"] != "true" || e.Extensions["pp_image_name"] != "base" {
			t.Errorf("extensions %v and %v", e.AuthorizationExtensions, e.Extensions)
		}
	}
	if diff := cmp.Diff([]string{"web1 requested", "web2 signed", "web3 revoked"}, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	shown, err := a.Show(ctx, "web2")
	must(t, err)
	if shown.Serial == nil || time.Until(shown.NotAfter) > time.Hour || shown.DNSAltNames()[0] != "DNS:web2" {
		t.Errorf("web2 is shown as %+v", shown)
	}
	_, err = a.Show(ctx, "web9")
	wantKind(t, err, fault.NotFound)
}

// A connection may outlive the certificate that it was made with.
func TestAPeerWhoseCertificateEndedIsRefused(t *testing.T) {
	t.Parallel()
	a := open(t, pki.Config{Autosign: allowEvery}, pkitest.NewMemory())
	submit(t, a, pkitest.CSR{Name: "web1"})
	cert := certificate(t, a, "web1")
	must(t, a.Revocations.CheckPeer(cert))
	ended := *cert
	ended.NotAfter = time.Now().Add(-time.Minute)
	wantKind(t, a.Revocations.CheckPeer(&ended), fault.Denied)
}

func TestRevocation(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cfg := pki.Config{Dir: t.TempDir(), Autosign: allowEvery}
	store := pkitest.NewMemory()
	a := open(t, cfg, store)
	var told []*big.Int
	for _, name := range []string{"web1", "web2"} {
		submit(t, a, pkitest.CSR{Name: name})
	}
	web1, web2 := certificate(t, a, "web1"), certificate(t, a, "web2")
	a.Revocations.OnRevoke(func(serials []*big.Int) {
		wantKind(t, a.Revocations.CheckPeer(web1), fault.Denied) // refused before anybody is told
		told = append(told, serials...)
	})
	before := list(t, a)
	must(t, a.Revoke(ctx, "web1"))
	must(t, a.Revoke(ctx, "web1")) // again is fine
	wantKind(t, a.Revoke(ctx, "web9"), fault.NotFound)
	after := list(t, a)
	if len(told) != 1 || told[0].Cmp(web1.SerialNumber) != 0 {
		t.Errorf("hook was told %v", told)
	}
	must(t, a.Revocations.CheckPeer(web2))
	entries := after.RevokedCertificateEntries
	if len(entries) != 1 || entries[0].SerialNumber.Cmp(web1.SerialNumber) != 0 || entries[0].ReasonCode != 1 {
		t.Errorf("list holds %v", entries)
	}
	if after.Number.Cmp(before.Number) <= 0 || time.Since(after.ThisUpdate) < 24*time.Hour {
		t.Errorf("list number %s after %s, from %s", after.Number, before.Number, after.ThisUpdate)
	}

	again := open(t, cfg, store) // a restart forgets nothing
	wantKind(t, again.Revocations.CheckPeer(web1), fault.Denied)
	must(t, again.Revocations.CheckPeer(web2))
	if restarted := list(t, again); len(restarted.RevokedCertificateEntries) != 1 || restarted.Number.Cmp(after.Number) <= 0 {
		t.Errorf("list after a restart: %v", restarted)
	}
}

func TestRunSeesWhatAnotherProcessRevoked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cfg := pki.Config{Dir: dir, Autosign: allowEvery}
		store := pkitest.NewMemory()
		one, two := open(t, cfg, store), open(t, cfg, store)
		submit(t, one, pkitest.CSR{Name: "web1"})
		cert := certificate(t, one, "web1")
		told := make(chan []*big.Int, 1)
		two.Revocations.OnRevoke(func(serials []*big.Int) { told <- serials })
		done := make(chan error, 1)
		go func() { done <- two.Run(t.Context()) }()
		must(t, one.Revoke(t.Context(), "web1"))
		<-told
		wantKind(t, two.Revocations.CheckPeer(cert), fault.Denied)
		synctest.Wait()
		if len(list(t, two).RevokedCertificateEntries) != 1 {
			t.Error("the other process's list is empty")
		}
	})
}

func TestCleanFreesNames(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a := open(t, pki.Config{}, pkitest.NewMemory())
	for _, name := range []fleet.Certname{"web1", "web2"} {
		submit(t, a, pkitest.CSR{Name: string(name)})
		_, err := a.Requests.Sign(ctx, name, 0)
		must(t, err)
	}
	submit(t, a, pkitest.CSR{Name: "web3"}) // only a request
	wantKind(t, a.Revoke(ctx, "web3"), fault.Conflict)
	unknown, err := a.Clean(ctx, "web1", "web2", "web3", "web4")
	must(t, err)
	if diff := cmp.Diff([]fleet.Certname{"web4"}, unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	if got := list(t, a); len(got.RevokedCertificateEntries) != 2 {
		t.Errorf("list holds %v", got.RevokedCertificateEntries)
	}
	entries, err := a.List(ctx)
	must(t, err)
	if len(entries) != 0 {
		t.Errorf("left over: %v", entries)
	}
}

func TestRenewal(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store, dir := pkitest.NewMemory(), t.TempDir()
	off := open(t, pki.Config{Dir: dir, Autosign: allowEvery}, store)
	submit(t, off, pkitest.CSR{Name: "web1", Extensions: []pkix.Extension{pkitest.Text(t, oidRole, "x")}})
	old := certificate(t, off, "web1")
	_, err := off.Renew(ctx, old)
	wantKind(t, err, fault.NotFound)

	a := open(t, pki.Config{Dir: dir, AllowRenewal: true}, store)
	renewed, err := a.Renew(ctx, old)
	must(t, err)
	cert := parse(t, renewed.PEM)
	if !bytes.Equal(cert.RawSubjectPublicKeyInfo, old.RawSubjectPublicKeyInfo) || cert.SerialNumber.Cmp(old.SerialNumber) == 0 ||
		!bytes.Contains(cert.Raw, pkitest.Text(t, oidRole, "x").Value) {
		t.Error("the renewed certificate differs in more than its number")
	}
	must(t, a.Revoke(ctx, "web1")) // takes both
	wantKind(t, a.Revocations.CheckPeer(old), fault.Denied)
	wantKind(t, a.Revocations.CheckPeer(cert), fault.Denied)
	_, err = a.Renew(ctx, cert)
	wantKind(t, err, fault.Denied)

	other := open(t, pki.Config{Autosign: allowEvery}, pkitest.NewMemory())
	submit(t, other, pkitest.CSR{Name: "web1"})
	_, err = a.Renew(ctx, certificate(t, other, "web1"))
	wantKind(t, err, fault.Denied)
}

func TestServerCertificate(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a := open(t, pki.Config{}, pkitest.NewMemory())
	get := func(names ...string) tls.Certificate {
		t.Helper()
		c, err := a.Server.Certificate(ctx, names)
		must(t, err)
		return c
	}
	first := get("tutti.example.com", "localhost", "127.0.0.1")
	_, err := first.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), DNSName: "127.0.0.1"})
	must(t, err)
	if _, err := first.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
		t.Error("the server's certificate can be shown as a node's")
	}
	if again := get("localhost", "tutti.example.com", "127.0.0.1"); again.Leaf.SerialNumber.Cmp(first.Leaf.SerialNumber) != 0 {
		t.Error("made again for the same names")
	}
	if other := get("tutti.example.com"); other.Leaf.SerialNumber.Cmp(first.Leaf.SerialNumber) == 0 {
		t.Error("not made again for other names")
	}
	for _, names := range [][]string{nil, {"a b"}, {"*"}} {
		_, err := a.Server.Certificate(ctx, names)
		wantKind(t, err, fault.Invalid)
	}
}

func TestServerCertificateIsMadeAgainNearItsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := open(t, pki.Config{Dir: dir}, pkitest.NewMemory())
		first, err := a.Server.Certificate(t.Context(), []string{"localhost"})
		must(t, err)
		<-time.After(time.Until(first.Leaf.NotAfter) - 29*24*time.Hour)
		second, err := a.Server.Certificate(t.Context(), []string{"localhost"})
		must(t, err)
		if second.Leaf.SerialNumber.Cmp(first.Leaf.SerialNumber) == 0 {
			t.Error("kept a certificate that ends in 29 days")
		}
	})
}

func TestFilesOfTheAuthority(t *testing.T) {
	t.Parallel()
	for _, keyType := range []string{pki.ECDSAP256, pki.RSA4096} {
		t.Run(keyType, func(t *testing.T) {
			t.Parallel()
			cfg := pki.Config{Dir: filepath.Join(t.TempDir(), "ca"), KeyType: keyType, CAName: "Our CA"}
			store := pkitest.NewMemory()
			first := open(t, cfg, store)
			_, err := first.Server.Certificate(t.Context(), []string{"localhost"})
			must(t, err)
			for name, want := range map[string]os.FileMode{"": 0o700, "ca.pem": 0o600, "server.pem": 0o600, "ca_crt.pem": 0o644} {
				info, err := os.Stat(filepath.Join(cfg.Dir, name))
				must(t, err)
				if got := info.Mode().Perm(); got != want {
					t.Errorf("%q has mode %o, want %o", name, got, want)
				}
			}
			bundle, _ := first.Bundle()
			again, _ := open(t, cfg, store).Bundle()
			if !bytes.Equal(bundle, again) || parse(t, bundle).Subject.CommonName != "Our CA" {
				t.Error("a restart made another CA")
			}
		})
	}
}

func TestABrokenAuthorityDoesNotStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		harm func(t *testing.T, path string, store pki.Store)
		want fault.Kind
		says string
	}{
		{"a key of another CA", mixKeys, fault.Invalid, "fits none"},
		{"no key", func(t *testing.T, path string, _ pki.Store) {
			t.Helper()
			text, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path, text[bytes.Index(text, []byte("-----BEGIN CERT")):], 0o600))
		}, fault.Invalid, "no private key"},
		{"cut off", func(t *testing.T, path string, _ pki.Store) {
			t.Helper()
			must(t, os.Truncate(path, 100))
		}, fault.Invalid, "ca.pem"},
		{"readable by all", func(t *testing.T, path string, _ pki.Store) {
			t.Helper()
			must(t, os.Chmod(path, 0o644))
		}, fault.Denied, "0600"},
		{"lost after certificates were issued", func(t *testing.T, path string, store pki.Store) {
			t.Helper()
			pkitest.Save(t, store, pki.Certificate{Certname: "web1", Serial: big.NewInt(9), Current: true})
			must(t, os.Remove(path))
		}, fault.Conflict, "backup"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg, store := pki.Config{Dir: t.TempDir()}, pkitest.NewMemory()
			open(t, cfg, store)
			c.harm(t, filepath.Join(cfg.Dir, "ca.pem"), store)
			_, err := pki.Open(t.Context(), cfg, store, quiet)
			wantKind(t, err, c.want)
			if !strings.Contains(fault.Detail(err), c.says) {
				t.Errorf("error %q does not say %q", fault.Detail(err), c.says)
			}
		})
	}
}

func mixKeys(t *testing.T, path string, _ pki.Store) {
	t.Helper()
	other := t.TempDir()
	open(t, pki.Config{Dir: other}, pkitest.NewMemory())
	ours, err := os.ReadFile(path)
	must(t, err)
	theirs, err := os.ReadFile(filepath.Join(other, "ca.pem"))
	must(t, err)
	key := theirs[:bytes.Index(theirs, []byte("-----BEGIN CERT"))]
	cert := ours[bytes.Index(ours, []byte("-----BEGIN CERT")):]
	must(t, os.WriteFile(path, append(key, cert...), 0o600))
}

func TestAClockThatIsWrong(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), pkitest.NewMemory()
	a := open(t, pki.Config{Dir: dir, Autosign: allowEvery}, store) // now
	submit(t, a, pkitest.CSR{Name: "web1"})
	cert := certificate(t, a, "web1")
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		if _, err := cert.Verify(x509.VerifyOptions{
			Roots: a.Pool(), CurrentTime: time.Now().Add(off), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		}); err != nil {
			t.Errorf("a node whose clock is off by %s: %v", off, err)
		}
	}
	synctest.Test(t, func(t *testing.T) { // the bubble's clock says 2000
		_, err := pki.Open(t.Context(), pki.Config{Dir: dir}, store, quiet)
		wantKind(t, err, fault.Unavailable)
		if !strings.Contains(fault.Detail(err), "set the clock") {
			t.Errorf("error %q", fault.Detail(err))
		}
	})
}

func TestADirectoryThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	_, err := pki.Open(t.Context(), pki.Config{Dir: filepath.Join(file, "ca")}, pkitest.NewMemory(), quiet)
	wantKind(t, err, fault.Unavailable)
}

func TestSettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]pki.Config{
		"no directory": {},
		"key type":     {Dir: "x", KeyType: "dsa"},
		"short life":   {Dir: "x", LeafTTL: time.Second},
		"OID":          {Dir: "x", OIDNames: map[string]string{"1.x": "y"}},
		"pattern":      {Dir: "x", Autosign: pki.AutosignPolicy{Names: []string{"a*"}}},
	} {
		if _, err := pki.Open(t.Context(), cfg, pkitest.NewMemory(), quiet); fault.Of(err) != fault.Invalid || err == nil {
			t.Errorf("%s: error = %v", name, err)
		}
	}
}
