//go:build unix

package filelock

import (
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld is the error of a lock that somebody else has.
const ErrHeld = unix.EWOULDBLOCK

func take(f *os.File, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	return unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
}

// free is for all who have the open file, which a lock belongs to.
func free(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }
