//go:build soak

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

// neighbourCommit is the version before this one, as far as records go: the last commit that was landed before the newest migration. Whoever lands a
// migration moves it on.
const neighbourCommit = "7fdae391"

// buildNeighbour makes the program of that commit, once.
var buildNeighbour = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	source, err := os.MkdirTemp(filepath.Dir(binary), "neighbour-")
	if err != nil {
		return "", err
	}
	if err := exec.CommandContext(ctx, "git", "cat-file", "-e", neighbourCommit+"^{commit}").Run(); err != nil {
		return "", fmt.Errorf("the story needs the commit %s, from which the version before this one is built, and this clone has not got it. "+
			"A clone that is shallow has no history: git fetch --unshallow (%w)", neighbourCommit, err)
	}
	// The tree without its history, so that nothing of it is left in this repository.
	script := fmt.Sprintf("git -C .. archive %s -- go.mod go.sum cmd api internal packaging | tar -x -C %q", neighbourCommit, source)
	if out, err := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", script).CombinedOutput(); err != nil {
		return "", fmt.Errorf("read the version before: %w\n%s", err, out)
	}
	path := binary + "-before"
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-o", path, "./cmd/tutti")
	cmd.Dir = source
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the version before: %w\n%s", err, out)
	}
	return path, os.RemoveAll(source)
})

func neighbour(t *testing.T) string {
	t.Helper()
	path, err := buildNeighbour()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Two servers of the version before are brought to this one, one by one, while real agents of both versions are given orders and nodes check in. Meanwhile
// servers of both versions work on one schema.
func TestRollingUpgrade(t *testing.T) {
	begin(t, 250)
	before := neighbour(t)
	f := startSeveral(t)
	a, b := f.ofBefore(t, "a", before), f.ofBefore(t, "b", before)
	a.startFor(t)
	b.startFor(t)
	lb, one := f.balance(t, a, b)
	one.deploy(t, "production")
	going := startTraffic(t, one, map[string]string{"old.test": before, "new.test": binary})
	schema := f.count(t, "SELECT max(version_id) FROM goose_db_version")

	f.upgradeSays(t, a, "What would be done")
	f.restart(t, lb, a, b, func() { a.program = binary })
	if now := f.count(t, "SELECT max(version_id) FROM goose_db_version"); now <= schema {
		t.Errorf("the schema was %d and is %d: nothing was expanded beside the version before", schema, now)
	}

	// Both versions work side by side.
	began := going.orders()
	for _, s := range []*server{a, b} {
		other := map[*server]*server{a: b, b: a}[s]
		n := enrol(t, s, "beside-"+filepath.Base(filepath.Dir(s.data))+".test") // one signs, the other knows
		if c, err := n.at(other).catalog("production", map[string]any{"role": "web"}); err != nil || c.status != http.StatusOK {
			t.Errorf("a catalog at %s: %d %s, %v", other.data, c.status, c.body, err)
		}
		contains(t, other.tutti(t, "node", "show", n.name), n.name)
		told := s.tutti(t, "command", "run", "echo beside-$((40 + 2))", "--targets", "old.test,new.test",
			"--wait-offline", "1m", "--yes") // a node may just be on its way from the server that was restarted
		contains(t, told, "beside-42")
	}
	// the version before, also to agents of this one
	same(t, "who dispatches", idOf(t, b), f.sql(t, "SELECT holder FROM leases WHERE name = 'jobs' AND until > 0"))
	eventually(t, patience, "orders go on beside", func() bool { return going.orders() >= began+4 })

	// The program before is refused by now, in words, and says who could use these records.
	late := f.ofBefore(t, "late", before)
	contains(t, refuses(t, late),
		fmt.Sprintf("the database has schema %d, and this program knows schemas up to %d", f.count(t, "SELECT max(version_id) FROM goose_db_version"), schema),
		"or newer")

	f.restart(t, lb, b, a, func() { b.program = binary })
	going.stop(t)
	going.judge(t, f, 2)
	f.upgradeSays(t, a, "Several servers, one by one")
	contains(t, a.tutti(t, "server", "--check-upgrade", "--config", f.settings(t, "a")), "which is this program's: nothing is changed")
	status := decode[api.Cluster](t, a, "cluster", "status")
	if len(status.Servers) != 2 || status.Servers[0].Version != status.Servers[1].Version {
		t.Errorf("servers after the upgrade: %+v", status.Servers)
	}
}

// ofBefore describes a server of the version before. It knows no settings that came later.
func (f *several) ofBefore(t *testing.T, name, program string) *server {
	t.Helper()
	s := f.server(t, name, "--listen", steadyAddress(t), "--autosign", "all", "--compile-patience", "30s")
	s.program = program
	return s
}
