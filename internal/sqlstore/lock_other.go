//go:build !unix

package sqlstore

import (
	"os"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// fileLock says that this process uses the database: systems without flock
// refuse to remove a file that is open, so one that can be removed is stale.
type fileLock struct {
	file  *os.File
	clean bool
}

func lockFile(path string) (*fileLock, error) {
	stale := os.Remove(path) == nil
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Conflict, err, "another server uses the database %s; stop it first, or give this one another data directory",
			strings.TrimSuffix(path, ".lock"))
	}
	return &fileLock{file: file, clean: !stale}, nil
}

// release gives the database free for others.
func (l *fileLock) release(clean bool) {
	_ = l.file.Close()
	if clean {
		_ = os.Remove(l.file.Name())
	}
}
