//go:build unix

package filelock_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/tutti-project/tutti/internal/store/filelock"
)

func TestLocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *os.File {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	first, second, third := open(), open(), open()
	if err := errors.Join(filelock.Shared(first), filelock.Shared(second)); err != nil {
		t.Fatalf("two cannot share a lock: %v", err)
	}
	if err := filelock.Exclusive(third); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("the lock of two others: %v, want %v", err, filelock.ErrHeld)
	}
	if err := errors.Join(first.Close(), second.Close(), filelock.Exclusive(third)); err != nil {
		t.Errorf("a lock that nobody has any more: %v", err)
	}
	if err := filelock.Shared(open()); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("somebody else's lock: %v, want %v", err, filelock.ErrHeld)
	}
}

// A process that was just forked has all open files until it begins its program.
func TestAReleasedLockIsFreeAlthoughAForkedProcessHasTheFile(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	first, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := filelock.Exclusive(first); err != nil {
		t.Fatal(err)
	}
	forked, err := syscall.Dup(int(first.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(forked) }()
	if err := filelock.Release(first); err != nil {
		t.Fatal(err)
	}
	second, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	if err := filelock.Exclusive(second); err != nil {
		t.Errorf("a lock that was given back: %v", err)
	}
}
