package e2e_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The service of packaging/systemd is one for systemd, and leaves the server what cells need: without one of
// its capabilities, a strict server would not start.
func TestTheServiceStartsTheServer(t *testing.T) {
	begin(t)
	const path = "../packaging/systemd/tutti-server.service"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	unit := filepath.Join(dir, "tutti-server.service")
	write(t, unit, strings.ReplaceAll(string(text), "/usr/bin/tutti", binary))
	dropIn, err := os.ReadFile("../packaging/systemd/tutti-server.service.d/unprivileged.conf")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "elsewhere", filepath.Base(unit)), strings.ReplaceAll(string(text), "/usr/bin/tutti", binary))
	write(t, filepath.Join(dir, "elsewhere", filepath.Base(unit)+".d", "unprivileged.conf"), string(dropIn))
	madeUsers(t, string(text), string(dropIn))
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", unit,
		filepath.Join(dir, "elsewhere", filepath.Base(unit))).CombinedOutput()
	if err != nil || strings.Contains(string(out), "tutti-server") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	var kept []string
	arguments := ""
	for line := range strings.Lines(string(text)) {
		if names, ok := strings.CutPrefix(line, "CapabilityBoundingSet="); ok {
			kept = strings.Fields(names)
		}
		if command, ok := strings.CutPrefix(line, "ExecStart=/usr/bin/tutti server "); ok {
			arguments = command
		}
	}
	if len(kept) == 0 || !strings.Contains(arguments, "--compile-isolation strict") {
		t.Fatalf("the service has capabilities %v and starts the server with %q", kept, arguments)
	}
	newServer(dir).follows(t, dir, "service.md")
	if os.Geteuid() != 0 {
		t.Fatal("only root can try the service's capabilities: run the tests as root")
	}
	if r := checkedWith(t, kept); r.code != 0 || !strings.Contains(r.out, "lack nothing") {
		t.Errorf("with what the service keeps: %d\n%s", r.code, r.text())
	}
	startsWhereOnlyRootMayPass(t)
	if r := checkedAsNobody(t); r.code != 0 || strings.Contains(r.out, "broken ") {
		t.Errorf("as the drop-in has it, without privileges: %d\n%s", r.code, r.text())
	}
	for i, name := range kept {
		switch name {
		case "CAP_DAC_OVERRIDE", "CAP_KILL", "CAP_SYS_PTRACE", "CAP_SETPCAP":
			continue // to clear up, to end, and to leave nothing inside: a start does without
		}
		without := append(append([]string{}, kept[:i]...), kept[i+1:]...)
		if r := checkedWith(t, without); r.code == 0 && strings.Contains(r.out, "lack nothing") {
			t.Errorf("%s is not needed", name)
		}
	}
}

// startsWhereOnlyRootMayPass starts a strict server whose data are not below /tmp, which cells hide anyway, but where only root may
// pass, as in /var/lib/tutti: code runs as another user there.
func startsWhereOnlyRootMayPass(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tutti-service-") //nolint:usetesting // not below /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // as /var/lib is: the data directory in it is the server's alone
		t.Fatal(err)
	}
	s := newServer(dir, "--compile-isolation", "strict", "--compile-user", "nobody").startFor(t)
	if log := s.logText(); !strings.Contains(log, "code runs in cells") || !strings.Contains(log, "user=nobody") {
		t.Errorf("the server's log: %s", log)
	}
}

// madeUsers tries packaging/sysusers.d: it makes whom the service and its drop-in name, and whom code is run as.
func madeUsers(t *testing.T, units ...string) {
	t.Helper()
	path, err := filepath.Abs("../packaging/sysusers.d/tutti.conf")
	if err != nil {
		t.Fatal(err)
	}
	r := execute(t, cleanEnv(), time.Minute, "systemd-sysusers", "--dry-run", "--root="+t.TempDir(), path)
	wanted := []string{"tutti-compile"}
	for _, text := range units {
		for line := range strings.Lines(text) {
			if name, ok := strings.CutPrefix(line, "User="); ok {
				wanted = append(wanted, strings.TrimSpace(name))
			}
		}
	}
	if len(wanted) != 2 {
		t.Errorf("the units name the users %v, want one besides that of compiled code", wanted)
	}
	for _, name := range wanted {
		if !strings.Contains(r.text(), "Creating user '"+name+"'") {
			t.Errorf("systemd-sysusers does not make %s: %d\n%s", name, r.code, r.text())
		}
	}
}

// checkedAsNobody asks a strict server that has another user and no capability whether it would start.
func checkedAsNobody(t *testing.T) result {
	t.Helper()
	data := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(data), 0o711), os.Chmod(data, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	return execute(t, cleanEnv(), time.Minute, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set", "-all", "--no-new-privs",
		binary, "server", "--check-config", "--data", data, "--listen", "127.0.0.1:0", "--compile-isolation", "strict")
}

// checkedWith asks a strict server with these capabilities whether it would start.
func checkedWith(t *testing.T, capabilities []string) result {
	t.Helper()
	set := "-all"
	for _, name := range capabilities {
		set += ",+" + strings.ToLower(strings.TrimPrefix(name, "CAP_"))
	}
	return execute(t, cleanEnv(), time.Minute, "setpriv", "--bounding-set", set, "--no-new-privs", binary, "server", "--check-config",
		"--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--compile-user", "nobody", "--compile-isolation", "strict")
}
