package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func FuzzRequest(f *testing.F) {
	for _, seed := range seeds(f, "*.pem") {
		f.Add(seed)
	}
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseCSR(text)
		if err != nil {
			if kind := fault.Of(err); kind != fault.Invalid && kind != fault.Denied {
				t.Fatalf("kind %s: %v", kind, err)
			}
			return
		}
		if _, err := fleet.ParseCertname(string(r.name)); err != nil {
			t.Fatalf("name %q was let in", r.name)
		}
		again, err := parseCSR(r.pem())
		if err != nil || again.name != r.name || again.challenge != r.challenge {
			t.Fatalf("the request changes when written again: %v", err)
		}
	})
}

// seeds are requests that stock tools made.
func seeds(f *testing.F, pattern string) [][]byte {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	var all [][]byte
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, text)
	}
	return all
}

func FuzzInventory(f *testing.F) {
	f.Add([]byte("0x0001 2026-01-01T00:00:00UTC 2031-01-01T00:00:00UTC /CN=web1.example.com\n"))
	f.Add([]byte("# 0x\n\n0x 1 2 /CN=\n0xffff 2026-01-01T00:00:00GMT 2031-01-01T00:00:00UTC /CN=../x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lines, skipped := parseInventory(text)
		for _, line := range lines {
			if _, err := fleet.ParseCertname(string(line.name)); err != nil || line.serial.Sign() <= 0 {
				t.Fatalf("let in %+v", line)
			}
		}
		for _, line := range skipped {
			if !utf8.ValidString(line) || len(line) > 300 {
				t.Fatalf("skipped line %q", line)
			}
		}
	})
}

func FuzzTrusted(f *testing.F) {
	f.Add("web1.example.com", "1.3.6.1.4.1.34380.1.1.13", []byte("\x0c\x04role"))
	f.Add(".", "1.3.6.1.4.1.34380.1.3.39", []byte{0xff})
	f.Add("a", "2.5.29.17", []byte{})
	f.Fuzz(func(t *testing.T, name, oid string, value []byte) {
		id, err := parseOID(oid)
		if err != nil {
			id = asn1.ObjectIdentifier{1, 2}
		} else if id.String() == "" {
			t.Fatalf("OID %q is lost", oid)
		}
		cert := &x509.Certificate{Subject: pkix.Name{CommonName: name}, Extensions: []pkix.Extension{{Id: id, Value: value}}}
		a := &Authority{names: newShortNames(nil)}
		text, err := a.Trusted(cert, nil)
		if err != nil || !json.Valid(text) {
			t.Fatalf("trusted data %s, %v", text, err)
		}
		_ = IsAdmin(cert)
	})
}

func FuzzAltNames(f *testing.F) {
	f.Add([]byte("\x30\x06\x82\x04web1"))
	f.Add([]byte("\x30\x06\x87\x04\x7f\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, value []byte) {
		names, err := parseAltNames(value)
		if err != nil {
			return
		}
		encoded, err := encodeAltNames(names)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseAltNames(encoded)
		if err != nil || len(again) > len(names) {
			t.Fatalf("%v became %v, %v", names, again, err)
		}
	})
}
