package e2e_test

import (
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/tutti-project/tutti/api"
)

// The same story with PostgreSQL keeping the records.
func TestPostgreSQL(t *testing.T) {
	begin(t, 40)
	url := startPostgres(t)
	s := startServer(t, "--autosign", "all", "--database", url)
	s.deploy(t, "production")
	a := newAgent(t, s, "postgres.test", "story=basic")
	a.run(t, 2)
	a.run(t, 0)
	checkStored(t, a)
	if err := s.crash(); err != nil {
		t.Error(err)
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	checkStored(t, a)
	a.run(t, 0)
	checkCluster(t, s, url)
	if left, _ := filepath.Glob(filepath.Join(s.data, "*.db")); len(left) != 0 {
		t.Errorf("there is a SQLite database beside PostgreSQL: %v", left)
	}
}

// checkCluster has a server that was killed and started again be the only one of its records, with all leases, given anew; another one is
// refused, and told who is there.
func checkCluster(t *testing.T, s *server, url string) {
	t.Helper()
	c := decode[api.Cluster](t, s, "cluster", "status")
	if len(c.Servers) != 1 || c.Servers[0].Server != c.Answered || c.Servers[0].State != api.ServerRunning || c.Servers[0].Address != s.url || len(c.Leases) < 10 {
		t.Fatalf("the cluster: %+v", c)
	}
	for _, l := range c.Leases {
		if l.State != api.LeaseHeld || l.Server != c.Answered || l.Token < 2 {
			t.Errorf("lease %+v", l)
		}
	}
	r := tuttiWith(t, s.env, "server", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--database", url)
	if r.code != 5 {
		t.Errorf("exit code %d, want 5 (refused)\n%s", r.code, r.text())
	}
	contains(t, r.text(), "another server ("+c.Answered+" at "+c.Servers[0].Address+") uses this database", "docs/many-servers.md")
	contains(t, s.tutti(t, "cluster", "status"), c.Answered, "running", "scheduled jobs")
}

func checkStored(t *testing.T, a *agent) {
	t.Helper()
	if n := len(a.reports(t)); n != 2 {
		t.Errorf("%d reports, want 2", n)
	}
	node := decode[api.Node](t, a.server, "node", "show", a.name)
	if node.Status != "unchanged" || node.FactsAt == nil || node.CatalogAt == nil {
		t.Errorf("node %+v", node)
	}
}

// startPostgres starts a private cluster on a Unix socket and returns its URL. more is settings, as -c NAME=VALUE.
func startPostgres(tb testing.TB, more ...string) string {
	tb.Helper()
	d := newDatabase(tb, more...)
	d.run()
	return d.local
}

// postgresBin finds the newest installed PostgreSQL.
func postgresBin(tb testing.TB) string {
	tb.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		tb.Fatal("PostgreSQL is missing: apt-get install postgresql")
	}
	return filepath.Dir(found[len(found)-1])
}

func credential(tb testing.TB, name string) *syscall.Credential {
	tb.Helper()
	who, err := user.Lookup(name)
	if err != nil {
		tb.Fatalf("%v: apt-get install postgresql", err)
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		tb.Fatal(err)
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		tb.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
