// Package filelock locks an open file or directory for as long as it is open, so that two processes never use the same data. Callers
// open it themselves: they read and write it as well, and some lock a directory.
package filelock

import "os"

// Exclusive takes the lock for this process alone, or fails at once; with ErrHeld if somebody else has it.
func Exclusive(f *os.File) error { return take(f, false) }

// Shared takes the lock together with others who share it, or fails at once.
func Shared(f *os.File) error { return take(f, true) }
