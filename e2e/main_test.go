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
	"strconv"
	"testing"
	"time"
)

// binary is the tutti under test; shims is a directory put first in PATH.
var binary, shims string

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
	if err := needs("puppet", "puppet-agent"); err != nil {
		return 1, err
	}
	if err := build(); err != nil {
		return 1, err
	}
	if err := writeShims(); err != nil {
		return 1, err
	}
	// Much of a story is waiting; what costs is bounded by agents.
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, house.close()
}

// needs says which Debian package brings a program that is missing.
func needs(program, pkg string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is missing: apt-get install %s", program, pkg)
	}
	return nil
}

func build() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	args := []string{"build", "-buildvcs=false", "-o", binary}
	if raceEnabled {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "../cmd/tutti")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build tutti: %w\n%s", err, out)
	}
	return nil
}

// writeShims stands in for augparse, which Facter asks for its version: the real
// library reads every lens before it answers.
func writeShims() error {
	if err := os.MkdirAll(shims, 0o755); err != nil {
		return err
	}
	const script = "#!/bin/sh\necho 'augparse 1.14.0 <https://augeas.net/>'\n"
	return os.WriteFile(filepath.Join(shims, "augparse"), []byte(script), fs.FileMode(0o755))
}
