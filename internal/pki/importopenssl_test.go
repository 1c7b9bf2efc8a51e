package pki_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

func openssl(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "openssl", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("openssl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// opensslCA is a CA that was made without us, as the files of a Puppet CA.
type opensslCA struct{ dir, key, cert, list string }

const opensslConfig = `[ca]
default_ca = it
[it]
database = index
serial = serial
crlnumber = number
new_certs_dir = .
default_md = sha256
default_days = 3650
default_crl_days = 3650
policy = any
x509_extensions = authority
unique_subject = no
[any]
commonName = supplied
[authority]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
`

// newOpensslCA makes one; a nil issuer means that it signs itself. more goes to "openssl ca".
func newOpensslCA(t *testing.T, name string, issuer *opensslCA, more ...string) *opensslCA {
	t.Helper()
	c := &opensslCA{dir: t.TempDir()}
	for file, text := range map[string]string{"config": opensslConfig, "index": "", "serial": "01\n", "number": "07\n"} {
		writeFile(t, filepath.Join(c.dir, file), text)
	}
	openssl(t, c.dir, "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out", "request.pem",
		"-subj", "/CN="+name)
	from := []string{"-selfsign", "-keyfile", "key.pem"}
	at := c.dir
	if issuer != nil {
		from, at = []string{"-keyfile", "key.pem", "-cert", "crt.pem"}, issuer.dir
	}
	args := append([]string{
		"ca", "-config", "config", "-batch", "-notext",
		"-in", filepath.Join(c.dir, "request.pem"), "-out", filepath.Join(c.dir, "crt.pem"),
	}, from...)
	openssl(t, at, append(args, more...)...)
	c.key, c.cert = string(readFile(t, filepath.Join(c.dir, "key.pem"))), string(readFile(t, filepath.Join(c.dir, "crt.pem")))
	c.list = c.gencrl(t)
	return c
}

func (c *opensslCA) gencrl(t *testing.T, more ...string) string {
	t.Helper()
	openssl(t, c.dir, append([]string{"ca", "-config", "config", "-gencrl", "-keyfile", "key.pem", "-cert", "crt.pem", "-out", "crl.pem"}, more...)...)
	return string(readFile(t, filepath.Join(c.dir, "crl.pem")))
}

// puppet writes the directory that a Puppet CA would have.
func (c *opensslCA) puppet(t *testing.T, bundle, lists string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "ca_key.pem"), c.key)
	writeFile(t, filepath.Join(dir, "ca_crt.pem"), bundle)
	writeFile(t, filepath.Join(dir, "ca_crl.pem"), lists)
	return dir
}

// verified has openssl judge a certificate by the bundle and lists that agents are given.
func verified(t *testing.T, a *pki.Authority, certPEM []byte) (string, bool) {
	t.Helper()
	dir := t.TempDir()
	bundle, _ := a.Bundle()
	lists, _ := a.Revocations.CRL()
	writeFile(t, filepath.Join(dir, "ca.pem"), string(bundle))
	writeFile(t, filepath.Join(dir, "crl.pem"), string(lists))
	writeFile(t, filepath.Join(dir, "cert.pem"), string(certPEM))
	check := exec.CommandContext(t.Context(), "openssl", "verify", "-x509_strict", "-crl_check_all", "-CAfile", "ca.pem", "-CRLfile", "crl.pem", "cert.pem")
	check.Dir = dir
	out, err := check.CombinedOutput()
	return string(out), err == nil
}

func TestImportOfCAsMadeByOpenssl(t *testing.T) {
	t.Parallel()
	root := newOpensslCA(t, "Old Root", nil)
	middle := newOpensslCA(t, "Old CA", root)
	for name, c := range map[string]struct {
		dir     string
		upper   int
		skipped string
	}{
		"a root alone":    {root.puppet(t, root.cert, root.list), 0, ""},
		"an intermediate": {middle.puppet(t, middle.cert+root.cert, middle.list+root.list), 1, ""},
		"a list of its own that has run out": {
			root.puppet(t, root.cert, root.gencrl(t, "-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200201000000Z")), 0, "",
		},
		"a list of the root's that has run out": {
			middle.puppet(t, middle.cert+root.cert, middle.list+root.gencrl(t, "-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200201000000Z")), 1,
			"Old Root",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, store := pki.Config{Dir: t.TempDir()}, pkitest.NewMemory()
			imported, err := open(t, cfg, store).Import(t.Context(), c.dir)
			must(t, err)
			if said := strings.Join(imported.Skipped, "\n"); (c.skipped == "") != (said == "") || !strings.Contains(said, c.skipped) {
				t.Errorf("said of the import: %q", said)
			}
			a := open(t, cfg, store) // the server starts
			submit(t, a, pkitest.CSR{Name: "good"})
			submit(t, a, pkitest.CSR{Name: "bad"})
			good, err := a.Requests.Sign(t.Context(), "good", 0)
			must(t, err)
			bad, err := a.Requests.Sign(t.Context(), "bad", 0)
			must(t, err)
			must(t, a.Revoke(t.Context(), "bad"))
			lists, _ := a.Revocations.CRL()
			if got := bytes.Count(lists, []byte("BEGIN")); got != 1+c.upper {
				t.Errorf("%d lists, want %d", got, 1+c.upper)
			}
			if out, ok := verified(t, a, good.PEM); ok != (c.skipped == "") {
				t.Errorf("openssl says of a good certificate: %s", out)
			}
			if out, ok := verified(t, a, bad.PEM); ok || c.skipped == "" && !strings.Contains(out, "certificate revoked") {
				t.Errorf("openssl says of a revoked certificate: %s", out)
			}
		})
	}
}

func TestImportsOfOpensslCAsThatAreRefused(t *testing.T) {
	t.Parallel()
	root, foreign := newOpensslCA(t, "Old Root", nil), newOpensslCA(t, "Another Root", nil)
	ended := newOpensslCA(t, "Ended Root", nil, "-startdate", "20150101000000Z", "-enddate", "20160101000000Z")
	middle := newOpensslCA(t, "Old CA", root)
	for name, c := range map[string]struct {
		dir  string
		want fault.Kind
	}{
		"a CA that has ended":                {ended.puppet(t, ended.cert, ended.list), fault.Unavailable},
		"another CA's list":                  {root.puppet(t, root.cert, root.list+foreign.list), fault.Invalid},
		"only another CA's list":             {root.puppet(t, root.cert, foreign.list), fault.Invalid},
		"a bundle that ends before the root": {middle.puppet(t, middle.cert, middle.list), fault.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, store := pki.Config{Dir: t.TempDir()}, pkitest.NewMemory()
			a := open(t, cfg, store)
			before, _ := a.Bundle()
			_, err := a.Import(t.Context(), c.dir)
			wantKind(t, err, c.want)
			if after, _ := open(t, cfg, store).Bundle(); !bytes.Equal(before, after) {
				t.Error("a refused import changed the CA")
			}
			if _, err := os.Stat(filepath.Join(cfg.Dir, "chain_crl.pem")); !os.IsNotExist(err) {
				t.Errorf("a refused import left lists: %v", err)
			}
		})
	}
}

// Earlier versions left an empty file behind an import of a root, and never started again.
func TestAnEmptyFileOfListsIsNone(t *testing.T) {
	t.Parallel()
	cfg, store := pki.Config{Dir: t.TempDir()}, pkitest.NewMemory()
	open(t, cfg, store)
	writeFile(t, filepath.Join(cfg.Dir, "chain_crl.pem"), "")
	list(t, open(t, cfg, store))
}
