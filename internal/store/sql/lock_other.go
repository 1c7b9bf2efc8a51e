//go:build !unix

package sql

import (
	"os"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// fileLock says that this process uses the database: systems without flock
// refuse to remove a file that is open, so one that can be removed is nobody's.
type fileLock struct {
	file *os.File
	said string
}

func lockFile(path string) (*fileLock, error) {
	before, _ := os.ReadFile(path)
	_ = os.Remove(path)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Conflict, err, "another server uses the database %s; stop it first, or give this one another data directory",
			strings.TrimSuffix(path, ".lock"))
	}
	return &fileLock{file: file, said: string(before)}, nil
}

// write replaces the text.
func (l *fileLock) write(text string) error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(text), 0)
	return err
}

// release gives the database free for others.
func (l *fileLock) release() { _ = l.file.Close() }
