package e2e_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
)

// puppetserverTimeout is how long Puppet Server may take to start: half a minute on a
// machine of its own.
const puppetserverTimeout = 10 * time.Minute

// quickStart makes a Java program start in less CPU; it runs slower later.
var quickStart = []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djruby.compile.mode=OFF"}

// terminus is Debian's Puppet Server with Debian's PuppetDB terminus, whose PuppetDB is Tutti.
type terminus struct {
	*rivals.Puppetserver
	store    *server
	identity *agent // the Puppet Server's own machine, whose certificate it shows
	log      string // the Puppet Server's
}

// puppetserverAddress is where the Puppet Server is. Its certificate names it: a node of Tutti's CA may not be called localhost.
const puppetserverAddress = "127.0.0.2"

// startTerminus does what an administrator does: the Puppet Server's machine gets its
// certificate from Tutti's CA as every node does, and puppetdb.conf names Tutti.
func startTerminus(t *testing.T) *terminus {
	t.Helper()
	const name = "puppet.terminus.test"
	s := startServer(t, "--autosign", "all", "--allow-subject-alt-names", "--puppetdb-clients", name, "--listen", steadyAddress(t))
	identity := newAgent(t, s, name)
	if r := identity.puppet(t, "ssl", "bootstrap", "--dns_alt_names", "IP:"+puppetserverAddress); r.code != 0 {
		t.Fatalf("puppet ssl bootstrap: exit code %d\n%s", r.code, r.text())
	}
	writeFile(t, filepath.Join(identity.home, "confdir", "puppetdb.conf"), "[main]\nserver_urls = "+s.url+"\n")
	environments, err := filepath.Abs("testdata/terminus")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), puppetserverTimeout)
	defer cancel()
	dir := t.TempDir()
	ps, err := rivals.StartPuppetserver(ctx, rivals.PuppetserverConfig{
		Dir: dir, EnvironmentPath: environments, BaseModulePath: filepath.Join(dir, "no-modules"), JRubies: 1, Heap: "512m", JavaArgs: quickStart,
		SSLDir: filepath.Join(identity.home, "ssldir"), Certname: name, PuppetDB: s.url, Address: puppetserverAddress,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of Puppet Server's log:\n%s", ps.Log())
		}
		if err := ps.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("Puppet Server %s", ps.Version(ctx))
	return &terminus{ps, s, identity, filepath.Join(dir, "server.log")}
}

// node is a node of this Puppet Server.
func (p *terminus) node(t *testing.T, name, shared, role string) *agent {
	t.Helper()
	a := newAgent(t, p.store, name, "role="+role, "shared="+shared)
	a.compiler, a.compilerAddress = p.Port(), puppetserverAddress
	return a
}

// ask asks Tutti as PuppetDB's clients do, with the Puppet Server's certificate.
func ask[T any](t *testing.T, p *terminus, path, query string) T {
	t.Helper()
	ssl, file := filepath.Join(p.identity.home, "ssldir"), p.identity.name+".pem"
	certificate, err := tls.LoadX509KeyPair(filepath.Join(ssl, "certs", file), filepath.Join(ssl, "private_keys", file))
	if err != nil {
		t.Fatal(err)
	}
	n := &node{server: p.store, client: newHTTPClient(t, &tls.Config{
		RootCAs: p.store.roots(t), MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
	})}
	got := n.must(t, http.MethodGet, "/pdb/query/v4/"+path+"?"+url.Values{"query": {query}}.Encode(), "", nil)
	if got.status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", path, query, got.status, got.body)
	}
	var rows T
	if err := json.Unmarshal([]byte(got.body), &rows); err != nil {
		t.Fatalf("%s %s: %v\n%s", path, query, err, got.body)
	}
	return rows
}

// A Puppet Server that knows nothing of Tutti but the address in puppetdb.conf: one node
// exports, another collects; what both did is known to Tutti; what a node exported goes with it.
func TestPuppetserverKeepsInTutti(t *testing.T) {
	begin(t, 200)
	p, shared := startTerminus(t), t.TempDir()
	web, lb := p.node(t, "web.terminus.test", shared, "web"), p.node(t, "lb.terminus.test", shared, "lb")
	member := filepath.Join(shared, web.name)

	web.run(t, 2)
	lb.run(t, 2)
	same(t, "collected file", "member "+web.name+"\n", readFile(t, member))
	same(t, "nodes of puppetdb_query", lb.name+" "+web.name, lb.read(t, "nodes.txt"))
	p.checkFacts(t, web)
	p.checkCatalogs(t, web, lb, member)
	p.checkReport(t, lb)
	for _, command := range []string{"replace_facts", "replace_catalog", "replace_catalog_inputs", "store_report"} {
		contains(t, readFile(t, p.log), "'"+command+"' command for "+web.name+" submitted to PuppetDB with UUID ")
	}

	p.checkDeactivation(t, web, lb, member)
	p.checkOutage(t, web, lb, member)
}

func (p *terminus) checkFacts(t *testing.T, web *agent) {
	t.Helper()
	type row struct {
		Certname, Environment, Producer string
		Trusted                         struct {
			Authenticated, Certname string
		}
		Facts struct {
			Role       string
			Processors struct{ Count int }
		}
	}
	rows := ask[[]row](t, p, "inventory", `["=","certname","`+web.name+`"]`)
	if len(rows) != 1 || rows[0].Facts.Role != "web" || rows[0].Facts.Processors.Count < 1 || rows[0].Environment != "production" ||
		rows[0].Trusted.Authenticated != "remote" || rows[0].Trusted.Certname != web.name {
		t.Errorf("inventory of %s: %+v", web.name, rows)
	}
	out := p.store.tutti(t, "query", `factsets[certname, producer]{ certname = "`+web.name+`" }`, "-o", "json")
	contains(t, out, web.name, p.identity.name)
}

// checkCatalogs looks for what the one exported in both catalogs.
func (p *terminus) checkCatalogs(t *testing.T, web, lb *agent, member string) {
	t.Helper()
	type resource struct {
		Certname, Type, Title, File string
		Exported                    bool
		Line                        int
		Tags                        []string
		Parameters                  map[string]any
	}
	rows := ask[[]resource](t, p, "resources", `["=","title","`+member+`"]`)
	exported := map[string]bool{}
	for _, r := range rows {
		exported[r.Certname] = r.Exported
		same(t, "content of "+r.Certname, any("member "+web.name+"\n"), r.Parameters["content"])
		contains(t, strings.Join(r.Tags, " "), "members")
		if r.Exported && (r.Line == 0 || !strings.HasSuffix(r.File, "site.pp")) {
			t.Errorf("%s of %s is declared in %s:%d", r.Title, r.Certname, r.File, r.Line)
		}
	}
	same(t, "who exports", map[string]bool{web.name: true, lb.name: false}, exported)

	type edge struct {
		Source string `json:"source_title"`
		Target string `json:"target_title"`
	}
	edges := ask[[]edge](t, p, "edges", `["and",["=","certname","`+web.name+`"],["=","relationship","required-by"]]`)
	same(t, "order", []edge{{filepath.Join(web.scratch, "own.txt"), filepath.Join(web.scratch, "second.txt")}}, edges)

	type catalog struct {
		Certname, Producer, Environment, Version string
		Transaction                              string `json:"transaction_uuid"`
	}
	catalogs := ask[[]catalog](t, p, "catalogs", `["extract",["certname","producer","environment","version","transaction_uuid"],["=","certname","`+web.name+`"]]`)
	if len(catalogs) != 1 || catalogs[0].Producer != p.identity.name || catalogs[0].Environment != "production" ||
		catalogs[0].Version == "" || len(catalogs[0].Transaction) != 36 {
		t.Errorf("catalog of %s: %+v", web.name, catalogs)
	}
}

func (p *terminus) checkReport(t *testing.T, lb *agent) {
	t.Helper()
	type report struct {
		Certname, Status, Producer string
		Version                    string                                   `json:"puppet_version"`
		Catalog                    string                                   `json:"catalog_uuid"`
		Events                     struct{ Data []struct{ Status string } } `json:"resource_events"`
		Logs                       struct{ Data []struct{ Message string } }
	}
	reports := ask[[]report](t, p, "reports", `["and",["=","certname","`+lb.name+`"],["=","latest_report?",true]]`)
	if len(reports) != 1 || reports[0].Status != "changed" || reports[0].Producer != p.identity.name ||
		len(reports[0].Events.Data) != 3 || len(reports[0].Logs.Data) == 0 || len(reports[0].Catalog) != 36 {
		t.Errorf("report of %s: %+v", lb.name, reports)
	}
	contains(t, p.store.tutti(t, "report", "list", "--node", lb.name), "changed")
	contains(t, p.store.tutti(t, "node", "list"), lb.name)
}

// checkDeactivation lets a node go through the terminus: nobody collects from it any more,
// until it comes back with its next run.
func (p *terminus) checkDeactivation(t *testing.T, web, lb *agent, member string) {
	t.Helper()
	r := p.identity.puppet(t, "node", "deactivate", web.name)
	if r.code != 0 {
		t.Fatalf("puppet node deactivate: exit code %d\n%s", r.code, r.text())
	}
	contains(t, r.out, "Submitted 'deactivate node' for "+web.name+" with UUID ")
	r = p.identity.puppet(t, "node", "status", web.name, lb.name)
	if r.code != 0 {
		t.Fatalf("puppet node status: exit code %d\n%s", r.code, r.text())
	}
	contains(t, r.out, "Deactivated at 20", "Currently active", "Last catalog: 20", "Last facts: 20")

	removeFile(t, member)
	lb.run(t, 2)
	same(t, "nodes of puppetdb_query", lb.name, lb.read(t, "nodes.txt"))
	if _, err := os.Stat(member); err == nil {
		t.Errorf("%s collects what %s exported, which is deactivated", lb.name, web.name)
	}

	web.run(t, 0)
	lb.run(t, 2)
	same(t, "collected file", "member "+web.name+"\n", readFile(t, member))
	same(t, "nodes of puppetdb_query", lb.name+" "+web.name, lb.read(t, "nodes.txt"))
}

// checkOutage stops Tutti: with soft_write_failure = false, the terminus's default, no catalog is
// given that is not stored. Once Tutti is back, everything goes on.
func (p *terminus) checkOutage(t *testing.T, web, lb *agent, member string) {
	t.Helper()
	if err := p.store.stop(); err != nil {
		t.Error(err)
	}
	out := lb.run(t, 1)
	contains(t, out, "Could not retrieve catalog from remote server: Error 500 on SERVER",
		"Failed to execute '/pdb/cmd/v1?", "command=replace_facts", "on at least 1 of the following 'server_urls': https://localhost:")
	if r := p.identity.puppet(t, "node", "deactivate", web.name); r.code == 0 {
		t.Errorf("puppet node deactivate without Tutti: exit code 0\n%s", r.text())
	}
	if err := p.store.start(); err != nil {
		t.Fatal(err)
	}
	removeFile(t, member)
	lb.run(t, 2)
	same(t, "collected file", "member "+web.name+"\n", readFile(t, member))
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func removeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
