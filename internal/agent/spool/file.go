package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/store/durable"
)

// replace writes a file all at once: a reader, and a crash, sees the old content or the new.
func replace(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Chmod(fileMode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return durable.SyncDir(filepath.Dir(path))
}

// readBounded reads a file that may be at most so long.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return content, err
}
