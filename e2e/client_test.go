package e2e_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// node speaks the agents' protocol without being one: for what a real agent would
// never send, and for more nodes than there is CPU for real ones.
type node struct {
	server *server
	name   string
	client *http.Client
	// version is what it says it is; empty: an agent that follows Retry-After.
	version string
}

// answer is a response, read to its end.
type answer struct {
	status     int
	body       string
	header     http.Header
	postponed  int // how often the server said 503 with Retry-After before
	retryAfter []string
}

// anonymous is a client without a certificate.
func anonymous(t *testing.T, s *server) *node {
	t.Helper()
	return &node{server: s, client: newHTTPClient(t, &tls.Config{RootCAs: s.roots(t), MinVersion: tls.VersionTLS12})}
}

func newHTTPClient(t *testing.T, config *tls.Config) *http.Client {
	t.Helper()
	// Puppet lets go of a connection after four seconds. One that is kept for as long as a busy server lets agents wait may
	// be closed by that server in the very moment in which it is used again.
	transport := &http.Transport{TLSClientConfig: config, IdleConnTimeout: 4 * time.Second}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Timeout: agentTimeout, Transport: transport}
}

// enrol makes a key, sends a certificate request and fetches the certificate; the
// server must sign it at once.
func enrol(t *testing.T, s *server, name string) *node {
	t.Helper()
	name = s.fresh(name)
	certificate, err := requestCertificate(anonymous(t, s), name)
	if err != nil {
		t.Fatal(err)
	}
	return &node{server: s, name: name, client: newHTTPClient(t, &tls.Config{
		RootCAs: s.roots(t), MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
	})}
}

func requestCertificate(by *node, name string) (tls.Certificate, error) {
	key, err := askForCertificate(by, name)
	if err != nil {
		return tls.Certificate{}, err
	}
	return fetchCertificate(by, name, key)
}

// askForCertificate makes a key and sends a request, which may wait to be signed.
func askForCertificate(by *node, name string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	request, err := newRequest(key, name)
	if err != nil {
		return nil, err
	}
	put, err := by.do(http.MethodPut, "/puppet-ca/v1/certificate_request/"+name, "text/plain", request)
	if err != nil || put.status != http.StatusOK {
		return nil, fmt.Errorf("request a certificate for %s: %d %s %w", name, put.status, put.body, err)
	}
	return key, nil
}

// fetchCertificate fetches what was signed.
func fetchCertificate(by *node, name string, key crypto.Signer) (tls.Certificate, error) {
	got, err := by.do(http.MethodGet, "/puppet-ca/v1/certificate/"+name, "", nil)
	if err != nil || got.status != http.StatusOK {
		return tls.Certificate{}, fmt.Errorf("fetch the certificate of %s: %d %s %w", name, got.status, got.body, err)
	}
	block, _ := pem.Decode([]byte(got.body))
	if block == nil {
		return tls.Certificate{}, fmt.Errorf("the certificate of %s is no PEM: %s", name, got.body)
	}
	return tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}, nil
}

// newRequest is a PEM certificate request signed with key.
func newRequest(key crypto.Signer, name string) ([]byte, error) {
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// do sends one request and reads the answer.
func (n *node) do(method, path, contentType string, body []byte) (answer, error) {
	return n.doHeaders(method, path, map[string]string{"Content-Type": contentType}, body)
}

func (n *node) doHeaders(method, path string, headers map[string]string, body []byte) (answer, error) {
	request, err := http.NewRequestWithContext(context.Background(), method, n.server.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Accept", "application/vnd.puppet.rich+json, application/json, text/plain, application/octet-stream")
	request.Header.Set("X-Puppet-Version", cmp.Or(n.version, "8.10.0"))
	for key, value := range headers {
		if value != "" {
			request.Header.Set(key, value)
		}
	}
	response, err := n.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return answer{status: response.StatusCode, body: string(text), header: response.Header}, err
}

// dial opens a connection as that node, for what an HTTP client would hide.
func (n *node) dial(t *testing.T) net.Conn {
	t.Helper()
	config := n.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName, config.NextProtos = "localhost", []string{"http/1.1"}
	c, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", strings.TrimPrefix(n.server.url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// must is do for requests whose answer, good or bad, has to come.
func (n *node) must(t *testing.T, method, path, contentType string, body []byte) answer {
	t.Helper()
	a, err := n.do(method, path, contentType, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// patient repeats a request as a stock agent does: when it is told 503 or 429 and when to
// come back, it comes back then.
func (n *node) patient(method, path, contentType string, body []byte) (answer, error) {
	var told []string
	for {
		a, err := n.do(method, path, contentType, body)
		after := a.header.Get("Retry-After")
		if err != nil || after == "" || a.status != http.StatusServiceUnavailable && a.status != http.StatusTooManyRequests {
			a.postponed, a.retryAfter = len(told), told
			return a, err
		}
		seconds, err := strconv.Atoi(after)
		if err != nil || seconds < 0 || seconds > 600 {
			return a, fmt.Errorf("Retry-After %q is no sensible number of seconds", after)
		}
		told = append(told, after)
		if len(told) > 100 {
			return a, fmt.Errorf("told to come back %d times", len(told))
		}
		<-time.After(time.Duration(seconds) * time.Second)
	}
}

// catalog asks for the node's catalog; facts are added to those every node has.
func (n *node) catalog(environment string, facts map[string]any) (answer, error) {
	return n.patient(http.MethodPost, "/puppet/v3/catalog/"+n.name+"?environment="+environment,
		"application/x-www-form-urlencoded", catalogForm(n.name, environment, facts))
}

// catalogForm is the body of a catalog request. The facts are encoded twice, as agents do.
func catalogForm(name, environment string, facts map[string]any) []byte {
	form := url.Values{
		"facts_format": {"application/json"}, "facts": {url.QueryEscape(string(factsJSON(name, facts)))},
		"environment": {environment}, "configured_environment": {environment}, "check_environment": {"true"},
		"transaction_uuid": {newUUID()}, "static_catalog": {"true"}, "checksum_type": {"sha256.sha384.sha512.sha224.md5"},
	}
	return []byte(form.Encode())
}

// factsJSON is a set of facts as an agent sends it.
func factsJSON(name string, more map[string]any) []byte {
	values := map[string]any{
		"clientcert": name, "clientversion": "7.23.0", "clientnoop": false, "scratch": "/nonexistent/" + name, "story": "basic",
		"kernel": "Linux", "osfamily": "Debian", "hostname": "host", "domain": "test",
		"os":         map[string]any{"family": "Debian", "name": "Debian", "release": map[string]any{"major": "12", "full": "12.5"}},
		"networking": map[string]any{"hostname": "host", "domain": "test", "ip": "192.0.2.1"},
	}
	maps.Copy(values, more)
	now := time.Now()
	text, err := json.Marshal(map[string]any{
		"name": name, "values": values,
		"timestamp": now.Format(time.RFC3339Nano), "expiration": now.Add(30 * time.Minute).Format(time.RFC3339Nano),
	})
	if err != nil {
		panic(err) // the maps above can be encoded
	}
	return text
}

// reportJSON is the report of a run that changed one file.
func reportJSON(name, uuid string) []byte {
	now := time.Now().Format(time.RFC3339Nano)
	text, err := json.Marshal(map[string]any{
		"host": name, "time": now, "configuration_version": "1", "transaction_uuid": uuid, "report_format": 12,
		"puppet_version": "7.23.0", "status": "changed", "transaction_completed": true, "noop": false, "noop_pending": false,
		"environment": "production", "corrective_change": false, "catalog_uuid": newUUID(), "cached_catalog_status": "not_used",
		"logs": []any{map[string]any{"level": "notice", "message": "created", "source": "File[/x]", "tags": []string{"notice"}, "time": now}},
		"metrics": map[string]any{"resources": map[string]any{"name": "resources", "label": "Resources", "values": []any{
			[]any{"total", "Total", 1}, []any{"changed", "Changed", 1},
		}}},
		"resource_statuses": map[string]any{"File[/x]": map[string]any{
			"title": "/x", "resource": "File[/x]", "resource_type": "File", "containment_path": []string{"Stage[main]"},
			"evaluation_time": 0.1, "tags": []string{"file"}, "time": now, "failed": false, "changed": true, "out_of_sync": true,
			"skipped": false, "change_count": 1, "out_of_sync_count": 1, "corrective_change": false, "failed_to_restart": false,
			"events": []any{map[string]any{
				"audited": false, "property": "ensure", "previous_value": "absent", "desired_value": "file", "message": "created",
				"name": "file_created", "status": "success", "time": now, "corrective_change": false,
			}},
		}},
	})
	if err != nil {
		panic(err) // the maps above can be encoded
	}
	return text
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// gzipped compresses a body.
func gzipped(body []byte) []byte {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = writer.Write(body) // a buffer takes everything
	_ = writer.Close()
	return out.Bytes()
}
