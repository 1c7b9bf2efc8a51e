package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clockAhead is the environment variable that says by how many seconds the clock of a skewed program is ahead.
const clockAhead = "TEST_CLOCK_AHEAD"

// buildSkewed makes a tutti whose clock may be off. It is the same source: only its standard library takes the time of day from another clock, as it
// would on a machine whose clock is off. That compiles all of it anew; TUTTI_SKEWED_BINARY is one that was built like this before.
// Preloading a library, as for other programs, does nothing to a Go program.
func buildSkewed(t *testing.T) string {
	t.Helper()
	if built := os.Getenv("TUTTI_SKEWED_BINARY"); built != "" {
		return built
	}
	root := strings.TrimSpace(execute(t, os.Environ(), time.Minute, "go", "env", "GOROOT").out)
	clock := filepath.Join(root, "src/time/time.go")
	text, err := os.ReadFile(clock)
	const read = "\tsec, nsec, mono := runtimeNow()\n"
	if err != nil || strings.Count(string(text), read) != 1 {
		t.Fatalf("this Go reads its clock otherwise (%v)", err)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "time.go"), strings.Replace(string(text), read, read+"\tsec += ahead\n", 1))
	writeFile(t, filepath.Join(dir, "ahead.go"), fmt.Sprintf(`package time

import "syscall"

var ahead = func() int64 {
	text, _ := syscall.Getenv(%q)
	seconds, err := atoi(text)
	if err != nil {
		return 0
	}
	return int64(seconds)
}()
`, clockAhead))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		clock: filepath.Join(dir, "time.go"), filepath.Join(root, "src/time/ahead.go"): filepath.Join(dir, "ahead.go"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "overlay.json"), string(overlay))
	path := filepath.Join(dir, "tutti")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-trimpath", "-overlay", filepath.Join(dir, "overlay.json"),
		"-o", path, "../cmd/tutti")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(errors.Join(err, errors.New(string(out))))
	}
	return path
}
