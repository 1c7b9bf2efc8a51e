package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/program/programtest"
)

// The tutorial, command by command, on three nodes whose Puppet is real: one goes first, one fails, and one is never touched. In
// the end all have the files of the release before.
func TestTheTutorial(t *testing.T) {
	begin(t, 180)
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s", "--max-load", "0", "--reuse-check", "0")
	dir := t.TempDir()
	repo := filepath.Join(dir, "control-repo")
	write(t, filepath.Join(repo, "environment.conf"), "modulepath = modules\n")
	write(t, filepath.Join(repo, "manifests/site.pp"), "include web\n")
	write(t, filepath.Join(repo, "modules/web/templates/site.conf.epp"), "listen 8080\nroot /srv/www\n")
	write(t, filepath.Join(repo, "modules/web/manifests/init.pp"), `class web {
  $root = $facts['scratch']
  file { 'site.conf':
    path         => "${root}/site.conf",
    content      => epp('web/site.conf.epp'),
    validate_cmd => "${root}/check-site %",
  }
}
`)
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch", "main"}, {"config", "user.name", "reader"}, {"config", "user.email", "reader@example.test"}, {"add", "--all"}, {"commit", "--quiet", "--message", "first"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", repo}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	versionOf(t, s, repo)
	nodes := map[string]scheduled{}
	for name, knows := range map[string]string{"web-1": "^bind\\|^listen", "web-2": "^listen", "web-3": "^listen"} {
		n := joinScheduled(t, s, name+".test", name, "--run-interval", "8760h", "--catalog-poll-interval", "1h")
		programtest.Write(t, filepath.Join(n.scratch, "check-site"), "#!/bin/sh\nexec grep -q '"+knows+"' \"$1\"\n")
		n.run(t, 2)
		n.start(t)
		nodes[name] = n
	}
	for _, n := range nodes {
		n.settled(t)
	}
	s.follows(t, dir, "tutorial.md")
	for name, n := range nodes {
		same(t, "the file of "+name, "listen 8080\nroot /srv/www\nkeepalive 65\n", n.read(t, "site.conf"))
	}
	if text, err := os.ReadFile(filepath.Join(docs, "tutorial.md")); err != nil || strings.Count(string(text), "\n$ ") < 25 {
		t.Errorf("the tutorial has few commands: %v", err)
	}
}
