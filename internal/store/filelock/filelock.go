// Package filelock takes the lock of a file or directory that is open, for as long as it is open, so that two servers never use the same data.
// What the callers lock they also read and write, and one of them locks a directory: they open it themselves.
package filelock

import "os"

// Exclusive takes the lock for this process alone, or fails at once; with ErrHeld if somebody else has it.
func Exclusive(f *os.File) error { return take(f, false) }

// Shared takes the lock together with others who share it, or fails at once.
func Shared(f *os.File) error { return take(f, true) }
