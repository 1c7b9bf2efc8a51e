//go:build unix

package eventlog

import (
	"os"
	"path/filepath"
	"syscall"
)

// alive says whether a run holds its lock.
func alive(dir string) bool {
	file, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return false // the directory appears with it
	}
	defer func() { _ = file.Close() }()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}
