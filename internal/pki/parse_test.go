package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// FuzzJournal reads journals that somebody wrote who may write to the CA's directory and has not its key. Each line is
// taken as it is, and as the text of a line that follows from those before it.
func FuzzJournal(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	const identity = "00112233445566778899aabbccddeeff"
	const head = `{"version":1,"identity":"` + identity + `","follows":{"identity":"` + identity + `","seq":4,"chain":"x"}}`
	f.Add([]byte(head+"\n"), true)
	f.Add([]byte(head+"\n{\"seq\":5}\n{\"seq\":9}\n"), true)
	f.Add([]byte(head+"\n"+head+"\n"), true)
	f.Add([]byte(`{"done":4}`+"\n"), false)
	f.Add([]byte(`{"text":`+head+`,"chain":""}`+"\nnull\n{"), false)
	f.Fuzz(func(t *testing.T, text []byte, follows bool) {
		dir := t.TempDir()
		if follows {
			text = chained(text)
		}
		if err := os.WriteFile(filepath.Join(dir, journalName(identity)), text, 0o600); err != nil {
			t.Fatal(err)
		}
		changes := 0
		found, err := readJournal(dir, key.Public(), identity, func(Change) { changes++ })
		if err == nil {
			t.Fatalf("%q is a journal, and nobody signed it", text)
		}
		if kind := fault.Of(err); kind != fault.Invalid {
			t.Errorf("%q: kind %s: %v", text, kind, err)
		}
		if found == nil {
			return
		}
		if found.size > int64(len(text)) || changes > len(found.chains) || found.last().Identity != identity || !found.passed(found.last()) {
			t.Errorf("%q: found %+v with %d changes", text, found, changes)
		}
	})
}

// chained makes lines of a journal of texts, without signatures.
func chained(text []byte) []byte {
	var out bytes.Buffer
	before := ""
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if !json.Valid(line) {
			out.Write(line)
			continue
		}
		var compact bytes.Buffer
		_ = json.Compact(&compact, line)
		sum := sha256.Sum256(append([]byte(before), compact.Bytes()...))
		before = hex.EncodeToString(sum[:])
		out.WriteString(`{"text":` + compact.String() + `,"chain":"` + before + "\"}\n")
	}
	return out.Bytes()
}

// FuzzImportedCA takes over Puppet CAs whose bundles, lists and inventories hold anything.
func FuzzImportedCA(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Old CA"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(1000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, SubjectKeyId: []byte{1, 2, 3},
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		f.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		f.Fatal(err)
	}
	list, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(7), ThisUpdate: now, NextUpdate: now.Add(time.Hour),
		RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: big.NewInt(5), RevocationTime: now}},
	}, parsed, key)
	if err != nil {
		f.Fatal(err)
	}
	keyText, err := encodeKey(key)
	if err != nil {
		f.Fatal(err)
	}
	bundle, lists := encodeCertificate(der), encodeCRL(list)
	f.Add(bundle, lists, []byte("0x0005 2026-01-01T00:00:00UTC 2031-01-01T00:00:00UTC /CN=web1.example.com\n"))
	f.Add(append(bytes.Clone(bundle), bundle...), append(bytes.Clone(lists), lists...), []byte(""))
	f.Add(lists, bundle, []byte("x"))
	f.Add(bundle, []byte(""), []byte(""))
	f.Fuzz(func(t *testing.T, bundle, lists, inventory []byte) {
		dir := t.TempDir()
		for name, text := range map[string][]byte{
			"ca_key.pem": keyText, "ca_crt.pem": bundle, "ca_crl.pem": lists, "infra_crl.pem": lists, "inventory.txt": inventory,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := readPuppetCA(dir)
		if err != nil {
			if kind := fault.Of(err); kind == fault.Internal || kind == fault.Unavailable {
				t.Errorf("kind %s: %v", kind, err)
			}
			return
		}
		if !p.root.signer().PublicKey.(*ecdsa.PublicKey).Equal(key.Public()) {
			t.Error("a CA was taken over whose key is another one")
		}
		if _, err := parseCRLs(p.upper); len(p.upper) > 0 && err != nil {
			t.Errorf("lists that were taken over cannot be read: %v", err)
		}
	})
}
