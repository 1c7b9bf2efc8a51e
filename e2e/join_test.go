package e2e_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	agentpkg "github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// joiner is a fresh node with a real Puppet in directories of its own, of which Puppet's command line is told and nothing else: name and
// server come from its puppet.conf.
type joiner struct {
	*agent
	bin  string // its puppet
	dir  string // of its tutti agent
	conf string // its puppet.conf
}

func newJoiner(t *testing.T, s *server, name string, facts ...string) joiner {
	t.Helper()
	a := newAgent(t, s, name, facts...)
	j := joiner{agent: a, dir: filepath.Join(a.home, "tutti-agent"), conf: filepath.Join(a.home, "confdir", "puppet.conf")}
	var script strings.Builder
	script.WriteString("#!/bin/sh\n")
	for _, entry := range a.env {
		if options, ok := strings.CutPrefix(entry, "RUBYOPT="); ok {
			fmt.Fprintf(&script, "export RUBYOPT=\"$RUBYOPT %s\"\n", options)
			continue
		}
		script.WriteString("export " + shellQuoted(entry) + "\n")
	}
	script.WriteString("exec")
	for _, word := range a.stock {
		script.WriteString(" " + shellQuoted(word))
	}
	script.WriteString(` "$@" --basemodulepath ` + shellQuoted(filepath.Join(a.home, "no-modules")))
	for _, dir := range []string{"confdir", "codedir", "vardir", "ssldir", "logdir", "rundir", "publicdir"} {
		script.WriteString(" --" + dir + " " + shellQuoted(filepath.Join(a.home, dir)))
	}
	j.bin = programtest.Write(t, filepath.Join(a.home, "puppet"), script.String()+"\n")
	write(t, j.conf, "# what an administrator wrote\n[main]\ncolor = false\n")
	return j
}

// stockRun is `puppet COMMAND` as a person types it on the node.
func (j joiner) stockRun(t *testing.T, args ...string) result {
	t.Helper()
	agents <- struct{}{}
	defer func() { <-agents }()
	return execute(t, cleanEnv(), agentTimeout, j.bin, args...)
}

// token is what `tutti ca token` gives for this node.
func (j joiner) token(t *testing.T) []string {
	t.Helper()
	var token api.JoinToken
	if err := json.Unmarshal([]byte(j.server.tutti(t, "ca", "token", j.name, "-o", "json")), &token); err != nil {
		t.Fatal(err)
	}
	return []string{"--token", token.Token, "--ca-fingerprint", token.CAFingerprint}
}

// join is `tutti agent join` on the node.
func (j joiner) join(t *testing.T, args ...string) result {
	t.Helper()
	return j.server.try(t, append([]string{"agent", "join", j.server.url, "--dir", j.dir, "--puppet", j.bin, "--certname", j.name}, args...)...)
}

// A fresh node joins by a token: one certificate for the agent and Puppet, a stock `puppet agent -t` that asks for none, and a server that
// knows the node before anything ran on it.
func TestJoinSharesOneCertificate(t *testing.T) {
	begin(t, 90)
	s := startServer(t)
	s.deploy(t, "production")
	j := newJoiner(t, s, "joins.test", "story=basic")
	j.csrAttributes(t, "extension_requests:\n  pp_role: webserver\n")
	r := j.join(t, j.token(t)...)
	if r.code != 0 {
		t.Fatalf("join: %d\n%s", r.code, r.text())
	}
	contains(t, s.tutti(t, "ca", "show", j.name), "signed", "pp_role", "webserver")
	contains(t, r.out, j.name+" has joined "+s.url, "puppet shares the certificate, in "+j.home+"/ssldir", "server = localhost", "serverport = "+s.port())
	contains(t, s.tutti(t, "node", "list"), j.name+"  ", "joined, never run")
	contains(t, s.tutti(t, "node", "show", j.name), "joined, never run")
	if node := decode[api.Node](t, s, "node", "show", j.name); node.JoinedAt == nil || time.Since(*node.JoinedAt) > time.Hour {
		t.Errorf("it joined at %v", node.JoinedAt)
	}
	same(t, "nodes of PuppetDB", "[]", strings.TrimSpace(s.tutti(t, "query", "nodes {}", "-o", "json")))
	conf, err := os.ReadFile(j.conf)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(conf), "# what an administrator wrote", "color = false")
	if there, _ := filepath.Glob(filepath.Join(j.dir, "*.pem")); len(there) != 0 {
		t.Errorf("the agent has certificates of its own: %v", there)
	}

	// Again: nothing happens, and no token is needed.
	again := j.join(t)
	if again.code != 0 {
		t.Fatalf("join again: %s", again.text())
	}
	contains(t, again.out, j.name+" has joined "+s.url+" before", "puppet had the certificate, and the agent takes it from "+j.home+"/ssldir")

	run := j.stockRun(t, "agent", "-t")
	if run.code != 2 {
		t.Fatalf("puppet agent -t: exit code %d\n%s", run.code, run.text())
	}
	contains(t, run.text(), "Applied catalog")
	for _, asks := range []string{"certificate request", "SSL key", "Downloaded certificate"} {
		if strings.Contains(run.text(), asks) {
			t.Errorf("puppet agent -t made or asked for a certificate:\n%s", run.text())
		}
	}
	if list := decode[api.List[api.Certificate]](t, s, "ca", "list").Items; len(list) != 1 || list[0].State != "signed" {
		t.Errorf("the CA has %+v", list)
	}
	asPuppetMakesThem(t, j)

	d := newDaemon(t, j.name, j.dir)
	d.start(t)
	d.connectedTo(t, "localhost:"+s.port())
	contains(t, s.tutti(t, "run", "--targets", j.name), j.name)
	if report := j.lastReport(t); report.Status != "unchanged" {
		t.Errorf("the ordered run: %+v", report)
	}
	s.tutti(t, "node", "purge", j.name)
	d.kill()
	if listed := s.tutti(t, "node", "list", "-o", "name"); strings.Contains(listed, j.name) {
		t.Errorf("a purged node is listed for its certificate:\n%s", listed)
	}
}

// asPuppetMakesThem holds a node's files against those of a node whose Puppet asked for its certificate itself.
func asPuppetMakesThem(t *testing.T, j joiner) {
	t.Helper()
	stock := newAgent(t, j.server, "stock.test")
	token := j.server.tutti(t, "ca", "token", stock.name)
	stock.csrAttributes(t, "custom_attributes:\n  1.2.840.113549.1.9.7: "+strings.TrimSpace(token)+"\n")
	if r := stock.puppet(t, "ssl", "bootstrap"); r.code != 0 {
		t.Fatalf("puppet ssl bootstrap: %s", r.text())
	}
	of := func(a *agent) map[string]string {
		found := map[string]string{}
		for _, name := range []string{".", "certs", "private_keys", "certs/ca.pem", "crl.pem", "certs/" + a.name + ".pem", "private_keys/" + a.name + ".pem"} {
			info, err := os.Stat(filepath.Join(a.home, "ssldir", name))
			if err != nil {
				t.Error(err)
				continue
			}
			owner := info.Sys().(*syscall.Stat_t)
			found[strings.ReplaceAll(name, a.name, "NAME")] = fmt.Sprintf("%s %d %d", info.Mode(), owner.Uid, owner.Gid)
		}
		return found
	}
	same(t, "modes and owners", of(stock), of(j.agent))
}

// The agent renews the certificate that it shares: Puppet has the new one, with the same key, owner and mode.
func TestASharedCertificateIsRenewed(t *testing.T) {
	begin(t, 40)
	s := startServer(t)
	if err := s.stop(); err != nil { // its own certificate is not to end soon
		t.Fatal(err)
	}
	s.flags = append(s.flags, "--certificate-ttl", "90s")
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	j := newJoiner(t, s, "shares.test")
	if r := j.join(t, j.token(t)...); r.code != 0 {
		t.Fatal(r.text())
	}
	file, key := filepath.Join(j.home, "ssldir/certs", j.name+".pem"), filepath.Join(j.home, "ssldir/private_keys", j.name+".pem")
	state := func() (*x509.Certificate, string) {
		t.Helper()
		pair, err := tls.LoadX509KeyPair(file, key) // fails unless they belong together
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		owner := info.Sys().(*syscall.Stat_t)
		return pair.Leaf, fmt.Sprintf("%s %d %d", info.Mode(), owner.Uid, owner.Gid)
	}
	first, owned := state()
	d := newDaemon(t, j.name, j.dir)
	d.start(t)
	d.connectedTo(t, "localhost:"+s.port())
	eventually(t, patience, "the certificate is renewed", func() bool {
		now, _ := state()
		return now.SerialNumber.Cmp(first.SerialNumber) != 0
	})
	_, now := state()
	same(t, "owner and mode", owned, now)
	if r := j.stockRun(t, "ssl", "verify"); r.code != 0 {
		t.Errorf("puppet ssl verify: %s", r.text())
	}
	contains(t, s.tutti(t, "command", "run", "echo still here", "--targets", j.name, "--yes"), "still here")
}

// The first run is made at once if it is asked for, and the exit code says what came of it.
func TestJoinMakesTheFirstRun(t *testing.T) {
	begin(t, 60)
	s := startServer(t)
	early := newJoiner(t, s, "early.test")
	r := early.join(t, append(early.token(t), "--runs")...)
	if r.code != 4 {
		t.Errorf("join --runs before any code: %d\n%s", r.code, r.text())
	}
	contains(t, r.err, "has joined, but the environment production has no code yet: deploy some with `tutti code deploy production DIR`")
	s.deploy(t, "production")
	j := newJoiner(t, s, "runs.test", "story=basic")
	if err := os.RemoveAll(filepath.Dir(j.conf)); err != nil { // Puppet's config set does not make it
		t.Fatal(err)
	}
	r = j.join(t, append(j.token(t), "--runs")...)
	if r.code != 0 {
		t.Fatalf("join --runs: %d\n%s", r.code, r.text())
	}
	contains(t, r.err, "its first Puppet run begins", "Applied catalog")
	contains(t, r.out, "first Puppet run: changed, ")
	same(t, "files", "hello from hiera\n", j.read(t, "basic/content.txt"))
	contains(t, s.tutti(t, "node", "list"), j.name, "changed")
	alone := newJoiner(t, s, "alone.test")
	r = s.try(t, append([]string{"agent", "join", s.url, "--dir", alone.dir, "--certname", alone.name, "--runs"}, alone.token(t)...)...)
	if r.code != 0 {
		t.Fatalf("join --runs without Puppet: %d\n%s", r.code, r.text())
	}
	contains(t, r.err, "Puppet was left alone, so no first run was made", "--puppet PATH", "Start the agent with `tutti agent run --dir "+alone.dir)

	control := t.TempDir()
	write(t, filepath.Join(control, "manifests/site.pp"), "fail('the powder keg blew up')\n")
	s.tutti(t, "code", "deploy", "--no-check", "production", control)
	bad := newJoiner(t, s, "fails.test")
	r = bad.join(t, append(bad.token(t), "--runs", "-o", "json")...)
	var joined agentpkg.Joined
	if err := json.Unmarshal([]byte(r.out), &joined); err != nil || r.code != 4 || joined.Run == nil || !joined.Run.Failed() {
		t.Errorf("a first run that fails: exit code %d, %+v, %v\n%s", r.code, joined.Run, err, r.text())
	}
	contains(t, r.err, "the powder keg blew up", "has joined, but its first Puppet run failed")
}

// What is in the way is said before anything is changed, and before the token is spent: with the ways out, which work.
func TestJoinSaysWhatIsInTheWay(t *testing.T) {
	begin(t, 120)
	s := startServer(t)
	other := startServer(t)
	refused := func(r result, says ...string) {
		t.Helper()
		if r.code != 5 {
			t.Errorf("exit code %d\n%s", r.code, r.text())
		}
		contains(t, r.err, says...)
	}

	// Puppet is of another fleet.
	strange := newJoiner(t, other, "strange.test")
	if r := strange.join(t, strange.token(t)...); r.code != 0 {
		t.Fatal(r.text())
	}
	strange.server = s
	strange.dir += "-2"
	token := strange.token(t)
	before := strange.files(t)
	refused(strange.join(t, token...), "Puppet on this node belongs to another fleet", "puppet ssl clean --localca", "--no-puppet")
	same(t, "files of Puppet", before, strange.files(t))
	if r := strange.stockRun(t, "ssl", "clean", "--localca"); r.code != 0 {
		t.Fatal(r.text())
	}
	if r := strange.join(t, token...); r.code != 0 { // the token is still good
		t.Errorf("after puppet ssl clean --localca: %s", r.text())
	}

	// The dead end of before: Puppet made a key of its own for the name that the agent has.
	two := newJoiner(t, s, "two.test")
	if r := two.server.try(t, append([]string{"agent", "join", s.url, "--dir", two.dir, "--no-puppet", "--certname", two.name}, two.token(t)...)...); r.code != 0 {
		t.Fatal(r.text())
	}
	if r := two.puppet(t, "ssl", "bootstrap", "--waitforcert", "0"); r.code != 1 {
		t.Fatalf("puppet with a key of its own: %s", r.text())
	}
	refused(two.join(t), "there are two keys for two.test", "puppet ssl clean")
	two.runsInVain(t)
	if r := two.stockRun(t, "ssl", "clean", "--certname", two.name); r.code != 0 {
		t.Fatal(r.text())
	}
	r := two.join(t)
	if r.code != 0 {
		t.Fatalf("after puppet ssl clean: %s", r.text())
	}
	contains(t, r.out, "has joined "+s.url+" before", "puppet gets the agent's certificate, in")
	if r := two.stockRun(t, "ssl", "verify"); r.code != 0 {
		t.Errorf("puppet ssl verify: %s", r.text())
	}

	// Another node has the name: the token is not spent on it.
	taken := newJoiner(t, s, "taken.test")
	alone := []string{"agent", "join", s.url, "--dir", filepath.Join(taken.home, "first"), "--no-puppet", "--certname", taken.name}
	if r := s.try(t, append(alone, taken.token(t)...)...); r.code != 0 {
		t.Fatal(r.text())
	}
	token = taken.token(t)
	refused(taken.join(t, token...), "the name taken.test is taken", "tutti ca clean taken.test")
	s.tutti(t, "ca", "clean", taken.name)
	if r := taken.join(t, token...); r.code != 0 {
		t.Errorf("after ca clean: %s", r.text())
	}

	// The token is none: no key is left behind that Puppet would use.
	late := newJoiner(t, s, "late.test")
	spent := late.token(t)
	alone = []string{"agent", "join", s.url, "--dir", filepath.Join(late.home, "first"), "--no-puppet", "--certname", late.name}
	if r := s.try(t, append(alone, spent...)...); r.code != 0 {
		t.Fatal(r.text())
	}
	s.tutti(t, "ca", "clean", late.name)
	refused(late.join(t, spent...), "the join token of late.test is unknown, used up", "tutti ca token late.test")
	if keys, _ := filepath.Glob(filepath.Join(late.home, "ssldir", "private_keys", "*")); len(keys) != 0 {
		t.Errorf("left behind: %v", keys)
	}

	// It was revoked.
	s.tutti(t, "ca", "revoke", taken.name)
	refused(taken.join(t), "the certificate of taken.test was revoked", "tutti ca clean taken.test", "puppet ssl clean")

	// Puppet asks other servers.
	list := newJoiner(t, s, "list.test")
	write(t, list.conf, "[main]\nserver_list = old-1.example,old-2.example\n")
	refused(list.join(t, list.token(t)...), "server_list = ", "old-1.example", "--no-puppet")
	if r := s.try(t, "ca", "show", list.name); r.code == 0 {
		t.Errorf("the CA knows a node that was refused: %s", r.text())
	}
}

// runsInVain orders a Puppet run of a node whose Puppet has a key that the server does not accept: the job says what Puppet says, and the doctor why.
func (j joiner) runsInVain(t *testing.T) {
	t.Helper()
	write(t, j.conf, "[main]\ncertname = "+j.name+"\nserver = localhost\nserverport = "+j.server.port()+"\n")
	d := newDaemon(t, j.name, j.dir, "--puppet", j.bin)
	d.start(t)
	d.connectedTo(t, "localhost:"+j.server.port())
	const says = "does not match its private key"
	r := j.server.try(t, "run", "--targets", j.name)
	if r.code != 4 {
		t.Errorf("a run that cannot be: exit code %d\n%s", r.code, r.text())
	}
	contains(t, r.text(), j.name+": error", says)
	run := decode[api.List[api.Job]](t, j.server, "job", "list").Items[0]
	contains(t, j.server.tutti(t, "job", "show", run.ID), says)
	contains(t, j.server.tutti(t, "job", "output", run.ID), "Puppet says: ", says)
	doctor := tuttiWith(t, append(cleanEnv(), "TUTTI_AGENT_PUPPET="+j.bin), "agent", "doctor", "--dir", j.dir)
	if doctor.code != 1 {
		t.Errorf("the doctor: exit code %d", doctor.code)
	}
	contains(t, doctor.out,
		"broken   puppet certificate: there are two keys for "+j.name,
		"puppet ssl clean; then tutti agent join "+j.server.url,
		"ok       puppet server: localhost:"+j.server.port())
	d.kill()
}

// A certificate that was revoked or has expired is called so by the agent, its doctor and the server's log.
func TestCertificatesThatAreNoGood(t *testing.T) {
	begin(t, 60)
	s := startServer(t)
	doctor := func(d *daemon) string {
		t.Helper()
		return tuttiWith(t, cleanEnv(), "agent", "doctor", "--dir", d.dir).out
	}
	problem := func(d *daemon, says string) {
		t.Helper()
		eventually(t, patience, d.name+" says "+says, func() bool {
			status, ok := d.status(t)
			return ok && strings.Contains(status.Connection.Problem, says)
		})
	}
	revoked := joinNode(t, s, "revoked.test")
	revoked.start(t)
	revoked.connectedTo(t, "localhost:"+s.port())
	s.tutti(t, "ca", "revoke", revoked.name)
	problem(revoked, "the certificate of revoked.test (serial number ")
	problem(revoked, ") was revoked; if this node may come back, run `tutti ca clean revoked.test` on the server")
	contains(t, doctor(revoked), "broken   server wss://localhost:", "was revoked", "tutti ca clean revoked.test")
	s.logged(t, revoked.name, "is revoked")
	revoked.kill()
	ended := joinNode(t, s, "ended.test")
	outdate(t, s, filepath.Join(ended.dir, "certificate.pem"))
	contains(t, doctor(ended), "broken   certificate: ended.test has expired: it ended on ")
	ended.start(t)
	problem(ended, "the certificate of ended.test has expired: it ended on ")
	contains(t, tuttiWith(t, cleanEnv(), "agent", "status", "--dir", ended.dir).out, "Certificate      has expired: it ended on ")
	contains(t, doctor(ended), "the certificate of ended.test has expired", "tutti ca clean ended.test")
	s.logged(t, "TLS client refused", "its certificate has expired")
}

// outdate replaces a certificate by one for the same key that ended an hour ago.
func outdate(t *testing.T, s *server, path string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.data, "ca", "ca.pem"), filepath.Join(s.data, "ca", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	old, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	template := *old
	template.NotBefore, template.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, &template, pair.Leaf, old.PublicKey, pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

// files is what Puppet has in its directories.
func (j joiner) files(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, dir := range []string{"ssldir", "confdir"} {
		all, err := filepath.Glob(filepath.Join(j.home, dir, "*", "*.pem"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range append(all, j.conf) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found[path] = string(text)
		}
	}
	return found
}
