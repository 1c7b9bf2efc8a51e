// Package filelock locks an open file or directory for as long as it is open, so that two processes never use the same data. Callers
// open it themselves: they read and write it as well, and some lock a directory.
package filelock

import "os"

// Exclusive takes the lock for this process alone, or fails at once; with ErrHeld if somebody else has it.
func Exclusive(f *os.File) error { return take(f, false) }

// Shared takes the lock together with others who share it, or fails at once.
func Shared(f *os.File) error { return take(f, true) }

// Release gives the lock back and closes the file. To close it is not enough: a process that was forked at this moment, and has not begun its
// own program yet, has the file open, too.
func Release(f *os.File) error {
	free(f)
	return f.Close() //nolint:wrapcheck // it names the file
}
