package e2e_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	agentpkg "github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// scheduled is a node whose Puppet and whose Tutti agent are one: it applies its catalog by itself.
type scheduled struct {
	*agent
	*daemon
}

// joinScheduled makes a node with Puppet's certificate, whose agent has these flags. Its runs are so far apart that what came of one is
// seen before the next is over, and a machine that stands still for a while does not make it think that its server is gone.
func joinScheduled(t *testing.T, s *server, name, story string, flags ...string) scheduled {
	t.Helper()
	return installed().joinScheduled(t, s, name, story, flags...)
}

// joinScheduled is joinScheduled with this Puppet.
func (i installation) joinScheduled(t *testing.T, s *server, name, story string, flags ...string) scheduled {
	t.Helper()
	return i.joinScheduledIn(t, t.TempDir(), s, name, story, flags...)
}

// joinScheduledIn is the same with a directory for the agent.
func (i installation) joinScheduledIn(t *testing.T, dir string, s *server, name, story string, flags ...string) scheduled {
	t.Helper()
	a := i.agent(t, s, name, "story="+story)
	if r := a.puppet(t, "ssl", "bootstrap"); r.code != 0 {
		t.Fatalf("puppet ssl bootstrap: %s", r.text())
	}
	s.tutti(t, "agent", "join", s.url, "--dir", dir, "--use-puppet-certificates", "--runs", "--puppet-ssldir", filepath.Join(a.home, "ssldir"),
		"--certname", a.name)
	puppet := programtest.Write(t, filepath.Join(dir, "puppet"), a.script()) // knows the directories of this test's node
	return scheduled{
		a, newDaemon(t, a.name, dir,
			append([]string{"--puppet", puppet, "--run-interval", "20s", "--catalog-poll-interval", "3s", "--ping-interval", "5m"}, flags...)...),
	}
}

// script is a puppet that knows the node's own directories.
func (a *agent) script() string {
	var text strings.Builder
	text.WriteString("#!/bin/sh\n")
	for _, entry := range a.env {
		text.WriteString("export " + shellQuoted(entry) + "\n")
	}
	return text.String() + a.exec()
}

// compiles lets the node's catalog be compiled anew, from facts that are enough for its story.
func (n scheduled) compiles(t *testing.T) {
	t.Helper()
	certificate, err := tls.LoadX509KeyPair(filepath.Join(n.home, "ssldir/certs", n.agent.name+".pem"),
		filepath.Join(n.home, "ssldir/private_keys", n.agent.name+".pem"))
	if err != nil {
		t.Fatal(err)
	}
	asks := &node{server: n.server, name: n.agent.name, client: newHTTPClient(t, &tls.Config{
		RootCAs: n.server.roots(t), MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
	})}
	if a, err := asks.catalog("production", map[string]any{"scratch": n.scratch}); err != nil || a.status != http.StatusOK {
		t.Fatalf("compile: %d %s %v", a.status, a.body, err)
	}
}

// ran waits for a scheduled run that is over and is as it shall be.
func (n scheduled) ran(t *testing.T, what string, ok func(agentpkg.Status) bool) agentpkg.Status {
	t.Helper()
	var s agentpkg.Status
	eventually(t, patience, n.agent.name+": "+what, func() bool {
		var there bool
		s, there = n.status(t)
		return there && s.Runs.Last != nil && ok(s)
	})
	return s
}

// settled waits until the node is connected and its first run is over: while Puppet runs, no other run begins.
func (n scheduled) settled(t *testing.T) {
	t.Helper()
	n.connectedTo(t, "localhost:"+n.server.port())
	n.ran(t, "has run", func(agentpkg.Status) bool { return true })
}

// after says that a run ended later than another one.
func after(s agentpkg.Status, before agentpkg.Status) bool {
	return s.Runs.Last.End.After(before.Runs.Last.End)
}

func (n scheduled) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(n.scratch, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A node that never had a catalog converges by itself; then it keeps its catalog and applies exactly that one, also
// a new one, and while the server is away. Every run is reported once, and a damaged catalog is never applied.
func TestCatalogsAreAppliedOnSchedule(t *testing.T) {
	begin(t, 120)
	s := startServer(t, "--autosign", "all", "--compile-patience", "30s", "--listen", steadyAddress(t))
	control := filepath.Join(t.TempDir(), "production")
	if err := os.CopyFS(control, os.DirFS("testdata/control/production")); err != nil {
		t.Fatal(err)
	}
	s.tutti(t, "code", "deploy", "--no-check", "production", control)
	n := joinScheduled(t, s, "scheduled.test", "basic")
	n.start(t)
	first := n.ran(t, "converges", func(s agentpkg.Status) bool { return s.Runs.Last.Status == "changed" })
	if first.Runs.Last.Catalog != "" {
		t.Errorf("the first run was from a catalog that nobody had: %+v", first.Runs.Last)
	}
	second := n.ran(t, "runs from what it keeps", func(s agentpkg.Status) bool { return s.Runs.Last.Catalog != "" })
	if second.Runs.Last.Status != "unchanged" || second.Runs.Last.Catalog != second.Catalog.Digest {
		t.Errorf("the second run: %+v of %+v", second.Runs.Last, second.Catalog)
	}
	n.wantReport(t, second, false)

	if err := os.WriteFile(filepath.Join(control, "modules/story/files/a.txt"), []byte("another source\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.tutti(t, "code", "deploy", "--no-check", "production", control)
	n.compiles(t)
	third := n.ran(t, "applies another catalog", func(s agentpkg.Status) bool { return s.Runs.Last.Status == "changed" && after(s, second) })
	same(t, "file", "another source\n", n.read(t, "basic/source.txt"))
	if third.Runs.Last.Catalog == second.Runs.Last.Catalog || third.Runs.Last.Catalog != third.Catalog.Digest {
		t.Errorf("the run after a change: %+v of %+v", third.Runs.Last, third.Catalog)
	}
	n.wantReport(t, third, false)

	if err := s.stop(); err != nil {
		t.Error(err)
	}
	n.write(t, "basic/content.txt", "drift\n")
	alone := n.ran(t, "mends while the server is away", func(s agentpkg.Status) bool {
		return s.Runs.Last.Status == "changed" && after(s, third) && s.UndeliveredReports > 0
	})
	same(t, "mended file", "hello from hiera\n", n.read(t, "basic/content.txt"))

	kept := filepath.Join(n.dir, "data/catalogs", alone.Catalog.Digest+".json")
	if err := os.WriteFile(kept, []byte(`{"exported":[],"catalog":{"resources":[]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := n.ran(t, "does not apply a damaged catalog", func(s agentpkg.Status) bool { return s.Runs.Last.Status == "not done" })
	contains(t, damaged.Runs.Last.Detail, "not what its digest says")

	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	mended := n.ran(t, "runs again", func(s agentpkg.Status) bool { return s.Runs.Last.Status == "unchanged" && after(s, damaged) })
	if mended.Runs.Last.Catalog != alone.Catalog.Digest {
		t.Errorf("the run after the damage: %+v", mended.Runs.Last)
	}
	n.ran(t, "has delivered its reports", func(s agentpkg.Status) bool { return s.UndeliveredReports == 0 })
	n.wantReport(t, alone, true)
	seen := map[string]int{}
	for _, r := range n.reports(t) {
		seen[r.TransactionUUID]++
	}
	for uuid, count := range seen {
		if count != 1 {
			t.Errorf("the report %s is stored %d times", uuid, count)
		}
	}
}

// wantReport looks for the report of the last scheduled run: it names the catalog that was kept.
func (n scheduled) wantReport(t *testing.T, s agentpkg.Status, corrective bool) {
	t.Helper()
	for _, r := range n.reports(t) {
		if r.TransactionUUID != s.Runs.Last.Report {
			continue
		}
		applied := r.CatalogUUID == s.Catalog.UUID || s.Catalog.Fetched.After(s.Runs.Last.Begin) // it was compiled again during the run
		if r.CachedCatalog != "explicitly_requested" || r.CatalogUUID == "" || !applied || r.Version != s.Catalog.Version || r.Noop || r.Corrective != corrective {
			t.Errorf("the report of %+v of %+v is %+v", s.Runs.Last, s.Catalog, api.Report{
				CachedCatalog: r.CachedCatalog, CatalogUUID: r.CatalogUUID, Version: r.Version, Noop: r.Noop, Corrective: r.Corrective,
			})
		}
		return
	}
	t.Errorf("the run %s has no report", s.Runs.Last.Report)
}

// With run_noop scheduled runs change nothing, from the catalog that the node keeps; puppet agent --disable ends them.
func TestScheduledRunsThatOnlyShow(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all", "--compile-patience", "30s")
	s.deploy(t, "production")
	n := joinScheduled(t, s, "shown.test", "plugins", "--run-noop")
	n.start(t)
	status := n.ran(t, "runs from what it keeps", func(s agentpkg.Status) bool { return s.Runs.Last.Catalog != "" })
	if status.Runs.Last.Status != "unchanged" || !status.Runs.Noop || status.Runs.Last.Pending == 0 {
		t.Errorf("the noop run: %+v", status.Runs)
	}
	would := fmt.Sprintf("unchanged, %d would change", status.Runs.Last.Pending)
	contains(t, s.tutti(t, "agent", "status", "--dir", n.dir), would+", ")
	contains(t, s.tutti(t, "report", "list", "--node", "shown.test"), would)
	eventually(t, patience, "the end of the run says so", func() bool {
		return strings.Contains(s.tutti(t, "event", "list", "--node", "shown.test", "--kind", "end"), strings.Replace(would, "unchanged", "run ends", 1)+" (")
	})
	same(t, "files", map[string]string{}, n.tree(t, "."))
	for _, r := range n.reports(t) {
		if !r.Noop || !r.NoopPending {
			t.Errorf("report %+v", r)
		}
	}
	if r := n.puppet(t, "agent", "--disable", "the owner says so"); r.code != 0 {
		t.Fatal(r.text())
	}
	n.ran(t, "is disabled", func(s agentpkg.Status) bool { return s.Runs.Last.Status == "disabled" })
}
