package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

// site is a server that stands near its nodes, with a way to the database and to the store of content that can be cut.
type site struct {
	*server
	database, store *proxy
}

// startSite starts one of several servers near its nodes.
func (f *several) startSite(t *testing.T, name string, flags ...string) *site {
	t.Helper()
	s := &site{database: startProxy(t, f.database), store: startForwarder(t, "tcp", strings.TrimPrefix(f.store.Endpoint, "http://"))}
	s.server = f.server(t, name, append([]string{
		"--near", "--roles", "api,broker,content,ca,compiler", "--database", s.database.url, "--blobs-endpoint", "http://" + s.store.listener.Addr().String(),
	}, flags...)...)
	s.startFor(t)
	return s
}

// nearStatus is what a server near its nodes says of itself.
type nearStatus struct {
	Cut    bool `json:"cut"`
	Queued int  `json:"queued"`
	Aside  int  `json:"set_aside"`
	Kept   int  `json:"kept_catalogs"`
	Served int  `json:"served_kept"`
}

func (s *site) status(t *testing.T) nearStatus {
	t.Helper()
	var parts map[string]struct {
		Status nearStatus `json:"status"`
	}
	a := anonymous(t, s.server).must(t, http.MethodGet, "/status/v1/services", "", nil)
	if err := json.Unmarshal([]byte(a.body), &parts); err != nil {
		t.Fatal(err)
	}
	return parts["near"].Status
}

// cut cuts the site off; silently: nothing is refused, nothing comes.
func (s *site) cut(t *testing.T, silently bool) {
	t.Helper()
	if silently {
		s.database.silence()
		s.store.silence()
	} else {
		s.database.cut()
		s.store.cut()
	}
	eventually(t, patience, "the server knows that it is cut off", func() bool { return s.status(t).Cut })
}

// heal brings the way back, and waits until all is delivered.
func (s *site) heal(t *testing.T) {
	t.Helper()
	s.database.heal()
	s.store.heal()
	if s.cmd == nil {
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, patience, "all is delivered", func() bool {
		now := s.status(t)
		return !now.Cut && now.Queued == 0
	})
	if now := s.status(t); now.Aside != 0 {
		t.Errorf("something was set aside: %+v", now)
	}
}

// A site has a server of its own. Its way to the database and to the store of content is cut: first nothing comes any more, then all is
// refused. Its node goes on with the catalog that was known last, and what it sends is in the records of the main site afterwards, once, also
// when the site's server was killed meanwhile. Nobody gets what is not his.
func TestASiteGoesOnWithoutTheDatabase(t *testing.T) {
	begin(t, 150)
	f := startSeveral(t)
	main := f.server(t, "main", "--autosign", "all", "--puppetdb-clients", "dashboard.test")
	main.startFor(t)
	main.deploy(t, "production")
	dashboard := enrol(t, main, "dashboard.test")
	near := f.startSite(t, "near", "--autosign", "all")

	a := newAgent(t, near.server, "web-1.test", "story=basic")
	a.run(t, 2)
	a.run(t, 0)
	other, asks := enrol(t, near.server, "other.test"), enrol(t, near.server, "asks.test")
	if c, err := asks.catalog("production", map[string]any{"role": "web"}); err != nil || c.status != http.StatusOK {
		t.Fatalf("%d %s, %v", c.status, c.body, err)
	}
	eventually(t, patience, "the catalogs of both nodes are kept", func() bool { return near.status(t).Kept == 2 })
	pointer := asks.must(t, http.MethodGet, "/node/v1/catalog", "", nil)
	revoked := enrol(t, near.server, "revoked.test")
	main.tutti(t, "ca", "revoke", revoked.name)
	eventually(t, patience, "a revoked node is refused", func() bool {
		_, err := revoked.do(http.MethodGet, "/puppet/v3/node/"+revoked.name+"?environment=production", "", nil)
		return err != nil
	})
	before := len(reportsOf(t, dashboard, a.name))

	near.cut(t, true)
	near.goesOn(t, a, "silent")
	near.onlyOwn(t, asks, other, revoked, pointer)
	near.heal(t)
	same(t, "reports of the node, each once", before+1, len(reportsOf(t, dashboard, a.name)))
	same(t, "the facts are the newest ones", "silent", factOf(t, dashboard, a.name, "cutting"))
	contains(t, main.tutti(t, "event", "list", "--kind", "kept"), a.name, "could not reach the database")
	eventually(t, patience, "it says what it did", func() bool {
		for _, s := range decode[api.Cluster](t, main, "cluster", "status").Servers {
			if s.Near != nil && s.Near.Served >= 2 && !s.Near.BackAt.IsZero() && s.Near.Queued == 0 {
				return true
			}
		}
		return false
	})
	contains(t, main.tutti(t, "cluster", "status"), "is near its nodes", "gave kept catalogs to nodes")

	main.follows(t, f.dir, "near-servers.md")

	near.cut(t, false)
	near.goesOn(t, a, "refused")
	if err := near.crash(); err != nil {
		t.Fatal(err)
	}
	contains(t, refuses(t, near.server), "the database cannot be reached")
	near.heal(t)
	same(t, "reports of the node, each once, after a kill", before+2, len(reportsOf(t, dashboard, a.name)))
	same(t, "the facts after a kill are the newest ones", "refused", factOf(t, dashboard, a.name, "cutting"))
	a.run(t, 0)
	if n := f.count(t, "SELECT count(*) FROM (SELECT digest FROM reports GROUP BY digest HAVING count(*) > 1) d"); n != 0 {
		t.Errorf("%d reports are there twice", n)
	}
}

// goesOn has a node run that lost a file, at a server that is cut off: it gets its catalog and the file's content, and its report is taken.
func (s *site) goesOn(t *testing.T, a *agent, how string) {
	t.Helper()
	lost := filepath.Join(a.scratch, "basic", "source.txt")
	content := a.read(t, "basic/source.txt")
	if err := os.Remove(lost); err != nil {
		t.Fatal(err)
	}
	a.env = append(a.env, "FACTER_cutting="+how)
	began := time.Now()
	said := a.run(t, 2)
	t.Logf("%s: a run without the database took %s", how, time.Since(began).Round(time.Second))
	if strings.Contains(said, "Using cached catalog") || strings.Contains(said, "Could not") {
		t.Errorf("%s: the node was not given its catalog:\n%s", how, said)
	}
	same(t, how+": the file that was lost", content, a.read(t, "basic/source.txt"))
	if now := s.status(t); now.Queued < 3 || now.Served < 1 || !now.Cut {
		t.Errorf("%s: the server says %+v", how, now)
	}
	if a := anonymous(t, s.server).must(t, http.MethodGet, "/status/v1/simple/server", "", nil); a.status != http.StatusOK {
		t.Errorf("%s: agents with a list of servers are sent away: %d %s", how, a.status, a.body)
	}
}

// onlyOwn asks a server that is cut off for what it must not give.
func (s *site) onlyOwn(t *testing.T, asks, other, revoked *node, pointer answer) {
	t.Helper()
	same(t, "what a node may have", pointer.body, asks.must(t, http.MethodGet, "/node/v1/catalog", "", nil).body)
	var p struct {
		Catalog string `json:"catalog"`
	}
	if err := json.Unmarshal([]byte(pointer.body), &p); err != nil {
		t.Fatal(err)
	}
	if a := asks.must(t, http.MethodGet, "/node/v1/catalogs/"+p.Catalog, "", nil); a.status != http.StatusOK {
		t.Errorf("its catalog: %d %s", a.status, a.body)
	}
	catalogOf := func(node string) answer {
		return other.must(t, http.MethodPost, "/puppet/v3/catalog/"+node+"?environment=production", "application/x-www-form-urlencoded",
			catalogForm(node, "production", nil))
	}
	for what, a := range map[string]answer{
		"nothing is kept of it":          other.must(t, http.MethodGet, "/node/v1/catalog", "", nil),
		"another node's, by its digest":  other.must(t, http.MethodGet, "/node/v1/catalogs/"+p.Catalog, "", nil),
		"its environment is not known":   other.must(t, http.MethodGet, "/puppet/v3/node/"+other.name+"?environment=production", "", nil),
		"the catalog of a node, unknown": catalogOf(other.name),
		"another node's catalog":         catalogOf(asks.name), // whether its roles allow that is not known
	} {
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "cannot reach the database") {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	if a, err := revoked.do(http.MethodGet, "/puppet/v3/node/"+revoked.name+"?environment=production", "", nil); err == nil {
		t.Errorf("a revoked node is let in: %d %s", a.status, a.body)
	}
}

// reportsOf asks the main site's PuppetDB for the reports of a node.
func reportsOf(t *testing.T, dashboard *node, name string) []struct{ Hash string } {
	t.Helper()
	return pdbOf[struct{ Hash string }](t, dashboard, "reports", name)
}

// factOf asks it for a fact, which a node must have once.
func factOf(t *testing.T, dashboard *node, name, fact string) string {
	t.Helper()
	all := pdbOf[struct{ Value string }](t, dashboard, "facts/"+fact, name)
	if len(all) != 1 {
		t.Fatalf("%s has the fact %s %d times", name, fact, len(all))
	}
	return all[0].Value
}

func pdbOf[T any](t *testing.T, dashboard *node, path, name string) (all []T) {
	t.Helper()
	query := url.Values{"query": {`["=","certname","` + name + `"]`}}
	a := dashboard.must(t, http.MethodGet, "/pdb/query/v4/"+path+"?"+query.Encode(), "", nil)
	if err := json.Unmarshal([]byte(a.body), &all); err != nil || a.status != http.StatusOK {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return all
}
