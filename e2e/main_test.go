package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// binary is the tutti under test, shims a directory put first in PATH, and ruby what is put
// before the Ruby of real agents.
var binary, shims, ruby string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

// run builds the binary once, runs every story, and ends the shared server.
func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "e2e-binary-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, shims = filepath.Join(dir, "tutti"), filepath.Join(dir, "shims")
	if err := several3.choose(os.Getenv("TUTTI_E2E")); err != nil {
		return 1, err
	}
	if err := needs("puppet", "puppet-agent"); err != nil {
		return 1, err
	}
	if err := errors.Join(build(binary), os.Chmod(dir, 0o711)); err != nil { // some stories' servers are other users'
		return 1, err
	}
	if err := writeShims(); err != nil {
		return 1, err
	}
	// Much of a story is waiting; what costs is bounded by agents. Whose turn it is, queue says.
	queue.free = 2 * runtime.GOMAXPROCS(0)
	if several3.on {
		queue.free = runtime.GOMAXPROCS(0)
	}
	flag.Parse()
	if err := errors.Join(flag.Set("test.parallel", "1000"), chooseLength(), several3.leaveOut()); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, errors.Join(house.close(), several3.close())
}

// needs says which Debian package brings a program that is missing.
func needs(program, pkg string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is missing: apt-get install %s", program, pkg)
	}
	return nil
}

// build makes the program as `make build` does: what that compiled is used again. TUTTI_BINARY is one that is built, for where there is no Go.
func build(path string, more ...string) error {
	if built := os.Getenv("TUTTI_BINARY"); built != "" && len(more) == 0 {
		content, err := os.ReadFile(built)
		return errors.Join(err, os.WriteFile(path, content, 0o755))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	args := slices.Concat([]string{"build", "-buildvcs=false", "-o", path}, more)
	if len(more) == 0 {
		args = append(args, "-trimpath")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "../cmd/tutti")...)
	if len(more) == 0 {
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build tutti: %w\n%s", err, out)
	}
	return nil
}

// buildRaced makes the program with the race detector, once; in a run without the detector it is
// the same as all others.
var buildRaced = sync.OnceValues(func() (string, error) {
	if !raceEnabled {
		return binary, nil
	}
	path := binary + "-raced"
	args := []string{"-race"}
	for _, translated := range []string{"sqlite/lib", "libc", "memory"} { // as in the Makefile
		args = append(args, "-gcflags=modernc.org/"+translated+"=-race=false -d=checkptr=0")
	}
	return path, build(path, args...)
})

// raced is the program for stories in which much happens at the same time: its detector
// costs several times the CPU, and finds nothing where one waits for the other.
func raced(t *testing.T) string {
	t.Helper()
	path, err := buildRaced()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// writeShims stands in for augparse, which Facter asks for its version: the real
// library reads every lens before it answers.
func writeShims() error {
	if err := os.MkdirAll(shims, 0o755); err != nil {
		return err
	}
	const script = "#!/bin/sh\necho 'augparse 1.14.0 <https://augeas.net/>'\n"
	if err := os.WriteFile(filepath.Join(shims, "augparse"), []byte(script), fs.FileMode(0o755)); err != nil {
		return err
	}
	quick, err := filepath.Abs("testdata/quick.rb")
	ruby = "-r" + quick
	return err
}
