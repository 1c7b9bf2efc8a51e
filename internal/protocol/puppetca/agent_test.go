package puppetca_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
	"github.com/tutti-project/tutti/internal/program/hook"
)

// agent is a stock puppet with directories of its own.
type agent struct {
	dir, name, port string
	more            []string
}

func newAgent(t *testing.T, s *server, name string, more ...string) *agent {
	t.Helper()
	return &agent{dir: t.TempDir(), name: name, port: s.port(), more: more}
}

func (a *agent) file(parts ...string) string {
	return filepath.Join(append([]string{a.dir}, parts...)...)
}

// ssl runs "puppet ssl"; it returns what was printed and whether that succeeded.
func (a *agent) ssl(t *testing.T, action string) (string, bool) {
	t.Helper()
	args := append([]string{
		"ssl", action, "--confdir", a.dir, "--vardir", a.file("var"), "--ssldir", a.file("ssl"), "--rundir", a.file("run"),
		"--logdir", a.file("log"), "--certname", a.name, "--server", "localhost", "--serverport", a.port,
		"--waitforcert", "0", "--color", "false",
	}, a.more...)
	return tool(t, "puppet", "puppet-agent", args...)
}

func (a *agent) mustSSL(t *testing.T, action string) string {
	t.Helper()
	out, ok := a.ssl(t, action)
	if !ok {
		t.Fatalf("puppet ssl %s:\n%s", action, out)
	}
	return out
}

func tool(t *testing.T, program, pkg string, args ...string) (string, bool) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is missing: apt-get install %s", program, pkg)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return string(out), err == nil
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// TestStockAgentJoinsWithAToken tells a node's whole life: it joins by itself
// with a one-time token and trusted data, is thrown out while connected, and
// cleans up after itself.
func TestStockAgentJoinsWithAToken(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := start(t, pki.Config{})
	node := newAgent(t, s, "web1.example.com", "--keylength", "2048")
	token, err := s.ca.Requests.NewJoinToken(ctx, "web1.example.com", time.Hour)
	must(t, err)
	writeFile(t, node.file("csr_attributes.yaml"), "custom_attributes:\n  1.2.840.113549.1.9.7: "+token+
		"\nextension_requests:\n  pp_role: frontend\n  1.3.6.1.4.1.34380.1.2.1: rack 7\n")
	node.mustSSL(t, "bootstrap")
	node.mustSSL(t, "verify")

	c, err := s.ca.Certificate(ctx, "web1.example.com")
	must(t, err)
	trusted, err := s.ca.Trusted(parseCertificate(t, c.PEM), nil)
	must(t, err)
	if want := `"extensions":{"pp_role":"frontend","1.3.6.1.4.1.34380.1.2.1":"rack 7"}`; !strings.Contains(string(trusted), want) {
		t.Errorf("trusted data %s lacks %s", trusted, want)
	}

	line := s.connect(t, node)
	must(t, s.ca.Revoke(ctx, "web1.example.com"))
	if _, err := io.ReadAll(line); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the open connection of a revoked node stays open")
	}
	if err := s.handshake(t, node); err == nil || !strings.Contains(err.Error(), "bad certificate") {
		t.Errorf("handshake of a revoked node: %v", err)
	}

	node.mustSSL(t, "clean")
	if _, err := os.Stat(node.file("ssl", "certs", "web1.example.com.pem")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("puppet ssl clean left the certificate: %v", err)
	}
}

// TestStockAgentWithAnECKey has openssl make key and request: Puppet 7 itself
// cannot make requests for EC keys where OpenSSL 3 is installed. An operator's
// program decides.
func TestStockAgentWithAnECKey(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "policy")
	writeFile(t, program, "#!/bin/sh\ntest \"$1\" = ec1.example.com && openssl req -noout -verify -subject | grep -q \"CN = $1\"\n")
	must(t, os.Chmod(program, 0o700))
	policy, err := hook.New(hook.Config{Log: quiet}).Autosign(program)
	must(t, err)
	s := start(t, pki.Config{Autosign: pki.AutosignPolicy{Decide: policy.Decide}})
	node := newAgent(t, s, "ec1.example.com")
	key, csr := node.file("ssl", "private_keys", "ec1.example.com.pem"), node.file("csr.pem")
	must(t, os.MkdirAll(filepath.Dir(key), 0o700))
	if out, ok := tool(t, "openssl", "openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp384r1",
		"-nodes", "-keyout", key, "-out", csr, "-subj", "/CN=ec1.example.com"); !ok {
		t.Fatal(out)
	}
	text, err := os.ReadFile(csr)
	must(t, err)
	s.anybody(t).want(200, "", "PUT", "certificate_request/ec1.example.com", string(text))
	node.mustSSL(t, "download_cert")
	node.mustSSL(t, "verify")
}

// credentials are what the agent keeps in its ssl directory.
func (a *agent) credentials(t *testing.T) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.file("ssl", "certs", a.name+".pem"), a.file("ssl", "private_keys", a.name+".pem"))
	must(t, err)
	bundle, err := os.ReadFile(a.file("ssl", "certs", "ca.pem"))
	must(t, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatal("the agent has no CA certificate")
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: "localhost"}
}

func (s *server) dial(t *testing.T, a *agent) (*tls.Conn, error) {
	t.Helper()
	conn, err := (&tls.Dialer{Config: a.credentials(t)}).DialContext(t.Context(), "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(2*time.Minute)))
	return conn.(*tls.Conn), nil
}

// connect makes one request with the agent's certificate and leaves the
// connection open.
func (s *server) connect(t *testing.T, a *agent) io.Reader {
	t.Helper()
	conn, err := s.dial(t, a)
	must(t, err)
	_, err = io.WriteString(conn, "GET /puppet-ca/v1/certificate/ca HTTP/1.1\r\nHost: localhost\r\n\r\n")
	must(t, err)
	line := bufio.NewReader(conn)
	resp, err := http.ReadResponse(line, nil)
	must(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	return line
}

// handshake returns how the server ends a fresh connection. With TLS 1.3 a
// client only learns that when it reads.
func (s *server) handshake(t *testing.T, a *agent) error {
	t.Helper()
	conn, err := s.dial(t, a)
	if err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// TestOperatorSignsWithPuppetserverCA lets the stock tools of both sides talk to us:
// an RSA node waits, an operator lists, signs and cleans with "puppetserver ca".
func TestOperatorSignsWithPuppetserverCA(t *testing.T) {
	t.Parallel()
	s := start(t, adminsAllowed)
	operator := newOperator(t, s)
	node := newAgent(t, s, "db1.example.com", "--keylength", "2048")
	node.mustSSL(t, "submit_request")
	if out := operator.mustCA(t, "list"); !strings.Contains(out, "Requested Certificates:") || !strings.Contains(out, "db1.example.com") {
		t.Errorf("puppetserver ca list:\n%s", out)
	}
	if out := operator.mustCA(t, "sign", "--certname", "db1.example.com"); !strings.Contains(out, "Successfully signed") {
		t.Errorf("puppetserver ca sign:\n%s", out)
	}
	node.mustSSL(t, "bootstrap")
	if out := operator.mustCA(t, "clean", "--certname", "db1.example.com"); !strings.Contains(out, "has been revoked") {
		t.Errorf("puppetserver ca clean:\n%s", out)
	}
	if err := s.handshake(t, node); err == nil || !strings.Contains(err.Error(), "bad certificate") {
		t.Errorf("handshake of a cleaned node: %v", err)
	}
}

// operator has the files that "puppetserver ca" looks for.
type operator struct{ conf string }

func newOperator(t *testing.T, s *server) *operator {
	t.Helper()
	dir := t.TempDir()
	conf := filepath.Join(dir, "puppet.conf")
	writeFile(t, conf, "[main]\ncertname=operator\nserver=localhost\nserverport="+s.port()+"\nconfdir="+dir+"\nvardir="+dir+"/var\nssldir="+dir+"/ssl\n")
	key := pkitest.NewKey(t)
	pair := pkitest.Enrol(t, s.ca, "operator", key, pkitest.Admin(t))
	bundle, _ := s.ca.Bundle()
	list, _ := s.ca.Revocations.CRL()
	writeFile(t, filepath.Join(dir, "ssl", "certs", "ca.pem"), string(bundle))
	writeFile(t, filepath.Join(dir, "ssl", "crl.pem"), string(list))
	writeFile(t, filepath.Join(dir, "ssl", "certs", "operator.pem"), encode(t, "CERTIFICATE", pair.Certificate[0]))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	writeFile(t, filepath.Join(dir, "ssl", "private_keys", "operator.pem"), encode(t, "PRIVATE KEY", der))
	return &operator{conf: conf}
}

func (o *operator) mustCA(t *testing.T, args ...string) string {
	t.Helper()
	out, ok := tool(t, "puppetserver", "puppetserver", append(append([]string{"ca"}, args...), "--config", o.conf)...)
	if !ok {
		t.Fatalf("puppetserver ca %s:\n%s", args[0], out)
	}
	return out
}
