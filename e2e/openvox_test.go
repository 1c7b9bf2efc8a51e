package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// packaged writes a program that runs tutti where the packages of Puppet and OpenVox put their files: files are below /opt, which only it sees. Ruby is the
// machine's, and its Puppet says what openvox.rb says.
func packaged(t *testing.T, says string) (program string) {
	t.Helper()
	interpreter, err := exec.LookPath("ruby")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	opt := filepath.Join(dir, "opt")
	install := func(path, text string) {
		t.Helper()
		path = filepath.Join(opt, "puppetlabs", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		programtest.Write(t, path, text)
		if err := os.Chmod(path, 0o755); err != nil { // compilers run as somebody else
			t.Fatal(err)
		}
	}
	install("puppet/lib/openvox.rb", says)
	install("puppet/bin/ruby", "#!/bin/sh\nexec "+interpreter+" -r /opt/puppetlabs/puppet/lib/openvox.rb \"$@\"\n")
	install("puppet/bin/puppet", "#!/bin/sh\nexec /opt/puppetlabs/puppet/bin/ruby -S puppet \"$@\"\n")
	if err := os.MkdirAll(filepath.Join(opt, "puppetlabs/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../puppet/bin/puppet", filepath.Join(opt, "puppetlabs/bin/puppet")); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "tutti")
	programtest.Write(t, program, `#!/bin/sh
exec unshare --mount --propagation private sh -c 'mount --bind "$1" /opt && shift && exec "$@"' sh `+opt+` `+binary+` "$@"
`)
	return program
}

// OpenVox puts its files where Puppet does: the server finds its compiler there, the agent its agent, and code is told whose compiler it is.
func TestOpenVoxIsFoundWhereItsPackagesPutIt(t *testing.T) {
	begin(t, 40)
	program := packaged(t, "module Puppet\n  @puppet_version = '8.28.1'\n  def self.implementation = 'openvox'\nend\n")
	s := newServer(t.TempDir(), "--autosign", "all", "--compile-patience", "60s", "--max-load", "0")
	s.program = program
	checked := execute(t, cleanEnv(), patience, program, "server", "--check-config", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0")
	if !regexp.MustCompile(`engine puppetlabs: openvox 8\.28\.1 with Ruby [0-9.]+, /opt/puppetlabs/puppet/bin/ruby \(default\)`).MatchString(checked.text()) {
		t.Errorf("the check of the machine says: %d\n%s", checked.code, checked.text())
	}
	s.startFor(t)
	found := map[string]string{}
	for _, e := range decode[api.List[api.Engine]](t, s, "engine", "list").Items {
		found[e.Name] = strings.Trim(e.By+" "+e.Interpreter, " ")
		if e.Default != (e.Name == "puppetlabs") {
			t.Errorf("the default is not the packages' engine: %+v", e)
		}
	}
	same(t, "puppetlabs", "openvox /opt/puppetlabs/puppet/bin/ruby", found["puppetlabs"])
	contains(t, s.tutti(t, "engine", "list"), "openvox 8.28.1")

	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests/site.pp"), `notify { 'told': message => {
  'by' => "${server_facts['serverimplementation']} ${serverimplementation} ${serverversion}", 'all' => ($server_facts.keys - ['serverip6']).join(' '),
} }
`)
	s.tutti(t, "code", "deploy", "--no-check", "openvox", dir)
	s.tutti(t, "code", "deploy", "--no-check", "machines", dir, "--engine", "system")
	n := enrol(t, s, "told.test")
	own := strings.TrimSpace(execute(t, cleanEnv(), patience, "puppet", "--version").out)
	for environment, want := range map[string]map[string]string{
		"openvox":  {"by": "openvox openvox 8.28.1", "all": "serverimplementation serverversion servername serverip environment"},
		"machines": {"by": "  " + own, "all": "serverversion servername serverip environment"},
	} {
		answer, err := n.catalog(environment, nil)
		if err != nil || answer.status != http.StatusOK {
			t.Fatalf("%s: %v: %d %s", environment, err, answer.status, answer.body)
		}
		var catalog struct {
			Resources []struct {
				Title      string
				Parameters struct{ Message map[string]string }
			}
		}
		if err := json.Unmarshal([]byte(answer.body), &catalog); err != nil {
			t.Fatal(err)
		}
		for _, r := range catalog.Resources {
			if r.Title == "told" {
				same(t, environment, want, r.Parameters.Message)
			}
		}
		contains(t, answer.body, `"title":"told"`)
	}

	d := joinNode(t, s, "doctored.test")
	contains(t, execute(t, cleanEnv(), patience, program, "agent", "doctor", "--dir", d.dir).out, "ok       puppet: /opt/puppetlabs/bin/puppet is 8.28.1")
}

// Half of a package is there: a server that would compile with it says so before it starts, and compiles what names another engine.
func TestHalfAPackageIsNoEngine(t *testing.T) {
	begin(t, 20)
	program := packaged(t, "raise LoadError, 'cannot load such file -- openssl'\n")
	check := []string{"server", "--check-config", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0"}
	half := execute(t, cleanEnv(), patience, program, check...)
	if half.code == 0 {
		t.Errorf("it would start: %s", half.text())
	}
	contains(t, half.text(), "engine puppetlabs: /opt/puppetlabs/puppet/bin/ruby does not say which Puppet it has", "cannot load such file -- openssl")
	other := execute(t, cleanEnv(), patience, program, append(check, "--engine", "system")...)
	contains(t, other.text(), "engine system: puppet ", "(default)", "engine puppetlabs: not used: ")

	s := newServer(t.TempDir(), "--autosign", "all", "--compile-patience", "60s", "--max-load", "0", "--engine", "system")
	s.program = program
	s.startFor(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests/site.pp"), "notify { 'compiled': }\n")
	s.tutti(t, "code", "deploy", "production", dir)
	if answer, err := enrol(t, s, "whole.test").catalog("production", nil); err != nil || answer.status != http.StatusOK {
		t.Errorf("%v: %d %s", err, answer.status, answer.body)
	}
	if refused := s.try(t, "code", "deploy", "half", dir, "--engine", "puppetlabs"); refused.code == 0 {
		t.Errorf("a deploy for it is taken: %s", refused.text())
	} else {
		contains(t, refused.text(), "/opt/puppetlabs/puppet/bin/ruby does not say which Puppet it has")
	}
}
