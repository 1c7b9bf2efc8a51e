package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tutti-project/tutti/api"
)

// Somebody who has only an export, the CA's certificate, SHA-256 and openssl comes to the same result, also after
// the server's certificate was exchanged.
func TestAnExportOfTheAuditLogIsCheckedByOpenssl(t *testing.T) {
	begin(t)
	s, dir := startServer(t), t.TempDir()
	s.tutti(t, "user", "create", "ann", "--no-password", "--role", "viewer")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	s.tutti(t, "user", "delete", "ann")
	s.tutti(t, "ca", "rotate-server")
	file := filepath.Join(dir, "audit.jsonl")
	s.tutti(t, "audit", "export", file)
	contains(t, s.tutti(t, "audit", "verify"), "The audit log is whole")

	public := filepath.Join(dir, "public.pem")
	key, err := exec.CommandContext(t.Context(), "openssl", "x509", "-in", filepath.Join(s.data, api.CAFile), "-pubkey", "-noout").Output()
	if err != nil {
		t.Fatal(err)
	}
	write(t, public, string(key))
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^{"line":({"seq":(\d+),"previous":"([0-9a-f]*)",.*}),"digest":"([0-9a-f]{64})"}$`)
	head := regexp.MustCompile(`^{"head":{"line":(\d+),"digest":"([0-9a-f]{64})","at":"([^"]+)","signer":"[0-9a-f]{64}","signature":"([^"]+)"}}$`)
	last, previous, heads := 0, "", 0
	for row := range bytes.Lines(content) {
		row = bytes.TrimSuffix(row, []byte("\n"))
		if m := line.FindSubmatch(row); m != nil {
			last++
			sum := sha256.Sum256(m[1])
			if string(m[2]) != fmt.Sprint(last) || string(m[3]) != previous || string(m[4]) != hex.EncodeToString(sum[:]) {
				t.Fatalf("row %d is not in the chain: %s", last, row)
			}
			previous = string(m[4])
		} else if m := head.FindSubmatch(row); m != nil {
			heads++
			if string(m[2]) != previous || string(m[1]) != fmt.Sprint(last) {
				t.Fatalf("the head is not of line %d: %s", last, row)
			}
			signature, err := base64.StdEncoding.DecodeString(string(m[4]))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "signature"), string(signature))
			cmd := exec.CommandContext(t.Context(), "openssl", "dgst", "-sha256", "-verify", public, "-signature", filepath.Join(dir, "signature"))
			cmd.Stdin = bytes.NewReader(fmt.Appendf(nil, "tutti audit head\n%s\n%s\n%s\n", m[1], m[2], m[3]))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("openssl does not take the signature: %v\n%s\n%s", err, out, row)
			}
		}
	}
	if heads < 2 || last < 7 {
		t.Errorf("%d heads and %d lines were exported; want one of the stop and one of the export at least, and 7 lines", heads, last)
	}
}
