package e2e_test

import (
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
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
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

// checkedWith asks a strict server with these capabilities whether it would start.
func checkedWith(t *testing.T, capabilities []string) result {
	t.Helper()
	set := "-all"
	for _, name := range capabilities {
		set += ",+" + strings.ToLower(strings.TrimPrefix(name, "CAP_"))
	}
	return execute(t, cleanEnv(), time.Minute, "setpriv", "--bounding-set", set, "--no-new-privs", binary, "server", "--check-config", "--data", t.TempDir(),
		"--compile-user", "nobody", "--compile-isolation", "strict")
}
