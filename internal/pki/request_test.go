package pki_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	must(t, err)
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	must(t, err)
	sound := pkitest.CSR{Name: "web1"}.PEM(t)
	for _, c := range []struct {
		name string
		pem  []byte
		want fault.Kind
		says string
	}{
		{"no PEM", []byte("hello"), fault.Invalid, "PEM"},
		{"a certificate", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}}), fault.Invalid, "PEM"},
		{"broken DER", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte{48, 3, 1}}), fault.Invalid, "cannot be read"},
		{"too large", append(bytes.Repeat([]byte("#\n"), 40_000), sound...), fault.Invalid, "bytes"},
		{"two requests", append(bytes.Clone(sound), sound...), fault.Invalid, "behind"},
		{"wrong signature", pkitest.CSR{Name: "web1", Forge: true}.PEM(t), fault.Invalid, "own key"},
		{"another name", pkitest.CSR{Name: "web2"}.PEM(t), fault.Invalid, "CN=web2"},
		{"a path", pkitest.CSR{Name: "../../etc/passwd"}.PEM(t), fault.Invalid, "certname"},
		{"capital letters", pkitest.CSR{Name: "Web1"}.PEM(t), fault.Invalid, "certname"},
		{"more than a CN", pkitest.CSR{Subject: &pkix.Name{CommonName: "web1", Organization: []string{"x"}}}.PEM(t), fault.Invalid, "nothing else"},
		{"no CN", pkitest.CSR{Subject: &pkix.Name{Organization: []string{"web1"}}}.PEM(t), fault.Invalid, "nothing else"},
		{"weak RSA", pkitest.CSR{Name: "web1", Key: weak}.PEM(t), fault.Denied, "1024 bits"},
		{"a small RSA exponent", readFile(t, "testdata/rsa-exponent3.pem"), fault.Denied, "exponent 3"},
		{"RSA over SHA-1", readFile(t, "testdata/rsa-sha1.pem"), fault.Denied, "SHA1"},
		{"EC over SHA-1", readFile(t, "testdata/ec-sha1.pem"), fault.Denied, "SHA1"},
		{"weak curve", pkitest.CSR{Name: "web1", Key: p224}.PEM(t), fault.Denied, "P-224"},
		{"alternative names", withExtension(t, pkitest.AltNames(t, "web1", "www")), fault.Denied, "DNS:www"},
		{"a wildcard", withExtension(t, pkitest.AltNames(t, "*.example.com")), fault.Denied, "wildcard"},
		{"an authorization extension", withExtension(t, pkitest.Admin(t)), fault.Denied, "allow-authorization-extensions"},
		{"a CA", withExtension(t, pkix.Extension{Id: oidBasic, Value: []byte{0x30, 3, 1, 1, 0xff}}), fault.Denied, "CA:TRUE"},
		{"another extension", withExtension(t, pkix.Extension{Id: oidKeyUsage, Value: []byte{3, 2, 1, 6}}), fault.Denied, "2.5.29.15"},
		{"an extension that is no text", withExtension(t, pkix.Extension{Id: oidRole, Value: []byte{2, 1, 1}}), fault.Invalid, "not text"},
		{"one extension twice", pkitest.CSR{Name: "web1", Extensions: []pkix.Extension{
			pkitest.Text(t, oidRole, "a"), pkitest.Text(t, oidRole, "b"),
		}}.PEM(t), fault.Invalid, "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := open(t, pki.Config{Autosign: allowEvery}, pkitest.NewMemory())
			_, err := a.Requests.Submit(t.Context(), "web1", c.pem, "")
			wantKind(t, err, c.want)
			if !strings.Contains(fault.Detail(err), c.says) {
				t.Errorf("error %q does not say %q", fault.Detail(err), c.says)
			}
			if entries, err := a.List(t.Context()); err != nil || len(entries) > 0 {
				t.Errorf("a refused request left %v, %v", entries, err)
			}
		})
	}
}

func withExtension(t *testing.T, ext pkix.Extension) []byte {
	t.Helper()
	return pkitest.CSR{Name: "web1", Extensions: []pkix.Extension{ext}}.PEM(t)
}

func TestKeysThatAreAccepted(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	must(t, err)
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	a := open(t, pki.Config{Autosign: allowEvery}, pkitest.NewMemory())
	for name, key := range map[string]crypto.Signer{"rsa": rsaKey, "p521": p521, "ed25519": edKey, "p256": pkitest.NewKey(t)} {
		if !submit(t, a, pkitest.CSR{Name: name, Key: key}) {
			t.Errorf("%s was not signed", name)
		}
	}
}

func TestANameHasOneKey(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a := open(t, pki.Config{}, pkitest.NewMemory())
	first := pkitest.CSR{Name: "web1", Key: pkitest.NewKey(t)}
	text := first.PEM(t)
	for range 2 { // the same again is fine
		signed, err := a.Requests.Submit(ctx, "web1", text, "")
		must(t, err)
		if signed {
			t.Fatal("signed by itself")
		}
	}
	_, err := a.Requests.Submit(ctx, "web1", pkitest.CSR{Name: "web1"}.PEM(t), "")
	wantKind(t, err, fault.Conflict)
	_, err = a.Requests.Sign(ctx, "web1", 0)
	must(t, err)
	if !submit(t, a, first) { // same key, signed
		t.Error("the key's own certificate was not found")
	}
	_, err = a.Requests.Submit(ctx, "web1", pkitest.CSR{Name: "web1"}.PEM(t), "")
	wantKind(t, err, fault.Conflict)
	_, err = a.Requests.Sign(ctx, "web1", 0)
	wantKind(t, err, fault.Conflict)
	_, err = a.Requests.Sign(ctx, "web2", 0)
	wantKind(t, err, fault.NotFound)

	must(t, a.Revoke(ctx, "web1"))
	_, err = a.Requests.Submit(ctx, "web1", text, "") // thrown out is thrown out
	wantKind(t, err, fault.Conflict)
	_, err = a.Clean(ctx, "web1")
	must(t, err)
	if submit(t, a, pkitest.CSR{Name: "web1"}) {
		t.Error("signed by itself")
	}
}

func TestANewerRequestForTheSameKeyReplacesTheOlder(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a := open(t, pki.Config{}, pkitest.NewMemory())
	key := pkitest.NewKey(t)
	plain := pkitest.CSR{Name: "web1", Key: key}
	submit(t, a, plain)
	withRole := plain
	withRole.Extensions = []pkix.Extension{pkitest.Text(t, oidRole, "frontend")}
	submit(t, a, withRole)
	entry, err := a.Show(ctx, "web1")
	must(t, err)
	if entry.Extensions["pp_role"] != "frontend" {
		t.Errorf("the older request waits: %+v", entry)
	}
	badToken, goodToken := withRole, withRole
	badToken.Challenge = "tutti-join-made-up"
	_, err = a.Requests.Submit(ctx, "web1", badToken.PEM(t), "")
	wantKind(t, err, fault.Denied)
	_, err = a.Requests.Waiting(ctx, "web1") // and the one before still waits
	must(t, err)
	goodToken.Challenge, err = a.Requests.NewJoinToken(ctx, "", time.Hour)
	must(t, err)
	if !submit(t, a, goodToken) {
		t.Error("a token that came later does not sign")
	}
}

func TestTheAutosignPolicyCanBeExchanged(t *testing.T) {
	t.Parallel()
	a := open(t, pki.Config{}, pkitest.NewMemory())
	text := pkitest.CSR{Name: "web1"}.PEM(t)
	for _, want := range []bool{false, true} {
		signed, err := a.Requests.Submit(t.Context(), "web1", text, "")
		must(t, err)
		if signed != want {
			t.Errorf("signed %t, want %t", signed, want)
		}
		must(t, a.Requests.SetAutosign(pki.AutosignPolicy{Names: []string{"web1"}}))
	}
	wantKind(t, a.Requests.SetAutosign(pki.AutosignPolicy{Names: []string{"*x*"}}), fault.Invalid)
}

func TestAutosign(t *testing.T) {
	t.Parallel()
	names := []string{"web1.example.com", "*.db.example.com"}
	decide := func(_ context.Context, name fleet.Certname, request []byte) (bool, error) {
		if name == "broken" {
			return true, errors.New("no answer")
		}
		return name == "asked" && bytes.Contains(request, []byte("CERTIFICATE REQUEST")), nil
	}
	a := open(t, pki.Config{Autosign: pki.AutosignPolicy{Names: names, Decide: decide}}, pkitest.NewMemory())
	for name, want := range map[string]bool{
		"web1.example.com": true, "web2.example.com": false, "a.db.example.com": true, "a.b.db.example.com": true,
		"db.example.com": false, "evildb.example.com": false, "asked": true, "broken": false,
	} {
		if got := submit(t, a, pkitest.CSR{Name: name}); got != want {
			t.Errorf("%s signed: %t, want %t", name, got, want)
		}
	}
	for _, bad := range []string{"web*.example.com", "*.*", "/etc", "*example.com"} {
		if err := a.Requests.SetAutosign(pki.AutosignPolicy{Names: []string{bad}}); fault.Of(err) != fault.Invalid {
			t.Errorf("pattern %q: error = %v", bad, err)
		}
	}
}

func TestJoinToken(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a := open(t, pki.Config{}, pkitest.NewMemory())
	bound, err := a.Requests.NewJoinToken(ctx, "web1", time.Hour)
	must(t, err)
	late, err := a.Requests.NewJoinToken(ctx, "", time.Nanosecond)
	must(t, err)
	for name, challenge := range map[string]string{"web2": bound, "web3": late, "web4": "tutti-join-made-up"} {
		_, err := a.Requests.Submit(ctx, fleet.Certname(name), pkitest.CSR{Name: name, Challenge: challenge}.PEM(t), "")
		wantKind(t, err, fault.Denied)
		if _, err := a.Requests.Waiting(ctx, fleet.Certname(name)); fault.Of(err) != fault.NotFound {
			t.Errorf("%s: a request with a bad token waits, where others can read it", name)
		}
	}
	if submit(t, a, pkitest.CSR{Name: "web5", Challenge: "for somebody else"}) {
		t.Error("any challenge password signs")
	}
	if !submit(t, a, pkitest.CSR{Name: "web1", Challenge: bound}) {
		t.Error("the token does not sign")
	}
	_, err = a.Clean(ctx, "web1")
	must(t, err)
	_, err = a.Requests.Submit(ctx, "web1", pkitest.CSR{Name: "web1", Challenge: bound}.PEM(t), "")
	wantKind(t, err, fault.Denied)
	_, err = a.Requests.NewJoinToken(ctx, "", 0)
	wantKind(t, err, fault.Invalid)
}

func TestOneTokenSignsOneOfMany(t *testing.T) {
	t.Parallel()
	a := open(t, pki.Config{}, pkitest.NewMemory())
	token, err := a.Requests.NewJoinToken(t.Context(), "", time.Hour)
	must(t, err)
	signed := race(t, 6, func(i int) (bool, error) {
		name := fleet.Certname("web" + string(rune('0'+i)))
		return a.Requests.Submit(t.Context(), name, pkitest.CSR{Name: string(name), Challenge: token}.PEM(t), "")
	}, fault.Denied)
	if signed != 1 {
		t.Errorf("%d certificates for one token", signed)
	}
}

func TestOneNameSignsOneOfMany(t *testing.T) {
	t.Parallel()
	a := open(t, pki.Config{Autosign: allowEvery}, pkitest.NewMemory())
	signed := race(t, 6, func(int) (bool, error) {
		return a.Requests.Submit(t.Context(), "web1", pkitest.CSR{Name: "web1"}.PEM(t), "")
	}, fault.Conflict)
	if signed != 1 {
		t.Errorf("%d certificates for one name", signed)
	}
}

// race runs try many times at once and counts who was signed; the others must
// fail with loser.
func race(t *testing.T, n int, try func(i int) (bool, error), loser fault.Kind) int32 {
	t.Helper()
	var count atomic.Int32
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			signed, err := try(i)
			if err != nil && fault.Of(err) != loser {
				t.Errorf("error = %v, want kind %s", err, loser)
			}
			if signed {
				count.Add(1)
			}
		})
	}
	wait.Wait()
	return count.Load()
}
