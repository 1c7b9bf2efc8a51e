package e2e_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/event/trace/tracetest"
	"github.com/tutti-project/tutti/internal/hint/natsbus/natsbustest"
	"github.com/tutti-project/tutti/internal/store/blobs3/blobs3test"
	"github.com/tutti-project/tutti/internal/wire"
)

// several is what servers need that share their work: a database, a store of content, a NATS, and a key.
type several struct {
	database string
	store    *blobs3test.Server
	nats     *natsbustest.Server
	traces   *tracetest.Collector
	dir, key string // key is a file
	env      []string
}

func startSeveral(t *testing.T) *several {
	t.Helper()
	f := &several{database: startPostgres(t), store: blobs3test.Start(t), nats: natsbustest.Start(t, ""), traces: tracetest.Start(t), dir: t.TempDir()}
	f.key = filepath.Join(f.dir, "cluster.key")
	f.env = append(cleanEnv(), "TUTTI_NATS_URL="+f.nats.Config().URL, "TUTTI_TRACES="+f.traces.URL, "TUTTI_BLOBS_ENDPOINT="+f.store.Endpoint,
		"TUTTI_BLOBS_CREDENTIALS="+f.store.Credentials(blobs3test.SecretKey))
	f.follows(t, &server{}, "A key for all", nil) // it makes one
	return f
}

// follows types the commands of a part of the page about many servers, with other words in some places.
func (f *several) follows(t *testing.T, s *server, part string, other map[string]string) {
	t.Helper()
	text := partOf(t, "many-servers.md", "### "+part)
	for word, instead := range other {
		text = strings.ReplaceAll(text, word, instead)
	}
	s.followsText(t, f.dir, "many-servers.md", text)
}

// partOf is the part of a page below a heading, such as "## Content".
func partOf(t *testing.T, page, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(readFile(t, filepath.Join(docs, page)), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no part %q", page, heading)
	}
	level := strings.Index(heading, " ")
	return regexp.MustCompile(fmt.Sprintf(`\n#{2,%d} `, level)).Split(text, 2)[0]
}

// writeKey makes a key that servers share.
func writeKey(t *testing.T, path string) {
	t.Helper()
	writeFile(t, path, execute(t, cleanEnv(), time.Minute, "openssl", "rand", "-hex", "32").out)
}

// server describes one of the servers.
func (f *several) server(t *testing.T, name string, flags ...string) *server {
	t.Helper()
	dir := filepath.Join(f.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := newServer(dir, append([]string{
		"--cluster", "--cluster-key-file", f.key, "--database", f.database, "--blobs", "s3://tutti/content", "--compile-workers", "1", "--max-load", "0",
	}, flags...)...)
	s.env = f.env
	return s
}

// sql asks the database itself.
func (f *several) sql(t *testing.T, text string) string {
	t.Helper()
	return psql(t, f.database, text)
}

func (f *several) count(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(f.sql(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// at is the same node, as it asks another server.
func (n *node) at(s *server) *node {
	return &node{server: s, name: n.name, client: n.client, version: n.version}
}

// idOf is a server's name among the servers.
func idOf(t *testing.T, s *server) string {
	t.Helper()
	id, err := os.ReadFile(filepath.Join(s.data, "server-id"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(id))
}

// refuses starts a server that must not come up, and returns what it says.
func refuses(t *testing.T, s *server) string {
	t.Helper()
	err := s.start()
	if err == nil {
		_ = s.stop()
		t.Fatal("it starts")
	}
	return err.Error()
}

// slowCode is an environment whose catalogs take their time.
func slowCode(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	code := "$sum = Integer[1, 150000].reduce |$a, $b| { $a + $b }\nnotify { \"${facts['clientcert']}: ${sum}\": }\n"
	writeFile(t, filepath.Join(dir, "manifests", "site.pp"), code)
	return dir
}

// Two servers on one database and one store of content are one: what one took in the other serves, signs, revokes, orders nodes of and goes on with.
func TestTwoServersShareTheWork(t *testing.T) {
	begin(t, 150)
	f := startSeveral(t)
	a, b := f.server(t, "a"), f.server(t, "b")
	a.startFor(t)
	f.mustBeEqual(t, a)
	f.checked(t, a)
	b.startFor(t)
	first, second := idOf(t, a), idOf(t, b)
	f.follows(t, a, "Start them", map[string]string{"pup-1/1a2b3c4d": min(first, second), "pup-2/5e6f7a8b": max(first, second)}) // they are listed by name

	// Content, and who may do what.
	a.deploy(t, "production")
	b.logged(t, "environment is warm", "environment=production") // before anybody asks it for a catalog
	b.tutti(t, "code", "deploy", "--no-check", "slow", slowCode(t))
	want, err := os.ReadFile(filepath.Join("testdata", "control", "production", "modules", "story", "files", "a.txt"))
	if err != nil {
		t.Fatal(err)
	}

	f.certificates(t, a, b)
	n := signedAt(t, a, b, "web-1.test")
	file := n.at(b).must(t, http.MethodGet, "/puppet/v3/file_content/modules/story/a.txt?environment=production", "", nil)
	same(t, "a file that was deployed at the other server", string(want), file.body)
	if c, err := n.at(b).catalog("production", map[string]any{"role": "web"}); err != nil || c.status != http.StatusOK {
		t.Errorf("a catalog of code that was deployed at the other server: %d %s, %v", c.status, c.body, err)
	}
	contains(t, a.tutti(t, "node", "show", n.name), n.name) // its facts came to b

	f.ordered(t, a, b)
	f.takeOver(t, a, b)

	// The first one comes back, knows what was signed without it, and is emptied.
	late := signedAt(t, b, b, "late.test")
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	same(t, "its name", first, idOf(t, a))
	opensslSays(t, a, map[*node]string{n: ": OK", late: ": OK"})
	f.drained(t, a, b)
}

// mustBeEqual has servers refused that have not what the first one has.
func (f *several) mustBeEqual(t *testing.T, a *server) {
	t.Helper()
	other := filepath.Join(f.dir, "other.key")
	writeKey(t, other)
	wrong := f.server(t, "wrong", "--cluster-key-file", other)
	said := refuses(t, wrong)
	contains(t, said, "share secrets by another key", "cluster_key_file")
	for _, path := range []string{f.key, other} {
		key, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*server{a, wrong} {
			if strings.Contains(s.logText(), strings.TrimSpace(string(key))) {
				t.Errorf("a key is in the log of %s", s.data)
			}
		}
	}
	alone := newServer(filepath.Join(f.dir, "wrong"), "--database", f.database)
	alone.data += "-alone"
	contains(t, refuses(t, alone), "another server ("+idOf(t, a)+" at ", "uses this database", "cluster: true")
	own := f.server(t, "own")
	apart := newServer(filepath.Join(f.dir, "own"))
	apart.startFor(t)
	if err := apart.stop(); err != nil {
		t.Fatal(err)
	}
	contains(t, refuses(t, own), "is not the key that the servers of this database share", "empty data directory")
	for flag, says := range map[string]string{"--database=": "SQLite has one server", "--blobs=": "keep it in an S3 store"} {
		contains(t, refuses(t, f.server(t, strings.Trim(flag, "-="), flag)), says, "docs/many-servers.md")
	}
}

// settings writes the configuration file of a server.
func (f *several) settings(t *testing.T, name string) (path string) {
	t.Helper()
	path = filepath.Join(f.dir, "server.yaml")
	writeFile(t, path, f.shared("s3://tutti/content")+"data: "+filepath.Join(f.dir, name, "data")+"\n")
	return path
}

// shared is what the configuration files of all servers say.
func (f *several) shared(blobs string) string {
	return fmt.Sprintf(`cluster: true
cluster_key_file: %s
database: %s
blobs: %s
blobs_endpoint: %s
blobs_credentials: %s
`, f.key, f.database, blobs, f.store.Endpoint, f.store.Credentials(blobs3test.SecretKey))
}

// checked has the settings of a further server looked at.
func (f *several) checked(t *testing.T, a *server) {
	t.Helper()
	f.settings(t, "further")
	f.follows(t, a, "Say it to each server", nil)
}

// signedAt is a node whose request one server gets, and another one signs.
func signedAt(t *testing.T, asked, signs *server, name string) *node {
	t.Helper()
	anybody := anonymous(t, asked)
	key, err := askForCertificate(anybody, name)
	if err != nil {
		t.Fatal(err)
	}
	signs.tutti(t, "ca", "sign", name)
	certificate, err := fetchCertificate(anybody, name, key)
	if err != nil {
		t.Fatal(err)
	}
	return &node{server: asked, name: name, client: newHTTPClient(t, &tls.Config{
		RootCAs: asked.roots(t), MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
	})}
}

// certificates has a certificate asked for at one server, signed at the other, and revoked at the first: both refuse it, and whoever is connected goes.
func (f *several) certificates(t *testing.T, a, b *server) {
	t.Helper()
	good, bad := signedAt(t, a, b, "good.test"), signedAt(t, b, a, "bad.test")
	for _, s := range []*server{a, b} {
		opensslSays(t, s, map[*node]string{good.at(s): ": OK", bad.at(s): ": OK"})
	}
	worse := signedAt(t, a, b, "worse.test") // one node for each server: who connects to the other one leaves the first
	channels := map[*server]*pcp{a: worse.at(a).pcp(t, "", "/pcp2/agent", wire.V2), b: bad.at(b).pcp(t, "", "/pcp2/agent", wire.V2)}
	said := f.hints(t)
	a.tutti(t, "ca", "revoke", worse.name)
	a.tutti(t, "ca", "revoke", bad.name)
	revoked := time.Now()
	for s, channel := range channels {
		_ = channel.conn.SetReadDeadline(revoked.Add(patience))
		if _, err := channel.in.ReadByte(); err == nil || time.Since(revoked) > 5*time.Second {
			t.Errorf("%s lets go of a revoked node after %s: %v", s.data, time.Since(revoked), err)
		}
	}
	if took := time.Since(revoked); took < 5*time.Second {
		t.Logf("both servers let go of a revoked node after %s", took)
	}
	eventually(t, patience, "servers are told of it", func() bool { return said("revoked") })
	for _, s := range []*server{a, b} {
		if answer, err := bad.at(s).do(http.MethodGet, "/puppet/v3/node/"+bad.name+"?environment=production", "", nil); err == nil {
			t.Errorf("%s lets a revoked node in: %d %s", s.data, answer.status, answer.body)
		}
		eventually(t, 5*time.Second, "the list of "+s.data+" says so", func() bool { return listed(t, s, bad) }) // another server signs it just after it lets go
		opensslSays(t, s, map[*node]string{good.at(s): ": OK", bad.at(s): "certificate revoked"})
	}
}

// listed says whether the list that a server gives has a node's certificate.
func listed(t *testing.T, s *server, n *node) bool {
	t.Helper()
	block, _ := pem.Decode([]byte(anonymous(t, s).must(t, http.MethodGet, "/puppet-ca/v1/certificate_revocation_list/ca", "", nil).body))
	list, err := x509.ParseRevocationList(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list.RevokedCertificateEntries, func(e x509.RevocationListEntry) bool {
		return e.SerialNumber.Cmp(certificateOf(t, n).SerialNumber) == 0
	})
}

// takeOver kills a server that compiles and has the leases: the other one goes on, and what was acknowledged is there.
func (f *several) takeOver(t *testing.T, a, b *server) {
	t.Helper()
	first, second := idOf(t, a), idOf(t, b)
	if n := f.count(t, "SELECT count(*) FROM leases WHERE holder = '"+first+"' AND until > 0"); n < 10 {
		t.Fatalf("the first server has %d leases", n)
	}
	var nodes []string
	for i := range 6 {
		n := signedAt(t, b, a, fmt.Sprintf("slow-%d.test", i))
		form := catalogForm(n.name, "slow", map[string]any{"n": i})
		if answer, err := n.at(a).do(http.MethodPost, "/puppet/v3/catalog/"+n.name+"?environment=slow", "application/x-www-form-urlencoded", form); err != nil {
			t.Fatalf("%d %s, %v", answer.status, answer.body, err)
		}
		nodes = append(nodes, n.name)
		if i == 0 { // the others are wanted while both compile
			eventually(t, patience, "the first server compiles", func() bool {
				return f.count(t, "SELECT count(*) FROM compilations WHERE environment = 'slow' AND (state = 'done' OR leased_by = '"+first+"')") > 0
			})
		}
	}
	a.tutti(t, "node", "list")
	lost := 0
	within(20*time.Second, func() bool {
		lost = f.count(t, "SELECT count(*) FROM compilations WHERE state = 'leased' AND leased_by = '"+first+"'")
		return lost > 0
	})
	if err := a.crash(); err != nil {
		t.Error(err)
	}
	killed := time.Now()
	t.Logf("%d compilations were leased by the server that was killed", lost)
	eventually(t, patience, "the other server has all leases", func() bool {
		return f.count(t, "SELECT count(*) FROM leases WHERE holder <> '"+second+"' AND until > 0") == 0
	})
	took := f.sql(t, "SELECT ceil(extract(epoch FROM clock_timestamp()) - max(since) / 1000000.0) FROM leases")
	t.Logf("the other server had all leases after %s, the last one %s s ago", time.Since(killed), took)
	if time.Since(killed) > 20*time.Second {
		t.Errorf("leases moved after %s", time.Since(killed))
	}
	eventually(t, patience, "the other server compiles what is left", func() bool {
		return f.count(t, "SELECT count(DISTINCT certname) FROM compilations WHERE environment = 'slow' AND state = 'done'") == len(nodes)
	})
	for _, name := range nodes {
		contains(t, b.tutti(t, "node", "show", name), name)
	}
	status := decode[api.Cluster](t, b, "cluster", "status")
	for _, s := range status.Servers {
		if s.Server == first && s.State != api.ServerSilent && time.Since(killed) > 15*time.Second {
			t.Errorf("the server that was killed is %+v", s)
		}
	}
}

// drained empties a server: it says that it is not ready, and lives; its leases and its agents go.
func (f *several) drained(t *testing.T, a, b *server) {
	t.Helper()
	first := idOf(t, a)
	n := signedAt(t, a, b, "drained.test")
	channel := n.pcp(t, "", "/pcp2/agent", wire.V2)
	ready := func(s *server) string {
		answer := anonymous(t, s).must(t, http.MethodGet, "/status/v1/simple", "", nil)
		return fmt.Sprint(answer.status, " ", answer.body)
	}
	if r := b.try(t, "cluster", "drain", "pup-0/00000000"); r.code != 1 || !strings.Contains(r.text(), "there is no server pup-0/00000000") {
		t.Errorf("draining an unknown server ends with %d: %s", r.code, r.text())
	}
	same(t, "it is ready", "200 running", ready(a))
	f.follows(t, b, "Stop one of them", map[string]string{"pup-1/1a2b3c4d": first})
	eventually(t, patience, "it says that it is not ready", func() bool { return ready(a) == "503 draining" })
	same(t, "it lives", "alive", anonymous(t, a).must(t, http.MethodGet, "/status/v1/live", "", nil).body)
	same(t, "the other one is ready", "200 running", ready(b))
	_ = channel.conn.SetReadDeadline(time.Now().Add(patience))
	contains(t, string(bytes.ToLower(channel.frame().Payload)), "stopping")
	eventually(t, patience, "its leases are gone", func() bool {
		return f.count(t, "SELECT count(*) FROM leases WHERE holder = '"+first+"' AND until > 0") == 0
	})
	contains(t, b.tutti(t, "cluster", "status"), first, "draining")
	r := b.try(t, "cluster", "drain", idOf(t, b))
	if r.code != 5 {
		t.Errorf("the last server is drained: %d %s", r.code, r.text())
	}
	if a := n.must(t, http.MethodGet, "/puppet/v3/file_content/modules/story/a.txt?environment=production", "", nil); a.status != http.StatusOK {
		t.Errorf("a server that drains answers %d %s", a.status, a.body)
	}
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	if status := decode[api.Cluster](t, b, "cluster", "status"); len(status.Servers) != 1 {
		t.Errorf("servers after one has stopped: %+v", status.Servers)
	}
}

// One server only compiles, another one does everything else: the first one's catalogs are given out by the second one.
func TestAServerThatOnlyCompiles(t *testing.T) {
	begin(t, 60)
	f := startSeveral(t)
	front := f.server(t, "front", "--autosign", "all", "--compile-patience", "30s", "--roles", "api,broker,content,ca,scheduler")
	compiler := f.server(t, "compiler", "--roles", "compiler")
	front.startFor(t)
	compiler.startFor(t)
	front.deploy(t, "production")
	n := enrol(t, front, "web-1.test")
	if c, err := n.catalog("production", map[string]any{"role": "web"}); err != nil || c.status != http.StatusOK {
		t.Fatalf("%d %s, %v", c.status, c.body, err)
	}
	same(t, "who compiled", idOf(t, compiler), f.sql(t, "SELECT DISTINCT leased_by FROM compilations WHERE state = 'done'"))
	f.traced(t, n.name, map[string]*server{"catalog request": front, "compilation": compiler})
	same(t, "who has leases", idOf(t, front), f.sql(t, "SELECT DISTINCT holder FROM leases WHERE until > 0"))
	contains(t, front.tutti(t, "cluster", "status"), "api,broker,content,ca,scheduler", "compiler ")
	for path, want := range map[string]int{
		"/status/v1/simple": http.StatusOK, "/status/v1/live": http.StatusOK, "/puppet/v3/node/web-1.test": http.StatusServiceUnavailable,
		"/puppet-ca/v1/certificate/ca": http.StatusServiceUnavailable, "/api/v1/cluster": http.StatusServiceUnavailable,
	} {
		if a := n.at(compiler).must(t, http.MethodGet, path, "", nil); a.status != want {
			t.Errorf("%s of a server that only compiles: %d %s, want %d", path, a.status, a.body, want)
		}
	}
	if err := compiler.crash(); err != nil {
		t.Error(err)
	}
	late := enrol(t, front, "web-2.test")
	form := catalogForm(late.name, "production", map[string]any{"role": "web"})
	a := late.must(t, http.MethodPost, "/puppet/v3/catalog/"+late.name+"?environment=production", "application/x-www-form-urlencoded", form)
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("while nobody compiles: %d %v %s", a.status, a.header, a.body)
	}
	if err := compiler.start(); err != nil {
		t.Fatal(err)
	}
	if c, err := late.catalog("production", map[string]any{"role": "web"}); err != nil || c.status != http.StatusOK {
		t.Errorf("when somebody compiles again: %d %s, %v", c.status, c.body, err)
	}
	contains(t, refuses(t, f.server(t, "part", "--roles", "broker")), "api, broker, content, ca go together so far")
}
