// Package programtest writes programs that tests run.
//
// A process that another test starts at the wrong moment inherits the file while it is open for writing;
// until that process has become its own program, this one is a "text file busy".
package programtest

import (
	"os"
	"path/filepath"
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
