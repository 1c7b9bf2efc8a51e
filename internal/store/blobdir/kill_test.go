package blobdir

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fleet"
)

// writerEnv names the directory for a process that only writes blobs.
const writerEnv = "BLOBFS_TEST_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		writeForever(dir)
	}
	os.Exit(m.Run())
}

// writeForever says on standard output what it was told to be stored.
func writeForever(dir string) {
	s, err := Open(dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		d, _, err := s.Put(context.Background(), strings.NewReader(strings.Repeat(fmt.Sprintln(i), 1000)))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(d)
	}
}

func TestKilledWriterLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stored := readDigests(t, out, 30, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	s := open(t, dir) // the lock went with the process
	for _, d := range stored {
		if _, err := cas.Bytes(t.Context(), s, d, 1<<20); err != nil {
			t.Errorf("%s was acknowledged: %v", d, err)
		}
	}
	if entries, err := os.ReadDir(s.tmpDir()); err != nil || len(entries) != 0 {
		t.Errorf("left in tmp: %v, %v", entries, err)
	}
}

// readDigests reads all digests and calls kill after the first n.
func readDigests(t *testing.T, out interface{ Read([]byte) (int, error) }, n int, kill func()) []fleet.Digest {
	t.Helper()
	var ds []fleet.Digest
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		d, err := fleet.ParseDigest(lines.Text())
		if err != nil {
			break // the last line may be cut
		}
		if ds = append(ds, d); len(ds) == n {
			kill()
		}
	}
	if len(ds) < n {
		t.Fatalf("the writer gave up after %d blobs: %s", len(ds), lines.Text())
	}
	return ds
}
