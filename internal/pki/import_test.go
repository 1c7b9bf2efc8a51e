package pki_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return text
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// classicCA makes a Puppet CA directory with the tool that operators used:
// a root and an intermediate, and the primary server's certificate.
func classicCA(t *testing.T) string {
	t.Helper()
	tool, err := exec.LookPath("puppetserver")
	if err != nil {
		t.Fatal("puppetserver is missing: apt-get install puppetserver")
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "puppet.conf"),
		"[main]\nconfdir="+dir+"\nvardir="+dir+"/var\nssldir="+dir+"/ssl\nkeylength=2048\n[server]\ncadir="+dir+"/ca\n")
	out, err := exec.CommandContext(t.Context(), tool, "ca", "setup", "--config", filepath.Join(dir, "puppet.conf"),
		"--certname", "primary.example", "--ca-name", "Old CA").CombinedOutput()
	if err != nil {
		t.Fatalf("puppetserver ca setup: %v\n%s", err, out)
	}
	return filepath.Join(dir, "ca")
}

func TestImportOfAPuppetCA(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := classicCA(t)
	inventory := string(readFile(t, filepath.Join(dir, "inventory.txt"))) +
		"0x0007 2020-01-01T00:00:00UTC 2099-01-01T00:00:00UTC /CN=cleaned\n" +
		"0x0008 2010-01-01T00:00:00UTC 2011-01-01T00:00:00UTC /CN=ended\nnonsense\n"
	writeFile(t, filepath.Join(dir, "inventory.txt"), inventory)
	writeFile(t, filepath.Join(dir, "requests", "web1.pem"), string(pkitest.CSR{Name: "web1"}.PEM(t)))
	writeFile(t, filepath.Join(dir, "requests", "web2.pem"), string(pkitest.CSR{Name: "web2", Forge: true}.PEM(t)))

	cfg, store := pki.Config{Dir: t.TempDir()}, pkitest.NewMemory()
	a := open(t, cfg, store)
	fresh, _ := a.Bundle()
	server, err := a.Server.Certificate(ctx, []string{"localhost"})
	must(t, err)
	got, err := a.Import(ctx, dir)
	must(t, err)
	if got.Certificates != 1 || got.Requests != 1 || len(got.Skipped) != 2 {
		t.Errorf("imported %+v", got)
	}
	_, err = a.Import(ctx, dir) // an import that was cut short may be repeated
	must(t, err)

	bundle, _ := a.Bundle()
	if string(bundle) == string(fresh) || strings.Count(string(bundle), "BEGIN") != 2 {
		t.Errorf("the bundle is\n%s", bundle)
	}
	primary := certificate(t, a, "primary.example")
	must(t, a.Revocations.CheckPeer(primary))
	if !pki.IsAdmin(primary) {
		t.Error("the primary server is no administrator any more")
	}
	if lists, _ := a.Revocations.CRL(); strings.Count(string(lists), "BEGIN") != 2 {
		t.Errorf("the lists are\n%s", lists)
	}
	second, err := a.Server.Certificate(ctx, []string{"localhost"})
	must(t, err)
	if second.Leaf.SerialNumber.Cmp(server.Leaf.SerialNumber) == 0 || len(second.Certificate) != 2 {
		t.Error("the server still shows the old CA's certificate, or leaves out the intermediate")
	}

	signed, err := a.Requests.Sign(ctx, "web1", 0)
	must(t, err)
	if signed.Serial.BitLen() != 129 { // above all that was counted
		t.Errorf("serial number %s may have been handed out before", signed.Serial)
	}
	must(t, a.Revoke(ctx, "cleaned")) // known by its inventory line only
	wantKind(t, a.Revoke(ctx, "ended"), fault.NotFound)
	must(t, a.Revoke(ctx, "primary.example"))
	var revoked []int64
	for _, entry := range list(t, a).RevokedCertificateEntries {
		revoked = append(revoked, entry.SerialNumber.Int64())
	}
	if diff := cmp.Diff([]int64{1, 7}, revoked); diff != "" {
		t.Errorf("revoked (-want +got):\n%s", diff)
	}
	again := open(t, cfg, store)
	wantKind(t, again.Revocations.CheckPeer(primary), fault.Denied)
	if err := again.Revocations.MergeCRLs(ctx, readFile(t, filepath.Join(dir, "ca_crl.pem"))); err != nil {
		t.Errorf("lists of its own chain: %v", err)
	}
	foreign, _ := open(t, pki.Config{}, pkitest.NewMemory()).Revocations.CRL()
	wantKind(t, again.Revocations.MergeCRLs(ctx, foreign), fault.Invalid)
	_, err = again.Import(ctx, dir) // it has issued web1 since
	wantKind(t, err, fault.Conflict)
}

// exported writes an authority's state in the layout of a classic CA that
// signs with its root.
func exported(t *testing.T, a *pki.Authority, dir string) string {
	t.Helper()
	out := t.TempDir()
	text := string(readFile(t, filepath.Join(dir, "ca.pem")))
	key, bundle, _ := strings.Cut(text, "-----BEGIN CERTIFICATE-----")
	writeFile(t, filepath.Join(out, "ca_key.pem"), key)
	writeFile(t, filepath.Join(out, "ca_crt.pem"), "-----BEGIN CERTIFICATE-----"+bundle)
	lists, _ := a.Revocations.CRL()
	writeFile(t, filepath.Join(out, "ca_crl.pem"), string(lists))
	entries, err := a.List(t.Context())
	must(t, err)
	for _, e := range entries {
		writeFile(t, filepath.Join(out, "signed", string(e.Certname)+".pem"), string(e.PEM))
	}
	return out
}

func TestImportKeepsTheRevokedRevoked(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	oldDir := t.TempDir()
	old := open(t, pki.Config{Dir: oldDir, Autosign: allowEvery}, pkitest.NewMemory())
	for _, name := range []fleet.Certname{"good", "bad", "gone"} {
		submit(t, old, pkitest.CSR{Name: string(name)})
	}
	good, bad, gone := certificate(t, old, "good"), certificate(t, old, "bad"), certificate(t, old, "gone")
	must(t, old.Revoke(ctx, "bad"))
	_, err := old.Clean(ctx, "gone")
	must(t, err)
	dir := exported(t, old, oldDir)
	ec, err := x509.MarshalECPrivateKey(keyIn(t, filepath.Join(dir, "ca_key.pem"))) // as openssl ecparam writes it
	must(t, err)
	writeFile(t, filepath.Join(dir, "ca_key.pem"), "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"+
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: ec})))

	a := open(t, pki.Config{}, pkitest.NewMemory())
	imported, err := a.Import(ctx, dir)
	must(t, err)
	if imported.Certificates != 2 || imported.Revoked != 2 {
		t.Errorf("imported %+v", imported)
	}
	must(t, a.Revocations.CheckPeer(good))
	wantKind(t, a.Revocations.CheckPeer(bad), fault.Denied)
	wantKind(t, a.Revocations.CheckPeer(gone), fault.Denied)
	if before, after := list(t, old), list(t, a); after.Number.Cmp(before.Number) <= 0 || len(after.RevokedCertificateEntries) != 2 {
		t.Errorf("list %s with %d entries follows %s", after.Number, len(after.RevokedCertificateEntries), before.Number)
	}
	entry, err := a.Show(ctx, "bad")
	must(t, err)
	if entry.State != pki.Revoked || time.Since(entry.RevokedAt) > time.Hour {
		t.Errorf("bad is shown as %+v", entry)
	}
}

func TestImportsThatAreRefused(t *testing.T) {
	t.Parallel()
	oldDir := t.TempDir()
	old := open(t, pki.Config{Dir: oldDir}, pkitest.NewMemory())
	other := t.TempDir()
	open(t, pki.Config{Dir: other}, pkitest.NewMemory())
	for _, c := range []struct {
		name string
		harm func(t *testing.T, dir string)
		want fault.Kind
	}{
		{"no key", func(t *testing.T, dir string) { t.Helper(); must(t, os.Remove(filepath.Join(dir, "ca_key.pem"))) }, fault.Invalid},
		{"no list", func(t *testing.T, dir string) { t.Helper(); must(t, os.Remove(filepath.Join(dir, "ca_crl.pem"))) }, fault.Invalid},
		{"another key", func(t *testing.T, dir string) {
			t.Helper()
			writeFile(t, filepath.Join(dir, "ca_key.pem"), string(readFile(t, filepath.Join(other, "ca.pem"))))
		}, fault.Invalid},
		{"an encrypted key", func(t *testing.T, dir string) {
			t.Helper()
			writeFile(t, filepath.Join(dir, "ca_key.pem"), "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
		}, fault.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := exported(t, old, oldDir)
			c.harm(t, dir)
			a := open(t, pki.Config{}, pkitest.NewMemory())
			before, _ := a.Bundle()
			_, err := a.Import(t.Context(), dir)
			wantKind(t, err, c.want)
			if after, _ := a.Bundle(); string(after) != string(before) {
				t.Error("a refused import changed the CA")
			}
		})
	}
}
