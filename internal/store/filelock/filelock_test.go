//go:build unix

package filelock_test

import (
	"errors"
	"os"
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
