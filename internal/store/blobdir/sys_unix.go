//go:build unix

package blobdir

import (
	"io/fs"
	"os"
	"syscall"
)

// lockFile takes the lock for as long as the file is open, or fails at once.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// lockShared takes the lock together with others who share it, or fails at once.
func lockShared(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
}

// errLocked is what a lock fails with that somebody else has.
const errLocked = syscall.EWOULDBLOCK

func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}
