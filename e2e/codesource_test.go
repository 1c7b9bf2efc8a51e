package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
)

// A directory whose modules are Debian's is refused with the way out; followed, a real agent has what the module gives.
func TestLinksOutOfTheDirectory(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s", "--reuse-check", "0")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests/site.pp"), "file { \"${facts['scratch']}/out\": content => join(suffix(['a', 'b'], '!')) }\n")
	if err := os.MkdirAll(filepath.Join(dir, "modules"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/share/puppet/modules/stdlib", filepath.Join(dir, "modules/stdlib")); err != nil {
		t.Fatal(err)
	}
	r := s.try(t, "code", "deploy", "production", dir)
	for _, want := range []string{
		"1 link leads out of the environment",
		"modules/stdlib leads to /usr/share/puppet/modules/stdlib, that is /usr/share/puppet/modules.available/puppetlabs-stdlib",
		"--follow-links", "--base-module-path",
	} {
		if r.code != 2 || !strings.Contains(r.err, want) {
			t.Errorf("exit code %d, without %q:\n%s", r.code, want, r.err)
		}
	}
	r = s.try(t, "code", "deploy", "production", dir, "--follow-links", "-o", "json")
	if r.code != 0 || !strings.Contains(r.err, "modules/stdlib is a copy of /usr/share/puppet/modules.available/puppetlabs-stdlib: ") {
		t.Fatalf("exit code %d\n%s", r.code, r.text())
	}
	answer := decodeText[struct {
		Copied []struct {
			Path, From string
			Files      int
		} `json:"copied_links"`
	}](t, r.out)
	if len(answer.Copied) != 1 || answer.Copied[0].Files < 100 {
		t.Errorf("copied: %+v", answer.Copied)
	}
	a := newAgent(t, s, "links.test")
	a.run(t, 2)
	same(t, "what the copied module gives", map[string]string{"out": "a!b!"}, a.tree(t, "."))

	// A repository's links are never followed, whoever asks.
	committed(t, dir)
	r = s.try(t, "code", "deploy", "production", "file://"+dir+"@main", "--follow-links")
	if r.code != 2 || !strings.Contains(r.err, "a link in a repository could name any file of this machine") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	r = s.try(t, "code", "deploy", "production", "file://"+dir+"@main")
	if r.code != 2 || !strings.Contains(r.err, "clone the repository and deploy the directory with --follow-links") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

// A deploy says which modules nobody fetched, and that it made an environment whose name looks like another one's.
func TestWhatADeployAnnounces(t *testing.T) {
	begin(t, 60)
	s := startServer(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "Puppetfile"),
		"mod 'puppetlabs/stdlib', '9.4.1'\nmod 'puppetlabs/apt',\n  git: 'https://git.example.test/apt.git'\nmod 'own/web'\n")
	write(t, filepath.Join(dir, "modules/web/manifests/init.pp"), "class web {}\n")
	r := s.try(t, "code", "deploy", "production", dir)
	for _, want := range []string{
		"warning: 2 modules of the Puppetfile are not there: puppetlabs/stdlib, puppetlabs/apt. Run `r10k puppetfile install` (or `g10k -puppetfile`) in " + dir +
			", then deploy that directory again",
		"production is a new environment",
	} {
		if r.code != 0 || !strings.Contains(r.err, want) {
			t.Errorf("exit code %d, without %q:\n%s", r.code, want, r.text())
		}
	}
	if strings.Contains(r.err, "Did you mean") {
		t.Errorf("there is no other environment:\n%s", r.err)
	}
	if r = s.try(t, "code", "deploy", "production", dir); strings.Contains(r.err, "new environment") {
		t.Errorf("it is there by now:\n%s", r.err)
	}
	r = s.try(t, "code", "deploy", "Production", dir)
	want := "There is also production, which was not touched. Did you mean production? `tutti code delete Production` takes the new one away"
	if r.code != 0 || !strings.Contains(r.err, want) {
		t.Errorf("exit code %d, without %q:\n%s", r.code, want, r.text())
	}
	type answer struct {
		api.Deployed
		Near     []string `json:"similar_environments"`
		Warnings []string
	}
	got := decode[answer](t, s, "code", "deploy", "prodction", dir)
	if !got.NewEnvironment || len(got.Near) != 2 || len(got.Warnings) != 1 || !strings.HasPrefix(got.Warnings[0], "2 modules of the Puppetfile are not there") {
		t.Errorf("%+v", got)
	}
	for _, branch := range []string{"feature_12", "feature_13"} {
		if got := decode[answer](t, s, "code", "deploy", branch, dir); !got.NewEnvironment || len(got.Near) != 0 {
			t.Errorf("%s: %+v", branch, got)
		}
	}
	// The modules that are missing are said beside the mistakes that they cause.
	write(t, filepath.Join(dir, "manifests/site.pp"), "class {\n")
	r = s.try(t, "code", "deploy", "production", dir, "-o", "json")
	if refused := decodeText[answer](t, r.out); r.code != 4 || len(refused.Warnings) != 1 {
		t.Errorf("exit code %d\n%s", r.code, r.text())
	}
}
