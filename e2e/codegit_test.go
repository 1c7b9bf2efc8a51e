package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The page about code from git, with a repository on this machine; then what a push leads to: a refused mistake, a link that leads out.
func TestCodeFromGit(t *testing.T) {
	begin(t, 40)
	s := startServer(t)
	dir := t.TempDir()
	repo := filepath.Join(dir, "control-repo")
	write(t, filepath.Join(repo, "manifests/site.pp"), "# first\n")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", repo}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "--quiet", "--initial-branch=production")
	git("config", "user.name", "Ann")
	git("config", "user.email", "ann@example.test")
	git("add", "-A")
	git("commit", "--quiet", "-m", "first")
	page, err := os.ReadFile(filepath.Join(docs, "code-from-git.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("$TUTTI_CA_FILE", filepath.Join(s.data, "ca", "ca_crt.pem"), "$TUTTI_SERVER", s.url).Replace(string(page))
	s.followsText(t, dir, "code-from-git.md", text)

	write(t, filepath.Join(repo, "manifests/site.pp"), "}\n")
	git("commit", "--quiet", "-a", "-m", "a mistake")
	r := s.try(t, "code", "source", "sync", "control", "--wait")
	if r.code != 4 || !strings.Contains(r.out, "manifests/site.pp:1") {
		t.Errorf("a mistake: exit code %d\n%s", r.code, r.text())
	}
	if r = s.try(t, "code", "source", "sync", "control", "--wait"); r.code != 4 || !strings.Contains(r.out, "manifests/site.pp:1") {
		t.Errorf("a mistake that a webhook deployed a moment ago: exit code %d\n%s", r.code, r.text())
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(repo, "manifests/passwd.pp")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(repo, "manifests/site.pp"), "# mended\n")
	git("add", "-A")
	git("commit", "--quiet", "--amend", "-m", "a link, and a forced push")
	r = s.try(t, "code", "source", "sync", "control", "--wait")
	if r.code != 4 || !strings.Contains(r.out, "manifests/passwd.pp leads to /etc/passwd") {
		t.Errorf("a link: exit code %d\n%s", r.code, r.text())
	}
	contains(t, s.tutti(t, "code", "list"), "production", "admin", "control-repo@production") // the page's last deploy, which the refused ones left there
	shown := s.tutti(t, "code", "source", "show", "control", "-o", "json")
	if secret, err := os.ReadFile(filepath.Join(dir, "secret")); err != nil || strings.Contains(shown, strings.TrimSpace(string(secret))) {
		t.Errorf("the secret is shown, %v", err)
	}
	s.tutti(t, "code", "source", "remove", "control", "--yes")
	contains(t, s.tutti(t, "code", "list"), "production")
}
