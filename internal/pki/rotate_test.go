package pki_test

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

// A new key for the server revokes every former one, and nodes notice nothing.
func TestTheServersKeyIsExchanged(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cfg, store := pki.Config{Dir: t.TempDir(), Autosign: allowEvery}, pkitest.NewMemory()
	a := open(t, cfg, store)
	names := []string{"tutti.example", "localhost"}
	older, err := a.Server.Certificate(ctx, []string{"older.example"})
	must(t, err)
	old, err := a.Server.Certificate(ctx, names)
	must(t, err)
	submit(t, a, pkitest.CSR{Name: "web1"})
	node := certificate(t, a, "web1")
	made, err := a.Server.Rotate(ctx, names)
	must(t, err)
	must(t, a.Revocations.CheckPeer(old.Leaf)) // until the listener shows the new one
	must(t, a.Server.RevokeFormer(ctx, made.Leaf))
	a = open(t, cfg, store)
	if kept, err := a.Server.Certificate(ctx, names); err != nil || kept.Leaf.SerialNumber.Cmp(made.Leaf.SerialNumber) != 0 {
		t.Errorf("a restart shows another certificate: %v", err)
	}
	if key, ok := made.Leaf.PublicKey.(interface{ Equal(x crypto.PublicKey) bool }); ok && key.Equal(old.Leaf.PublicKey) {
		t.Error("the key is the old one")
	}
	must(t, a.Revocations.CheckPeer(node))
	for former, want := range map[*x509.Certificate]bool{older.Leaf: false, old.Leaf: false, made.Leaf: true, node: true} {
		out, ok := verified(t, a, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: former.Raw}))
		if ok != want || !want && !strings.Contains(out, "certificate revoked") {
			t.Errorf("openssl says of %s: %s", former.Subject, out)
		}
	}
	must(t, a.Server.RevokeFormer(ctx, made.Leaf)) // again is fine
	_, err = a.Requests.Submit(ctx, "older.example", pkitest.CSR{Name: "older.example"}.PEM(t), "")
	wantKind(t, err, fault.Denied)
}

// A list that is good for days is made anew by itself long before it runs out.
func TestTheListNeverRunsOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := open(t, pki.Config{Dir: dir, CRLTTL: 48 * time.Hour, RefreshEvery: time.Hour}, pkitest.NewMemory())
		go func() { _ = a.Run(t.Context()) }()
		first := list(t, a).Number
		for range 100 {
			<-time.After(6 * time.Hour)
			synctest.Wait()
			if left := time.Until(list(t, a).NextUpdate); left < 22*time.Hour {
				t.Fatalf("the list is good for %s more", left)
			}
		}
		if made := list(t, a).Number.Int64() - first.Int64(); made > 26 {
			t.Errorf("%d lists in 25 days", made)
		}
	})
}
