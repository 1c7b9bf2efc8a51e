package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

// A server whose database is lost does not start as if nobody had been revoked. After `tutti ca adopt` it
// starts, and who was thrown out stays out.
func TestALostDatabaseForgetsNobody(t *testing.T) {
	begin(t)
	s := startServer(t, "--autosign", "all")
	good, bad := enrol(t, s, "good.test"), enrol(t, s, "bad.test")
	s.tutti(t, "ca", "revoke", bad.name)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tutti.db", "tutti.db-wal", "tutti.db-shm"} {
		if err := os.Remove(filepath.Join(s.data, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	for _, way := range []string{"backup accept", "ca adopt"} { // the file is another one; and the CA knows that it forgets
		err := s.start()
		if err == nil || !strings.Contains(tail(err.Error(), 500), "tutti "+way) {
			t.Fatalf("it starts without its database, or says: %v", err)
		}
		if way == "backup accept" {
			s.tutti(t, "backup", "accept")
		}
	}
	contains(t, s.tutti(t, "ca", "adopt"), "(1 revoked)")
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	if a := good.must(t, http.MethodGet, "/puppet/v3/node/"+good.name+"?environment=production", "", nil); a.status == http.StatusForbidden {
		t.Errorf("the good node is refused: %d %s", a.status, a.body)
	}
	if a, err := bad.do(http.MethodGet, "/puppet/v3/node/"+bad.name+"?environment=production", "", nil); err == nil {
		t.Errorf("a revoked certificate was let in: %d %s", a.status, a.body)
	}
	contains(t, s.tutti(t, "ca", "list"), good.name, bad.name, "revoked")
}

// A database that is not the CA's own, or an older one, and an older directory of the CA are refused with what to do about it, and
// nothing is forgotten by doing it. What openssl makes of certificates is what it made of them before.
func TestExchangedDatabasesAreRefused(t *testing.T) {
	t.Parallel() // see TestAttacksOfAPreview
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			begin(t, 60)
			records, flags := fileRecords, func(string) []string { return []string{"--autosign", "all"} }
			if engine == "postgres" {
				cluster := startPostgres(t)
				records = databaseRecords(cluster)
				flags = func(name string) []string {
					return []string{"--autosign", "all", "--database", databaseIn(cluster, name)}
				}
			}
			exchange(t, records, flags)
		})
	}
}

// keeper keeps and puts back the records of stopped servers.
type keeper struct {
	make func(t *testing.T, name string)            // room for a server's records
	keep func(t *testing.T, s *server, name string) // as a state with a name
	put  func(t *testing.T, s *server, name string) // a state in the place of what the server has
	// another: the server first says that this is not the file that it used.
	another bool
}

func exchange(t *testing.T, records keeper, flags func(string) []string) {
	t.Helper()
	dir := t.TempDir()
	begun := func(name string) *server {
		records.make(t, name)
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		s := newServer(filepath.Join(dir, name), flags(name)...)
		s.startFor(t)
		return s
	}
	stop := func(s *server) {
		t.Helper()
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
	}
	s, other := begun("main"), begun("other")
	enrol(t, other, "stranger.test")
	stop(other)
	records.keep(t, other, "strange")

	good, bad := enrol(t, s, "good.test"), enrol(t, s, "bad.test")
	stop(s)
	records.keep(t, s, "older")
	ca := filepath.Join(s.data, "ca")
	olderCA, newestCA := filepath.Join(dir, "older-ca"), filepath.Join(dir, "newest-ca")
	putCA := func(from, to string) {
		t.Helper()
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if r := execute(t, cleanEnv(), time.Minute, "cp", "-a", from, to); r.code != 0 {
			t.Fatal(r.text())
		}
	}
	putCA(ca, olderCA)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	s.tutti(t, "ca", "revoke", bad.name)
	stop(s)
	records.keep(t, s, "newest")
	putCA(ca, newestCA)
	put := func(name string) {
		t.Helper()
		records.put(t, s, name)
		if records.another {
			refused(t, s, "tutti backup accept")
			s.tutti(t, "backup", "accept")
		}
	}
	put("strange")
	refused(t, s, "belongs to another CA", "tutti ca adopt")
	put("newest")
	putCA(olderCA, ca)
	refused(t, s, "the CA directory is older than the database", "tutti ca adopt")
	putCA(newestCA, ca)
	put("older")
	refused(t, s, "the database is older than the CA", "tutti ca adopt")

	contains(t, s.tutti(t, append([]string{"ca", "adopt"}, flags("main")[2:]...)...), "(1 revoked)")
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	if a, err := bad.do(http.MethodGet, "/puppet/v3/node/"+bad.name+"?environment=production", "", nil); err == nil {
		t.Errorf("a revoked certificate was let in: %d %s", a.status, a.body)
	}
	late := enrol(t, s, "late.test")
	opensslSays(t, s, map[*node]string{good: ": OK", late: ": OK", bad: "certificate revoked"})
}

// opensslSays checks what openssl makes of nodes' certificates by the CA and the revocation list of a server.
func opensslSays(t *testing.T, s *server, of map[*node]string) {
	t.Helper()
	dir := t.TempDir()
	lists := filepath.Join(dir, "crl.pem")
	write(t, lists, anonymous(t, s).must(t, http.MethodGet, "/puppet-ca/v1/certificate_revocation_list/ca", "", nil).body)
	for n, want := range of {
		path := filepath.Join(dir, n.name+".pem")
		write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificateOf(t, n).Raw})))
		r := execute(t, cleanEnv(), time.Minute, "openssl", "verify", "-crl_check", "-CAfile", filepath.Join(s.data, api.CAFile), "-CRLfile", lists, path)
		if !strings.Contains(r.text(), want) || (r.code == 0) != (want == ": OK") {
			t.Errorf("openssl verify of %s: %d %s, want %s", n.name, r.code, r.text(), want)
		}
	}
}

// certificateOf is what a node shows.
func certificateOf(t *testing.T, n *node) *x509.Certificate {
	t.Helper()
	leaf, err := x509.ParseCertificate(n.client.Transport.(*http.Transport).TLSClientConfig.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// A certificate that ends soon is renewed by the node's agent, with the same key, and the agent goes on with it.
func TestAnAgentRenewsItsCertificate(t *testing.T) {
	begin(t, 30)
	s := startServer(t, "--autosign", "all")
	if err := s.stop(); err != nil { // its own certificate is not to end soon
		t.Fatal(err)
	}
	s.flags = append(s.flags, "--certificate-ttl", "90s")
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	agent := joinNode(t, s, "renewed.test")
	file, key := filepath.Join(agent.dir, "certificate.pem"), filepath.Join(agent.dir, "key.pem")
	load := func() *x509.Certificate {
		t.Helper()
		pair, err := tls.LoadX509KeyPair(file, key) // fails unless they belong together
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf
	}
	first := load()
	agent.start(t)
	agent.connectedTo(t, "localhost:"+s.port())
	eventually(t, patience, "the certificate is renewed", func() bool { return load().SerialNumber.Cmp(first.SerialNumber) != 0 })
	if fresh := load(); !fresh.NotAfter.After(first.NotAfter) || fresh.Subject.CommonName != "renewed.test" {
		t.Errorf("the renewed certificate is %s until %s; the first was good until %s", fresh.Subject, fresh.NotAfter, first.NotAfter)
	}
	contains(t, s.tutti(t, "command", "run", "echo still here", "--targets", "renewed.test", "--yes"), "still here")
	agent.kill()
	agent.start(t) // it shows the new one
	agent.connectedTo(t, "localhost:"+s.port())
	contains(t, s.tutti(t, "command", "run", "echo and again", "--targets", "renewed.test", "--yes"), "and again")
}

// refused starts a server that must not start, and say why.
func refused(t *testing.T, s *server, says ...string) {
	t.Helper()
	err := s.start()
	if err == nil {
		t.Fatalf("it starts; it should say %v", says)
	}
	for _, text := range says {
		if !strings.Contains(tail(err.Error(), 1000), text) {
			t.Fatalf("it does not say %q: %v", text, err)
		}
	}
}

// databaseFiles is what SQLite's records consist of.
var databaseFiles = []string{"tutti.db", "tutti.db-wal", "tutti.db-shm"}

var fileRecords = keeper{
	make: func(*testing.T, string) {},
	keep: func(t *testing.T, s *server, name string) {
		t.Helper()
		copyFiles(t, s.data, filepath.Join(filepath.Dir(s.data), "..", name))
	},
	put: func(t *testing.T, s *server, name string) {
		t.Helper()
		for _, file := range databaseFiles {
			if err := os.Remove(filepath.Join(s.data, file)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		copyFiles(t, filepath.Join(filepath.Dir(s.data), "..", name), s.data)
	},
	another: true,
}

func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range databaseFiles {
		if _, err := os.Stat(filepath.Join(from, file)); err == nil {
			copyOf(t, filepath.Join(from, file), filepath.Join(to, file))
		}
	}
}

// databaseRecords keeps records as databases of a cluster; a server's has the name of its directory.
func databaseRecords(cluster string) keeper {
	run := func(t *testing.T, text string) {
		t.Helper()
		r := execute(t, cleanEnv(), time.Minute, filepath.Join(postgresBin(t), "psql"), "-v", "ON_ERROR_STOP=1", "-c", text, cluster)
		if r.code != 0 {
			t.Fatalf("%s: %s", text, r.text())
		}
	}
	of := func(s *server) string { return filepath.Base(filepath.Dir(s.data)) }
	return keeper{
		make: func(t *testing.T, name string) { t.Helper(); run(t, "CREATE DATABASE "+name) },
		keep: func(t *testing.T, s *server, name string) {
			t.Helper()
			run(t, "CREATE DATABASE "+name+" TEMPLATE "+of(s))
		},
		put: func(t *testing.T, s *server, name string) {
			t.Helper()
			run(t, "DROP DATABASE "+of(s))
			run(t, "CREATE DATABASE "+of(s)+" TEMPLATE "+name)
		},
	}
}

// databaseIn is the URL of a database of a cluster.
func databaseIn(cluster, name string) string {
	return strings.Replace(cluster, "@/postgres?", "@/"+name+"?", 1)
}
