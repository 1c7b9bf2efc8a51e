package blobdir

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncFileSystem brings all that was written to the file system of f to its
// disk; done is false where that cannot be asked for.
func syncFileSystem(f *os.File) (done bool, err error) {
	return true, os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd())))
}
