package e2e_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// aloneIn is the environment variable by which a story knows that it has a network, mounts and processes of its own.
const aloneIn = "TUTTI_E2E_ALONE"

// alone has a story told again by a process in namespaces of its own, all of which end with it, and says whether this is that process. So a story may
// cut links and fill disks, whatever else is told at the same time.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneIn) == t.Name() {
		return true
	}
	if os.Geteuid() != 0 {
		t.Fatal("this story has a network of its own, which needs root: sudo -E go test ./e2e; in a container: docker run --privileged")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child",
		self, "-test.run=" + exactly([]string{t.Name()}), "-test.skip=^$", "-test.count=1", "-test.v",
	}
	if deadline, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+(time.Until(deadline)-time.Second).String())
	}
	cmd := exec.CommandContext(t.Context(), "unshare", args...)
	cmd.Env = append(os.Environ(), aloneIn+"="+t.Name(), "TUTTI_BINARY="+raced(t))
	says, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(says)
	lines.Buffer(nil, 16<<20)
	told := false
	for lines.Scan() { // marked, so that nobody takes its results for others of this process
		_, _ = fmt.Fprintln(t.Output(), "|", lines.Text())
		told = told || strings.HasPrefix(lines.Text(), "--- PASS: "+t.Name()+" ")
	}
	if err := cmd.Wait(); err != nil || !told {
		t.Errorf("told alone, the story passes: %t; it ends with: %v", told, err)
	}
	return false
}
