package e2e_test

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
)

// Every command of the page about code, with a real agent that gets what was decrypted. Keys are the user's that code runs as,
// and no others may read them.
func TestThePageAboutCode(t *testing.T) {
	begin(t, 90)
	for _, program := range []string{"eyaml", "r10k"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: make test-deps", err)
		}
	}
	if os.Geteuid() != 0 {
		t.Fatal("only root can have code run as another user: run the tests as root")
	}
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	keys, gems, compiles := filepath.Join(dir, "eyaml"), filepath.Join(dir, "gems"), otherUser(t)
	settings := "compile_user: " + compiles + "\n"
	text, err := os.ReadFile(filepath.Join(docs, "code.md"))
	if err != nil {
		t.Fatal(err)
	}
	few := filepath.Join(dir, "few") // some of Debian's modules lie under names that are not theirs
	write(t, filepath.Join(few, "README"), "")
	for _, module := range []string{"stdlib", "apt"} {
		if err := os.Symlink("/usr/share/puppet/modules/"+module, filepath.Join(few, module)); err != nil {
			t.Fatal(err)
		}
	}
	page := strings.NewReplacer( // the page's places are not the test's to write to
		"--base-module-path /usr/share/puppet/modules", "--base-module-path "+few,
		"/etc/puppetlabs/puppet/eyaml", keys,
		"/opt/puppet-gems", gems,
		"chgrp -R tutti-compile", "chgrp -R "+groupOf(t, compiles),
	).Replace(string(text))
	for block := range strings.SplitSeq(page, "```yaml\n") {
		if yaml, _, ok := strings.Cut(block, "```"); ok && strings.HasPrefix(yaml, "compile_") {
			settings += yaml
		}
	}
	if strings.Count(settings, "production:"+dir) != 2 {
		t.Fatalf("the page has not the settings that it had:\n%s", settings)
	}
	repo := filepath.Join(dir, "control-repo")
	write(t, filepath.Join(dir, "server.yaml"), settings)
	write(t, filepath.Join(repo, "manifests/site.pp"), "node default {}\n")
	write(t, filepath.Join(repo, "data/common.yaml"), "--- {}\n")
	gem(t, dir, gems)
	if err := os.Mkdir(keys, 0o755); err != nil { // the server reads where its settings lead when it starts
		t.Fatal(err)
	}
	s := newServer(dir, "--config", filepath.Join(dir, "server.yaml"), "--autosign", "all", "--compile-patience", "60s", "--reuse-check", "0").startFor(t)

	_, page, _ = strings.Cut(page, "Every command of this page is run by a test.")
	environments, page, _ := strings.Cut(page, "### From a Puppetfile")
	s.followsText(t, dir, "code.md", environments)
	motd := repository(t, map[string]string{
		"manifests/init.pp": "class motd {}\n",
		"metadata.json":     `{"name":"example-motd","version":"1.0.0","author":"x","license":"x","summary":"x","source":"x","dependencies":[]}`,
	})
	write(t, filepath.Join(repo, "Puppetfile"), "mod 'example/motd', git: 'file://"+motd+"', branch: 'main'\n")
	modules, page, _ := strings.Cut(page, "## Gems")
	s.followsText(t, dir, "code.md", modules)

	write(t, filepath.Join(repo, "modules/words/lib/puppet/functions/words/of.rb"),
		"Puppet::Functions.create_function(:'words::of') { def of; require 'granted'; GRANTED; end }\n")
	write(t, filepath.Join(repo, "manifests/site.pp"), `file { "${facts['scratch']}/db.conf": content => Sensitive("password ${lookup('db::password')}\n") }`+"\n")
	write(t, filepath.Join(repo, "hiera.yaml"), strings.NewReplacer("KEYS", keys).Replace(`version: 5
hierarchy:
  - name: secrets
    lookup_key: eyaml_lookup_key
    path: secrets.eyaml
    options:
      pkcs7_private_key: KEYS/private_key.pkcs7.pem
      pkcs7_public_key: KEYS/public_key.pkcs7.pem
`))
	s.followsText(t, dir, "code.md", page)
	a := newAgent(t, s, "eyaml.test")
	a.run(t, 2)
	same(t, "what was decrypted", map[string]string{"db.conf": "password geheim\n"}, a.tree(t, "."))

	// The gem of the setting, and without the group's right to read it, no key.
	write(t, filepath.Join(repo, "manifests/site.pp"), "file { \"${facts['scratch']}/gem\": content => words::of() }\n")
	s.tutti(t, "code", "deploy", "production", repo, "--follow-links")
	a.run(t, 2)
	same(t, "what the gem says", map[string]string{"db.conf": "password geheim\n", "gem": "granted"}, a.tree(t, "."))
	if err := os.Chmod(filepath.Join(keys, "private_key.pkcs7.pem"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(repo, "manifests/site.pp"), "notice(lookup('db::password'))\n")
	r := s.try(t, "code", "deploy", "production", repo, "--follow-links")
	if r.code != 4 || !strings.Contains(r.err, "Permission denied") || !strings.Contains(r.err, "private_key.pkcs7.pem") {
		t.Errorf("a key that cannot be read: exit code %d\n%s", r.code, r.text())
	}
}

// otherUser is a user whom code can run as.
func otherUser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"tutti-compile", "nobody"} {
		if _, err := user.Lookup(name); err == nil {
			return name
		}
	}
	t.Fatal("there is neither tutti-compile nor nobody")
	return ""
}

func groupOf(t *testing.T, name string) string {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return u.Gid
}

// gem installs a gem into a directory, as `gem install --install-dir` does, from a file that is made here.
func gem(t *testing.T, dir, into string) {
	t.Helper()
	write(t, filepath.Join(dir, "granted/lib/granted.rb"), "GRANTED = 'granted'\n")
	write(t, filepath.Join(dir, "granted/granted.gemspec"),
		"Gem::Specification.new { |s| s.name = 'granted'; s.version = '1.0'; s.summary = 'x'; s.authors = ['x']; s.files = ['lib/granted.rb'] }\n")
	for _, args := range [][]string{{"build", "granted.gemspec"}, {"install", "--local", "--no-document", "--install-dir", into, "granted-1.0.gem"}} {
		cmd := exec.CommandContext(t.Context(), "gem", args...)
		cmd.Dir = filepath.Join(dir, "granted")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("gem %v: %v\n%s", args, err, out)
		}
	}
}

// repository is a git repository with one commit.
func repository(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	committed(t, dir)
	return dir
}

// committed makes a repository of a directory.
func committed(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch", "main"},
		{"config", "user.name", "reader"},
		{"config", "user.email", "reader@example.test"},
		{"add", "--all"},
		{"commit", "--quiet", "--message", "first"},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
