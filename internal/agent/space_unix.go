//go:build unix

package agent

import "golang.org/x/sys/unix"

// freeBytes is how much room a directory has.
func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:gosec,unconvert // their types differ between systems
}
