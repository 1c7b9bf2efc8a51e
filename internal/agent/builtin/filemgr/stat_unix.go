//go:build unix

package filemgr

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// nonBlocking lets a file be opened without waiting for who writes into it.
const nonBlocking = unix.O_NONBLOCK

// lstat looks at a file; links are not followed.
func lstat(path string) (stat, error) {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		return stat{}, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	at := func(t unix.Timespec) time.Time { return time.Unix(t.Unix()) }
	return stat{uint32(s.Mode), int(s.Uid), int(s.Gid), s.Size, at(s.Mtim), at(s.Ctim), at(s.Atim)}, nil //nolint:unconvert // on macOS a mode is shorter
}

func isNoDirectory(err error) bool { return errors.Is(err, unix.ENOTDIR) }
