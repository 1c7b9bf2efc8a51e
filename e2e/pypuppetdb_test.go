package e2e_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	// debianPython is Debian's: another one in PATH does not see Debian's modules.
	debianPython = "/usr/bin/python3"
	// pypuppetdbCalls is how many tests calls.py has at least.
	pypuppetdbCalls = 55
)

// Dashboards ask PuppetDB through pypuppetdb. All that it can ask and send, it gets from Tutti
// with a certificate that puppetdb_clients names, whichever database keeps the records;
// testdata/pypuppetdb/calls.py tells the story.
func TestPypuppetdb(t *testing.T) {
	begin(t)
	if _, err := os.Stat("/usr/lib/python3/dist-packages/pypuppetdb"); err != nil {
		t.Fatal("pypuppetdb is missing: apt-get install python3-pypuppetdb")
	}
	t.Log(strings.TrimSpace(execute(t, cleanEnv(), patience, debianPython, "-c",
		"import importlib.metadata, sys; print('pypuppetdb', importlib.metadata.version('pypuppetdb'), 'on Python', sys.version.split()[0])").text()))
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		callPypuppetdb(t, startServer(t, "--autosign", "all", "--puppetdb-clients", "dashboard.test"))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		callPypuppetdb(t, startServer(t, "--autosign", "all", "--puppetdb-clients", "dashboard.test", "--database", startPostgres(t)))
	})
}

func callPypuppetdb(t *testing.T, s *server) {
	t.Helper()
	certificate, key := enrol(t, s, "dashboard.test").files(t)
	env := append(cleanEnv(), "PUPPETDB_URL="+s.url, "PUPPETDB_CA="+filepath.Join(s.data, "ca", "ca_crt.pem"),
		"PUPPETDB_CERT="+certificate, "PUPPETDB_KEY="+key, "PYTHONDONTWRITEBYTECODE=1")
	r := execute(t, env, agentTimeout, debianPython, "-W", "ignore", filepath.Join("testdata", "pypuppetdb", "calls.py"))
	ran := regexp.MustCompile(`Ran (\d+) tests`).FindStringSubmatch(r.err)
	if r.code != 0 || ran == nil {
		t.Fatalf("exit code %d\n%s", r.code, r.text())
	}
	if n, _ := strconv.Atoi(ran[1]); n < pypuppetdbCalls {
		t.Errorf("only %d tests ran, want at least %d", n, pypuppetdbCalls)
	}
	contains(t, s.tutti(t, "query", `nodes[certname]{ latest_report_status = "failed" }`, "-o", "json"), "db-1.fleet.test")
}

// A certificate alone does not open PuppetDB's doors; an administrator's token does, in the
// header of Puppet Enterprise's clients, too.
func TestPuppetDBClients(t *testing.T) {
	begin(t)
	s := theHouse(t)
	stranger := enrol(t, s, "stranger.test")
	for _, c := range []struct{ method, path string }{
		{http.MethodGet, "/pdb/query/v4/nodes"},
		{http.MethodPost, "/pdb/cmd/v1?command=deactivate_node&version=3&certname=stranger.test"},
		{http.MethodGet, "/pdb/meta/v1/version"},
		{http.MethodGet, "/metrics/v2/list"},
	} {
		if got := stranger.must(t, c.method, c.path, "application/json", []byte("{}")); got.status != http.StatusForbidden {
			t.Errorf("%s %s by a node: %d %s", c.method, c.path, got.status, got.body)
		}
		if got := anonymous(t, s).must(t, c.method, c.path, "application/json", []byte("{}")); got.status != http.StatusUnauthorized {
			t.Errorf("%s %s without a certificate: %d %s", c.method, c.path, got.status, got.body)
		}
	}
	token, err := os.ReadFile(filepath.Join(s.data, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]int{"/pdb/query/v4/nodes": http.StatusOK, "/metrics/v2/list": http.StatusOK, "/pdb/query/v3/nodes": http.StatusNotFound} {
		got, err := anonymous(t, s).doHeaders(http.MethodGet, path, map[string]string{"X-Authentication": strings.TrimSpace(string(token))}, nil)
		if err != nil || got.status != status || !json.Valid([]byte(got.body)) {
			t.Errorf("%s with a token: %d %s %v", path, got.status, got.body, err)
		}
	}
}

// files writes the node's certificate and key as PEM files.
func (n *node) files(t *testing.T) (certificate, key string) {
	t.Helper()
	pair := n.client.Transport.(*http.Transport).TLSClientConfig.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "certificate.pem"), filepath.Join(dir, "key.pem")
	writeFile(t, certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	return certificate, key
}
