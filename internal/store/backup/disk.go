package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tutti-project/tutti/internal/fault"
)

// disk says what a person can do about an error of the file system below path.
func disk(path string, err error) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*fault.Error](err); known {
		return err
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return fault.Wrap(fault.Unavailable, err, "the disk of %s is full: make room and try again; what was begun there is no backup", path)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fault.Wrap(fault.Denied, err, "%s cannot be used: %v; check who you are, its owner, and how it is mounted", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(fault.NotFound, err, "%s is not there; check the path", path)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// replace writes a file: the old or the new content is there, whole, also after a crash.
func replace(path string, content []byte) error {
	w, err := newFile(path)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return errors.Join(disk(path, err), w.abandon())
	}
	return w.commit()
}

// unfinished is how the name of a file ends that does not have its own yet; it begins with a dot.
const unfinished = ".unfinished"

func isUnfinished(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, unfinished)
}

// file gets its name when it is whole and on the disk.
type file struct {
	*os.File
	name string
}

func newFile(path string) (*file, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+unfinished)
	if err != nil {
		return nil, disk(path, err)
	}
	return &file{f, path}, nil
}

func (f *file) commit() error {
	err := errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), f.name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return disk(f.name, err)
	}
	dir, err := os.Open(filepath.Dir(f.name))
	if err != nil {
		return disk(f.name, err)
	}
	return disk(f.name, errors.Join(dir.Sync(), dir.Close()))
}

func (f *file) abandon() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
