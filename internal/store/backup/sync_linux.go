package backup

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll brings all that was written to the file system of path to its disk.
func syncAll(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close())
}
