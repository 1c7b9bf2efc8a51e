package agent

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

// What csr_attributes.yaml asks for is in the certificate, as if Puppet had asked.
func TestAttributesOfRequests(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "csr_attributes.yaml")
	must(t, os.WriteFile(path, []byte(`---
custom_attributes:
  1.2.840.113549.1.9.7: some-password
  1.3.6.1.4.1.34380.1.2.7: of no use to the CA
extension_requests:
  pp_role: web
  pp_instance_id: 42
  1.3.6.1.4.1.34380.1.2.1: private ä
`), 0o600))
	a, err := readAttributes(path)
	must(t, err)
	if a.password != "some-password" {
		t.Errorf("the password is %q", a.password)
	}
	ca, err := pki.Open(t.Context(), pki.Config{Dir: t.TempDir(), Autosign: pki.AutosignPolicy{All: true}}, pkitest.NewMemory(), discard)
	must(t, err)
	key, _, err := newKey()
	must(t, err)
	request, err := newRequest("web-1", key, a.password, a.more...)
	must(t, err)
	block, _ := pem.Decode(request)
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	must(t, err)
	must(t, parsed.CheckSignature())
	if _, err := ca.Requests.Submit(t.Context(), "web-1", request, ""); err != nil {
		t.Fatal(err)
	}
	entry, err := ca.Show(t.Context(), "web-1")
	must(t, err)
	want := map[string]string{"pp_role": "web", "pp_instance_id": "42", "1.3.6.1.4.1.34380.1.2.1": "private ä"}
	if diff := cmp.Diff(want, entry.Extensions); diff != "" {
		t.Errorf("extensions (-want +got):\n%s", diff)
	}
}

// The names are those that the CA gives them.
func TestNamesOfExtensions(t *testing.T) {
	t.Parallel()
	ca, err := pki.Open(t.Context(), pki.Config{Dir: t.TempDir(), Autosign: pki.AutosignPolicy{All: true}, AllowAuthorizationExtensions: true},
		pkitest.NewMemory(), discard)
	must(t, err)
	var a csrAttributes
	wanted := map[string]any{}
	for name := range extensionIDs() {
		wanted[name] = "value of " + name
	}
	must(t, a.request("", wanted))
	key, _, err := newKey()
	must(t, err)
	request, err := newRequest("web-1", key, "", a.more...)
	must(t, err)
	if _, err := ca.Requests.Submit(t.Context(), "web-1", request, ""); err != nil {
		t.Fatal(err)
	}
	entry, err := ca.Show(t.Context(), "web-1")
	must(t, err)
	if n := len(entry.Extensions) + len(entry.AuthorizationExtensions); n != len(wanted) {
		t.Errorf("%d of %d extensions are in the certificate", n, len(wanted))
	}
	for _, all := range []map[string]string{entry.Extensions, entry.AuthorizationExtensions} {
		for name, value := range all {
			if value != wanted[name] {
				t.Errorf("%s is %q", name, value)
			}
		}
	}
}

func TestAttributesThatCannotBe(t *testing.T) {
	t.Parallel()
	if a, err := readAttributes(filepath.Join(t.TempDir(), "none")); err != nil || a.more != nil {
		t.Errorf("no file: %+v, %v", a, err)
	}
	for text, want := range map[string]string{
		"extension_requests:\n  our_own: x\n":  "custom_trusted_oid_mapping.yaml",
		"extension_requests:\n  9.1.2: x\n":    "no OID",
		"custom_attributes:\n  pp_role: x\n":   "custom_trusted_oid_mapping.yaml",
		"extension_requests: [\n":              "no YAML",
		"extension_requests:\n  1.-3.6.1: x\n": "custom_trusted_oid_mapping.yaml",
	} {
		path := filepath.Join(t.TempDir(), "csr_attributes.yaml")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := readAttributes(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
