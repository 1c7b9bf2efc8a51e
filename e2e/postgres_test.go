package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
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

// startPostgres starts a private cluster on a Unix socket and returns its URL.
func startPostgres(t *testing.T) string {
	t.Helper()
	bin := postgresBin(t)
	dir, err := os.MkdirTemp("", "e2e-pg-") //nolint:usetesting // a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attr := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		attr.Credential = credential(t, "postgres")
		if err := os.Chown(dir, int(attr.Credential.Uid), int(attr.Credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "tutti", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C.UTF-8")
	initdb.SysProcAttr, initdb.Env, initdb.Dir = attr, cleanEnv(), dir
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "shared_buffers=16MB", "-c", "fsync=off")
	server.SysProcAttr, server.Env, server.Dir, server.Stdout, server.Stderr = attr, cleanEnv(), dir, log, log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		_ = server.Wait()
		_ = log.Close()
	})
	eventually(t, patience, "PostgreSQL takes connections", func() bool {
		return exec.Command(filepath.Join(bin, "pg_isready"), "-h", dir, "-U", "tutti", "-d", "postgres").Run() == nil
	})
	return fmt.Sprintf("postgres://tutti@/postgres?host=%s", dir)
}

// postgresBin finds the newest installed PostgreSQL.
func postgresBin(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Fatal("PostgreSQL is missing: apt-get install postgresql")
	}
	return filepath.Dir(found[len(found)-1])
}

func credential(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	who, err := user.Lookup(name)
	if err != nil {
		t.Fatalf("%v: apt-get install postgresql", err)
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
