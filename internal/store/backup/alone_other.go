//go:build !unix

package backup

import "os"

// alone opens a directory of backups. A server runs on Linux, and so do its backups.
func alone(path string) (*os.File, error) {
	dir, err := os.Open(path)
	return dir, disk(path, err)
}
