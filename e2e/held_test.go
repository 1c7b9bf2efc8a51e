package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/program/programtest"
)

// A site manifest is emptied by mistake, with a file that it served. A stock agent and one that Tutti's agent runs go on with the catalog and the
// file that they have, what drifted is mended, and the run says so; the server is killed meanwhile. Then it is let go: nothing is applied any more.
func TestAnEmptiedSiteManifestIsHeld(t *testing.T) {
	begin(t, 90)
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s", "--listen", steadyAddress(t))
	versionOf(t, s, releasedCode(t, "one"))
	stock, ours := newAgent(t, s, "stock.held.test"), newAgent(t, s, "ours.held.test")
	stock.run(t, 2)
	ours.run(t, 2)
	dir := t.TempDir()
	s.tutti(t, "agent", "join", s.url, "--dir", dir, "--use-puppet-certificates", "--puppet-ssldir", filepath.Join(ours.home, "ssldir"), "--certname", ours.name)
	d := newDaemon(t, ours.name, dir, "--puppet", programtest.Write(t, filepath.Join(dir, "puppet"), ours.script()))
	d.start(t)
	d.connectedTo(t, strings.TrimPrefix(s.url, "https://"))

	empty := t.TempDir()
	write(t, filepath.Join(empty, "manifests/site.pp"), "# nothing\n")
	emptied := versionOf(t, s, empty)
	eventually(t, patience, "both are held", func() bool {
		return strings.Contains(s.tutti(t, "code", "status"), "0 current, 0 waiting, 0 failed, 0 unknown, 2 held")
	})
	write(t, filepath.Join(stock.scratch, "sent"), "by hand\n")
	stock.run(t, 2)
	if got := stock.read(t, "said") + stock.read(t, "sent"); got != "one\nfile of one\n" {
		t.Errorf("the stock agent has %q, want what it had, mended", got)
	}
	const told = "catalog held: lost all of its 3 resources (version "
	contains(t, s.tutti(t, "run", "--targets", ours.name, "--yes"), ours.name, told, "let go: tutti catalog let "+ours.name)
	contains(t, s.tutti(t, "job", "show", "1", "--runs", "all"), told)
	contains(t, s.tutti(t, "node", "show", stock.name), told)

	if err := s.crash(); err != nil {
		t.Fatal(err)
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	contains(t, s.tutti(t, "catalog", "held"), stock.name, ours.name)
	write(t, filepath.Join(stock.scratch, "said"), "by hand\n")
	stock.run(t, 2)
	if got := stock.read(t, "said"); got != "one\n" {
		t.Errorf("after the server was killed the stock agent has %q", got)
	}
	s.tutti(t, "catalog", "let", "--version", emptied[:12])
	eventually(t, patience, "nothing is held", func() bool { return strings.Contains(s.tutti(t, "code", "status"), "2 current") })
	write(t, filepath.Join(stock.scratch, "said"), "by hand\n")
	stock.run(t, 0)
	if got := stock.read(t, "said"); got != "by hand\n" {
		t.Errorf("what was let go is not what the stock agent was given: its file has %q", got)
	}
}
