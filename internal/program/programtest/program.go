// Package programtest writes programs that tests run.
//
// A process that another test starts at the wrong moment inherits the file while it is open for writing;
// until that process has become its own program, this one is a "text file busy".
package programtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Write writes a program to path, with the directories above it, and returns the path. No process of this
// test binary is started meanwhile.
func Write(tb testing.TB, path, text string) string {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		tb.Fatal(err)
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
		tb.Fatal(err)
	}
	return path
}

// Puppet writes a program that is the Puppet of this machine with directories of its own below dir, and with more options, and returns its path. Each
// start adds a line to the file starts there.
func Puppet(tb testing.TB, dir string, more ...string) string {
	tb.Helper()
	installed, err := exec.LookPath("puppet")
	if err != nil {
		tb.Fatal("no puppet here: make test-deps")
	}
	return Write(tb, filepath.Join(dir, "puppet"), fmt.Sprintf("#!/bin/sh\necho x >> %[1]s/starts\n"+
		"exec %[2]s \"$@\" --confdir %[1]s --vardir %[1]s/var --rundir %[1]s/run --publicdir %[1]s/public --color false %[3]s\n", dir, installed,
		strings.Join(more, " ")))
}
