package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
