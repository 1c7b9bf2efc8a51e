package e2e_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

// A request waits until the operator signs it; the agent waits too, and then goes on.
func TestSignByHand(t *testing.T) {
	begin(t, 50)
	s := startServer(t) // autosign is off unless it is switched on
	s.deploy(t, "production")
	a := newAgent(t, s, "byhand.test", "story=trusted")
	a.csrAttributes(t, "extension_requests:\n  pp_role: webserver\n")

	done := make(chan result, 1)
	go func() { done <- a.puppet(t, "agent", "--test", "--waitforcert", "1") }()
	eventually(t, agentTimeout, "the request is listed", func() bool {
		return strings.Contains(s.try(t, "ca", "list", "--state", "requested", "-o", "name").out, a.name)
	})
	contains(t, s.tutti(t, "ca", "show", a.name), "requested", "pp_role", "webserver")
	s.logged(t, "method=GET", "path=/puppet-ca/v1/certificate/"+a.name, "status=404")
	contains(t, s.tutti(t, "ca", "sign", a.name), a.name+" signed")
	r := <-done
	if r.code != 2 {
		t.Fatalf("exit code %d\n%s", r.code, r.text())
	}
	contains(t, r.text(), "has not been signed yet") // what the operator sees meanwhile
	// What the certificate says is there for the manifest.
	same(t, "trusted facts", "byhand.test remote webserver\n", a.read(t, "trusted.txt"))
	// And for queries, as Puppet Servers send it to a PuppetDB; with the server's name.
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, entity := range []string{"factsets", "catalogs", "reports"} {
		question := fmt.Sprintf(`%s[producer]{inventory{trusted.extensions.pp_role = "webserver"}}`, entity)
		contains(t, s.tutti(t, "query", "-o", "json", question), host)
	}
	checkRevocation(t, a)
}

// checkRevocation revokes a working node's certificate, and enrols it again.
func checkRevocation(t *testing.T, a *agent) {
	t.Helper()
	s := a.server
	s.tutti(t, "ca", "revoke", a.name)
	out := a.run(t, 1)
	// Go's TLS has no other alert for a refused client certificate. The server's log has the reason.
	contains(t, out, "alert bad certificate")
	s.logged(t, a.name, "is revoked")
	if again := s.try(t, "ca", "sign", a.name); again.code == 0 {
		t.Errorf("a revoked name was signed again: %s", again.text())
	}

	s.tutti(t, "ca", "clean", a.name)
	if r := a.puppet(t, "ssl", "clean"); r.code != 0 {
		t.Fatalf("ssl clean: %d\n%s", r.code, r.text())
	}
	if r := a.puppet(t, "ssl", "submit_request"); r.code != 0 {
		t.Fatalf("ssl submit_request: %d\n%s", r.code, r.text())
	}
	s.tutti(t, "ca", "sign", a.name)
	a.run(t, 0)
}

// csrAttributes gives the node a csr_attributes.yaml.
func (a *agent) csrAttributes(t *testing.T, text string) {
	t.Helper()
	dir := filepath.Join(a.home, "confdir")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "csr_attributes.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A connection that is open when its certificate is revoked is closed.
func TestRevocationClosesOpenConnections(t *testing.T) {
	begin(t)
	s := theHouse(t)
	n := enrol(t, s, "revoked-open.test")
	if a := n.must(t, http.MethodGet, "/puppet/v3/node/"+n.name+"?environment=production", "", nil); a.status != http.StatusOK {
		t.Fatalf("node: %d %s", a.status, a.body)
	}
	c := n.dial(t)
	const request = "GET /puppet/v3/node/%s?environment=production HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"
	if _, err := fmt.Fprintf(c, request, n.name); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(c)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("node over the open connection: %s", response.Status)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	s.tutti(t, "ca", "revoke", n.name)
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the open connection stays open: %v", err)
	}
	refusedByAll(t, n)
}

// refusedByAll wants a node whose certificate was revoked to be let in by no server: at once by one alone, and by several when each has heard of it.
func refusedByAll(t *testing.T, n *node) {
	t.Helper()
	refused := func() bool {
		_, err := n.do(http.MethodGet, "/puppet/v3/node/"+n.name+"?environment=production", "", nil)
		return err != nil
	}
	servers := len(n.server.pids())
	if servers == 1 {
		if !refused() { // nobody else has to hear of it
			t.Error("a revoked certificate was let in")
		}
		return
	}
	for range 3 * servers { // HAProxy gives each new connection to another one
		eventually(t, patience, "all servers refuse the revoked certificate", refused)
	}
}

// A one-time token in the challenge password signs one request, once, also while strangers send more requests than may wait.
func TestJoinToken(t *testing.T) {
	begin(t)
	s := startServer(t, "--max-requests", "30", "--max-requests-per-address", "12")
	stopFlood := flood(t, s, "127.0.0.2", "127.0.0.3", "127.0.0.4")
	token := strings.TrimSpace(s.tutti(t, "ca", "token", "joins.test"))
	for _, c := range []struct {
		name string
		code int
	}{{"joins-other.test", 1}, {"joins.test", 0}, {"joins-late.test", 1}} {
		a := newAgent(t, s, c.name)
		a.csrAttributes(t, "custom_attributes:\n  1.2.840.113549.1.9.7: "+token+"\n")
		r := a.puppet(t, "ssl", "bootstrap", "--waitforcert", "0")
		if r.code != c.code {
			t.Errorf("%s: exit code %d, want %d\n%s", c.name, r.code, c.code, r.text())
		}
	}
	if sent := stopFlood(); sent < 60 {
		t.Errorf("the strangers sent %d requests only", sent)
	}
	waiting := decode[api.List[api.Certificate]](t, s, "ca", "list", "--state", "requested").Items
	if most := 30 * len(s.pids()); len(waiting) > most || len(waiting) < 27 { // the three made room for themselves; each server counts for itself
		t.Errorf("%d requests wait, %d may", len(waiting), most)
	}
	if strings.Contains(s.logText(), token) {
		t.Error("the token is in the log")
	}
}

// flood has a stranger at each address send requests, each of another name, 500 at most, until stop, which says how many the server
// took.
func flood(t *testing.T, s *server, addresses ...string) (stop func() int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var taken atomic.Int64
	var strangers sync.WaitGroup
	var enough atomic.Bool
	for n, address := range addresses {
		by := anonymous(t, s)
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		by.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, to string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp4", to)
		}
		strangers.Go(func() {
			for i := 0; i < 500 && !enough.Load(); i++ {
				name := fmt.Sprintf("flood-%d-%d.test", n, i)
				request, err := newRequest(key, name)
				if err != nil {
					t.Error(err)
					return
				}
				a, err := by.do(http.MethodPut, "/puppet-ca/v1/certificate_request/"+name, "text/plain", request)
				if err != nil || a.status != http.StatusOK {
					t.Errorf("%s: %d %s, %v", name, a.status, a.body, err)
					return
				}
				taken.Add(1)
			}
		})
	}
	return func() int64 {
		enough.Store(true)
		strangers.Wait()
		return taken.Load()
	}
}

// `puppet ssl bootstrap`, verify and clean work as against Puppet Server.
func TestSSLBootstrapAndClean(t *testing.T) {
	begin(t, 40)
	a := newAgent(t, theHouse(t), "boot.test")
	a.keyLength = "4096" // as agents have it when nothing is said
	for _, c := range []struct {
		command string
		code    int
		says    string
	}{
		{"bootstrap", 0, "Downloaded certificate for " + a.name},
		{"bootstrap", 0, ""}, // again: nothing to do
		{"verify", 0, "Verified client certificate"},
		{"clean", 0, "Removed"},
	} {
		r := a.puppet(t, "ssl", c.command)
		if r.code != c.code || !strings.Contains(r.text(), c.says) {
			t.Errorf("ssl %s: exit code %d\n%s", c.command, r.code, r.text())
		}
		a.keyLength = "2048" // one long key is enough
	}
	_ = filepath.WalkDir(filepath.Join(a.home, "ssldir"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.Contains(path, a.name) {
			t.Errorf("ssl clean left %s", path)
		}
		return nil
	})
	// The server still has a certificate of that name with another key: it refuses, and says so.
	r := a.puppet(t, "ssl", "bootstrap", "--waitforcert", "0")
	if r.code != 1 {
		t.Errorf("bootstrap with another key: exit code %d\n%s", r.code, r.text())
	}
	contains(t, r.text(), "does not match its private key")
	a.server.tutti(t, "ca", "clean", a.name)
	a.puppet(t, "ssl", "clean")
	if r := a.puppet(t, "ssl", "bootstrap"); r.code != 0 {
		t.Errorf("bootstrap after ca clean: exit code %d\n%s", r.code, r.text())
	}
}

// Requests that lie, or whose name is a path, are refused in words, and leave nothing behind.
func TestBadCertificateRequests(t *testing.T) {
	begin(t)
	s := theHouse(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request := func(name string) []byte {
		text, err := newRequest(key, name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := fileList(t, s.data)
	by := anonymous(t, s)
	for _, c := range []struct {
		story, path string
		body        []byte
	}{
		{"wrong signature", "liar.test", forged(t, request("liar.test"))},
		{"another name inside", "honest.test", request("liar.test")},
		{"path inside", "x", request("../x")},
		{"path in both", "%2e%2e%2fx", request("../x")},
		{"double encoded path", "%252e%252e%252fx", request("../x")},
		{"backslashes", "..%5cx", request(`..\x`)},
		{"null byte", "x%00.test", request("x\x00.test")},
		{"upper case", "Shout.test", request("Shout.test")},
		{"no name", "empty.test", request("")},
		{"no request", "garbage.test", []byte("no request")},
		{"half a request", "half.test", request("half.test")[:200]},
		{"far too large", "large.test", append(request("large.test"), make([]byte, 8<<20)...)},
	} {
		t.Run(c.story, func(t *testing.T) {
			a, err := by.do(http.MethodPut, "/puppet-ca/v1/certificate_request/"+c.path, "text/plain", c.body)
			if err != nil {
				t.Fatal(err)
			}
			if a.status < 400 || a.status >= 500 || strings.TrimSpace(a.body) == "" {
				t.Errorf("answer: %d %q, want a refusal in words", a.status, a.body)
			}
		})
	}
	for _, name := range []string{"/puppet-ca/v1/certificate_request/../../x", "/puppet-ca/v1/certificate/..%2f..%2fadmin.token"} {
		if a := by.must(t, http.MethodGet, name, "", nil); a.status < 400 || strings.Contains(a.body, "tutti_") {
			t.Errorf("GET %s: %d %q", name, a.status, a.body)
		}
	}
	for _, c := range decode[api.List[api.Certificate]](t, s, "ca", "list").Items {
		if strings.ContainsAny(c.Name, `/\`) || strings.Contains(c.Name, "liar") || c.Name == "x" || c.Name == "" {
			t.Errorf("the CA has %+v", c)
		}
	}
	for name := range fileList(t, s.data) {
		if !before[name] && (filepath.Base(name) == "x" || strings.Contains(name, "liar")) {
			t.Errorf("a request made the file %s", name)
		}
	}
	s.logged(t, "liar.test", "not signed by its own key")
}

// forged replaces the last byte of a request's signature.
func forged(t *testing.T, request []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(request)
	var outer struct {
		Info      asn1.RawValue
		Algorithm asn1.RawValue
		Signature asn1.BitString
	}
	if _, err := asn1.Unmarshal(block.Bytes, &outer); err != nil {
		t.Fatal(err)
	}
	outer.Signature.Bytes[len(outer.Signature.Bytes)-1] ^= 1
	der, err := asn1.Marshal(outer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// fileList is the set of files below a directory.
func fileList(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files := map[string]bool{}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[path] = true
		}
		return nil // a file that goes while we look is no matter
	})
	return files
}
