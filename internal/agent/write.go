package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/fault"
)

// newPrefix begins the names of files that are being written.
const newPrefix = ".new-"

// write replaces a file: the old or the new content is there, never half.
func write(path string, content []byte, mode fs.FileMode) error {
	return writeAs(path, content, mode, nil)
}

// rewrite replaces a file that may be another program's, too: its owner and mode stay.
func rewrite(path string, content []byte, mode fs.FileMode) error {
	info, err := os.Stat(path)
	if err != nil {
		return write(path, content, mode)
	}
	return writeAs(path, content, info.Mode().Perm(), ownerOf(info))
}

// writeAs is write for a file of somebody else's; nil: of whoever writes.
func writeAs(path string, content []byte, mode fs.FileMode, o *owner) error {
	file, err := os.CreateTemp(filepath.Dir(path), newPrefix+"*") // mode 0600
	if err != nil {
		return unwritable(path, err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // unless it was renamed
	_, err = file.Write(content)
	if o != nil {
		err = errors.Join(err, file.Chown(o.user, o.group))
	}
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return unwritable(path, err)
	}
	return nil
}

// unwritable words what the system says about a file or directory.
func unwritable(path string, err error) error {
	hint := "make room, or name another directory with --dir"
	if errors.Is(err, fs.ErrPermission) {
		hint = "run it as root, or name a directory of your own with --dir"
	}
	return fault.Wrap(fault.Invalid, err, "%s cannot be written: %v; %s", path, cause(err), hint)
}

// cause is the system's own word for what went wrong.
func cause(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err
	}
	return err
}

// makeDir makes a directory that only its owner can read.
func makeDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return unwritable(path, err)
	}
	return nil
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, fmt.Errorf("look for %s: %w", path, err)
}
