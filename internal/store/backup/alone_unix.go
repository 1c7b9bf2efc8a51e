//go:build unix

package backup

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tutti-project/tutti/internal/fault"
)

// alone opens a directory of backups for one backup at a time: what another one has begun there is of one that was killed. A file system without
// locks is used as it is.
func alone(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, disk(path, err)
	}
	if errors.Is(unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		_ = dir.Close()
		return nil, fault.New(fault.Conflict, "another backup is being made in %s: wait for its end", path)
	}
	return dir, nil
}
