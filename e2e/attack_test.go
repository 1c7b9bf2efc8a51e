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

// Code of a branch that is only previewed gets at nothing of the server, whoever that runs as, and honest code
// gets what the settings of docs/compile-cell.md grant.
func TestAttacksOfAPreview(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docs, "compile-cell.md"))
	if err != nil {
		t.Fatal(err)
	}
	settings := blockOf(t, string(page), "yaml", 0)
	for name, run := range map[string]struct {
		uid   int
		flags []string
	}{
		"as root":            {},
		"as root, nobody's":  {flags: []string{"--compile-user", "nobody", "--compile-isolation", "strict"}},
		"without privileges": {uid: 65534, flags: []string{"--compile-isolation", "strict"}},
	} {
		t.Run(name, func(t *testing.T) {
			begin(t, 30)
			if os.Geteuid() != 0 && (run.uid != 0 || len(run.flags) == 0) {
				return // only root can be several users
			}
			attackServer(t, settings, run.uid, run.flags)
		})
	}
}

// signUnlessReadable is a policy that signs if it reaches nothing but the request: nobody joins when it is not in a cell.
const signUnlessReadable = "#!/bin/sh\nif cat %s/admin.token %s > /dev/null 2>&1; then exit 1; fi\nexec grep -q REQUEST\n"

func attackServer(t *testing.T, settings string, uid int, flags []string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	etc, gems, secret := filepath.Join(dir, "etc"), filepath.Join(dir, "gems"), filepath.Join(dir, "secret")
	write(t, filepath.Join(etc, "private_key.pem"), "key\n")
	write(t, secret, "secret\n")
	write(t, filepath.Join(gems, "gems/granted-1.0/lib/granted.rb"), "GRANTED = true\n")
	write(t, filepath.Join(gems, "specifications/granted-1.0.gemspec"),
		"Gem::Specification.new { |s| s.name = 'granted'; s.version = '1.0'; s.summary = 'x'; s.authors = ['x']; s.require_paths = ['lib'] }\n")
	granted, closed := listener(t), listener(t)
	config := filepath.Join(dir, "server.yaml")
	write(t, config, strings.NewReplacer(
		"/etc/puppetlabs/puppet/eyaml", etc, "/opt/puppet-gems", gems, "production:8200\n", fmt.Sprintf("production:%d\n", granted),
	).Replace(settings))
	sign := programtest.Write(t, filepath.Join(dir, "sign"), fmt.Sprintf(signUnlessReadable, filepath.Join(dir, "data"), secret))
	if err := os.Chmod(sign, 0o755); err != nil { // it is run as somebody else
		t.Fatal(err)
	}
	s := newServer(dir, append([]string{"--config", config, "--autosign", sign, "--compile-patience", "60s", "--max-load", "0"}, flags...)...)
	if uid != 0 {
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	s.startFor(t)

	code := filepath.Join(dir, "code")
	write(t, filepath.Join(code, "manifests/secret.pp"), "node default { }\n")
	s.tutti(t, "code", "deploy", "other", code)
	versionOf(t, s, code)
	sleep := fmt.Sprintf("%d.%d", 6000+os.Getpid()%1000, time.Now().UnixNano())
	targets, err := json.Marshal(map[string]any{
		"data": s.data, "server": s.cmd.Process.Pid, "port": s.port(), "closed": closed, "granted": granted, "secret": secret,
		"key": filepath.Join(etc, "private_key.pem"), "sleep": sleep,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.checkIn("victim.test", map[string]any{"targets": string(targets)}); err != nil {
		t.Fatal(err)
	}
	r := s.try(t, "preview", "create", "production", "--ref", "testdata/attack")
	if r.code != 0 || !strings.Contains(r.out, "nothing was got at") {
		t.Errorf("the preview ends with %d:\n%s", r.code, r.text())
	}
	s.follows(t, dir, "compile-cell.md")
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	for _, p := range processes() {
		if strings.Contains(p.command, sleep) {
			t.Errorf("process %d outlived the server: %s", p.pid, p.command)
		}
	}
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
