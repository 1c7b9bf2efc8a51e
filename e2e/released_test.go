package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
)

// releasedCode is code whose catalog, file and plug-in say which version they are of.
func releasedCode(t *testing.T, word string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range map[string]string{
		"manifests/site.pp": `
file { "${facts['scratch']}/said": content => "` + word + `\n" }
file { "${facts['scratch']}/sent": source => 'puppet:///modules/said/sent' }
file { "${facts['scratch']}/plugged": content => "${facts['plugged']}\n" }
`,
		"modules/said/files/sent":            "file of " + word + "\n",
		"modules/said/lib/facter/plugged.rb": "Facter.add(:plugged) { setcode { 'plug-in of " + word + "' } }\n",
	} {
		write(t, filepath.Join(dir, path), text)
	}
	return dir
}

// versionOf deploys code and returns the version.
func versionOf(t *testing.T, s *server, dir string) string {
	t.Helper()
	return decode[api.Version](t, s, "code", "deploy", "production", dir).ID
}

// A stock agent in released mode has what was released to its node, with the files and
// plug-ins of that version, whatever is deployed; when the next catalog is released it has that.
func TestAStockAgentHasWhatWasReleased(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all", "--compile-patience", "30s")
	versionOf(t, s, releasedCode(t, "one"))
	a := newAgent(t, s, "held.test")
	says := func(what, word string) {
		t.Helper()
		same(t, what, map[string]string{"said": word + "\n", "sent": "file of " + word + "\n", "plugged": "plug-in of " + word + "\n"}, a.tree(t, "."))
	}
	a.run(t, 2)
	says("in live mode", "one")
	s.tutti(t, "catalog", "mode", a.name, "released")
	a.run(t, 0)

	two := versionOf(t, s, releasedCode(t, "two"))
	a.run(t, 0)
	says("with other code deployed", "one")
	write(t, filepath.Join(a.scratch, "sent"), "by hand\n") // its content is fetched again, of the older version
	a.run(t, 2)
	says("mended", "one")
	contains(t, s.tutti(t, "node", "show", a.name), "released, generation 1", "current: applied")

	contains(t, s.tutti(t, "catalog", "release", a.name, "--version", two[:12], "--why", "reviewed"), "released")
	contains(t, s.tutti(t, "node", "show", a.name), "generation 2", "behind")
	a.run(t, 2)
	if got := a.read(t, "said") + a.read(t, "sent"); got != "two\nfile of two\n" {
		t.Errorf("after the release: %q", got)
	}
	contains(t, s.tutti(t, "catalog", "generations", a.name), "2 (applied)", "reviewed")
}

// An agent whose node has no released catalog is told so, and goes on with what it kept.
func TestAStockAgentWithoutARelease(t *testing.T) {
	begin(t, 30)
	s := startServer(t, "--autosign", "all", "--delivery-mode", "released", "--compile-patience", "30s")
	version := versionOf(t, s, releasedCode(t, "one"))
	a := newAgent(t, s, "new.test")
	out := a.run(t, 1)
	contains(t, out, "is in released mode and no catalog was released to it yet; release one: tutti catalog release "+a.name+" --version")
	s.tutti(t, "catalog", "release", a.name, "--version", version)
	a.run(t, 2)
	if got := a.read(t, "said"); got != "one\n" {
		t.Errorf("after the release: %q", got)
	}
	if facts := s.tutti(t, "node", "facts", a.name); !strings.Contains(facts, "scratch") {
		t.Errorf("facts are not stored: %s", facts)
	}
}
