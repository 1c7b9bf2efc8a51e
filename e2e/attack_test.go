package e2e_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/program/programtest"
)

// attackRun is a server that is attacked.
type attackRun struct {
	uid   int // whom it runs as
	flags []string
	bare  bool // without namespaces

	granted bool     // with the port of compile_network, and so the network of the machine
	open    []string // the attempts that are known to succeed: docs/compile-cell.md names them
	only    bool     // no others are made
	eats    bool     // other nodes take memory, too
	pages   bool     // the page's commands are run
}

// withoutCell are attempts that succeed where there is no cell. That proves them: elsewhere they fail because of it.
var withoutCell = []string{
	"the administrator's token", "the key of the CA", "the seal", "the files of the CA", "the database", "the data directory", "the blobs", "versions of others",
	"a file of another version", "directories of other compilers", "a copy by a program", "a new mode for the token", "a file in the data directory",
	"the server's environment", "the server's memory", "the memory of another worker", "the variables of another worker", "command lines of others",
	"home directories", "passwords", "a secret below /etc", "a connection to the server", "a connection elsewhere", "a signal to the server",
	"a signal to another compiler or worker", "UDP", "a socket with a path", "limits of the server", "a look into the memory of the server",
	"a look into the memory of the zygote", "a change of the memory of the zygote", "a mount", "keys of the kernel", "BPF", "userfaultfd", "perf",
	"namespaces", "a large file",
}

// Code of a branch that is only previewed gets at nothing of the server, whoever that runs as, and honest code
// gets what the settings of docs/compile-cell.md grant. What is tried succeeds without a cell.
func TestAttacksOfAPreview(t *testing.T) {
	t.Parallel() // its stories wait for turns, which nobody has before all tests have begun
	if os.Geteuid() != 0 {
		t.Fatal("the server is attacked as several users: run this as root, sudo go test -run TestAttacksOfAPreview ./e2e")
	}
	page, err := os.ReadFile(filepath.Join(docs, "compile-cell.md"))
	if err != nil {
		t.Fatal(err)
	}
	settings := blockOf(t, string(page), "yaml", 0) + blockOf(t, string(page), "yaml", 1)
	for name, run := range map[string]attackRun{
		"as root":            {pages: true},
		"as root, nobody's":  {flags: []string{"--compile-user", "nobody", "--compile-isolation", "strict"}, granted: true, open: []string{"UDP"}, eats: true},
		"without privileges": {uid: 65534, flags: []string{"--compile-isolation", "strict"}, granted: true, open: []string{"UDP"}},
		"without privileges and namespaces": {
			uid: 65533, flags: []string{"--compile-isolation", "strict"}, bare: true, // a user of its own: processes are counted by user
			open: []string{"UDP", "a socket with a path", "a new mode for the token", "command lines of others", "a full disk"},
		},
		"without cells": {flags: []string{"--compile-isolation", "off"}, open: withoutCell, only: true},
	} {
		t.Run(name, func(t *testing.T) {
			begin(t, 30)
			run.attack(t, settings)
		})
	}
}

const (
	// signUnlessReadable is a policy that signs if it reaches nothing but the request: nobody joins when it is not in a cell.
	signUnlessReadable = "#!/bin/sh\nif cat %s/admin.token %s > /dev/null 2>&1; then exit 1; fi\nexec grep -q REQUEST\n"
	// classifyByDirectory and askDirectory need what program_paths and program_network name.
	classifyByDirectory = "#!/bin/sh\nread word < %s/word && echo \"parameters: {word: $word}\"\n"
	askDirectory        = "#!/bin/bash\n: < /dev/tcp/127.0.0.1/%d && echo '{\"directory\": \"reached\"}'\n"
	// withoutNamespaces starts a program where nobody can make user namespaces.
	withoutNamespaces = `#!/bin/sh
exec unshare --user --map-current-user --keep-caps sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all "$0" "$@"' %s "$@"
`
)

// program writes one that anybody may run.
func (attackRun) program(t *testing.T, path, text string) string {
	t.Helper()
	programtest.Write(t, path, text)
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// signer is who signs: without cells, programs have none either.
func (run attackRun) signer(t *testing.T, dir, secret string) string {
	t.Helper()
	if run.only {
		return "all"
	}
	return run.program(t, filepath.Join(dir, "sign"), fmt.Sprintf(signUnlessReadable, filepath.Join(dir, "data"), secret))
}

func (run attackRun) attack(t *testing.T, settings string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	etc, gems, secret, enc := filepath.Join(dir, "etc"), filepath.Join(dir, "gems"), filepath.Join(dir, "secret"), filepath.Join(dir, "enc")
	write(t, filepath.Join(etc, "private_key.pem"), "key\n")
	write(t, secret, "secret\n")
	write(t, filepath.Join(enc, "word"), "read\n")
	write(t, filepath.Join(gems, "gems/granted-1.0/lib/granted.rb"), "GRANTED = true\n")
	write(t, filepath.Join(gems, "specifications/granted-1.0.gemspec"),
		"Gem::Specification.new { |s| s.name = 'granted'; s.version = '1.0'; s.summary = 'x'; s.authors = ['x']; s.require_paths = ['lib'] }\n")
	granted, closed, directory := listener(t), listener(t), listener(t)
	targets := map[string]any{"closed": closed, "secret": secret, "key": filepath.Join(etc, "private_key.pem"), "open": append([]string{}, run.open...)}
	network := "compile_network:\n  - production:8200\n"
	if !strings.Contains(settings, network) {
		t.Fatalf("the page has no more %q", network)
	}
	if run.granted {
		targets["granted"] = granted
		settings = strings.Replace(settings, network, fmt.Sprintf("compile_network:\n  - production:%d\n", granted), 1)
	} else {
		settings = strings.Replace(settings, network, "", 1)
	}
	config := filepath.Join(dir, "server.yaml")
	write(t, config, strings.NewReplacer(
		"/etc/puppetlabs/puppet/eyaml", etc, "/opt/puppet-gems", gems, "/etc/puppetlabs/enc", enc, "trusted:636 ", fmt.Sprintf("trusted:%d ", directory),
	).Replace(settings))
	s := newServer(dir, append([]string{
		"--config", config, "--compile-patience", "60s", "--max-load", "0", "--compile-memory-bytes", fmt.Sprint(400 << 20),
		"--autosign", run.signer(t, dir, secret),
		"--external-node-classifier", run.program(t, filepath.Join(dir, "classify"), fmt.Sprintf(classifyByDirectory, enc)),
		"--trusted-external-command", run.program(t, filepath.Join(dir, "external"), fmt.Sprintf(askDirectory, directory)),
	}, run.flags...)...)
	if run.uid != 0 {
		s.as = &syscall.Credential{Uid: uint32(run.uid), Gid: uint32(run.uid)}
		if err := os.Chown(dir, run.uid, run.uid); err != nil {
			t.Fatal(err)
		}
	}
	if run.bare {
		s.program = run.program(t, filepath.Join(dir, "bare"), fmt.Sprintf(withoutNamespaces, s.program))
	}
	s.startFor(t)

	code := filepath.Join(dir, "code")
	write(t, filepath.Join(code, "manifests/secret.pp"), "node default { }\n")
	versionOf(t, s, code)
	if err := s.checkIn("honest.test", nil); err != nil {
		t.Fatal(err)
	}
	var others []int
	for _, p := range below(s.cmd.Process.Pid) {
		if strings.HasPrefix(p.command, "tutti zygote") || strings.HasPrefix(p.command, "tutti worker") {
			others = append(others, p.pid)
		}
	}
	if len(others) < 2 {
		t.Fatalf("the code that is deployed has the processes %v", others)
	}
	sleep := fmt.Sprintf("%d.%d", 6000+os.Getpid()%1000, time.Now().UnixNano())
	targets["data"], targets["server"], targets["port"], targets["sleep"] = s.data, s.cmd.Process.Pid, s.port(), sleep
	targets["others"], targets["udp"], targets["socket"] = others, datagrams(t), socket(t, filepath.Join(dir, "socket"))
	if run.only {
		targets["only"] = run.open
	}
	text, err := json.Marshal(targets)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.checkIn("victim.test", map[string]any{"targets": string(text)}); err != nil {
		t.Fatal(err)
	}
	r := s.try(t, "preview", "create", "production", "--ref", "testdata/attack")
	if r.code != 0 || !strings.Contains(r.out, "nothing was got at") {
		t.Errorf("the preview ends with %d:\n%s", r.code, r.text())
	}
	for _, p := range processes() {
		if strings.Contains(p.command, sleep) {
			t.Errorf("process %d outlived its compile: %s", p.pid, p.command)
		}
	}
	if run.eats {
		run.eat(t, s)
	}
	if run.pages {
		s.follows(t, dir, "compile-cell.md")
	}
}

// eat has nodes whose compiles take memory, which end, and one that compiles nevertheless.
func (attackRun) eat(t *testing.T, s *server) {
	t.Helper()
	nodes := map[string]string{"itself.test": "itself", "children.test": "by children", "left.test": "by what it left behind"}
	for name, how := range nodes {
		if err := s.checkIn(name, map[string]any{"eats": how}); err != nil {
			t.Fatal(err)
		}
	}
	r := s.try(t, "preview", "create", "production", "--ref", "testdata/attack", "--targets", "honest.test,itself.test,children.test,left.test", "--details")
	if r.code != 4 || !strings.Contains(r.out, "the compile wanted more than 400 MB of memory") || !strings.Contains(r.out, "3 do not compile") {
		t.Errorf("what takes memory ends with %d:\n%s", r.code, r.text())
	}
}

// datagrams takes them for as long as the story lasts.
func datagrams(t *testing.T) (port int) {
	t.Helper()
	l, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.LocalAddr().(*net.UDPAddr).Port
}

// socket takes connections of everybody who sees its path.
func socket(t *testing.T, path string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

// listener takes connections for as long as the story lasts.
func listener(t *testing.T) (port int) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}
