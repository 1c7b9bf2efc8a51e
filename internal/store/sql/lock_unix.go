//go:build unix

package sql

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/filelock"
)

// fileLock says that this process uses the database. Its text is what whoever used it
// before left there.
type fileLock struct {
	file *os.File
	said string
}

func lockFile(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unusable(strings.TrimSuffix(path, ".lock"), err)
	}
	err = filelock.Exclusive(file)
	if errors.Is(err, filelock.ErrHeld) {
		_ = file.Close()
		return nil, fault.New(fault.Conflict, "another server uses the database %s; stop it first, or give this one another data directory",
			strings.TrimSuffix(path, ".lock"))
	}
	var before []byte
	if err == nil {
		before, err = io.ReadAll(io.LimitReader(file, 64))
	}
	if err != nil {
		_ = filelock.Release(file)
		return nil, unusable(strings.TrimSuffix(path, ".lock"), err)
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
func (l *fileLock) release() { _ = filelock.Release(l.file) }
