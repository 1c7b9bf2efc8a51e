package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tutti-project/tutti/internal/fault"
)

// Files and directories that people name: what cannot be used is said in one way, with what it was for, the path, why, and what to do.

// openNamed opens a file for reading. purpose says what is read: "the query".
func openNamed(purpose, path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, unread(purpose, path, err)
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		_ = file.Close()
		return nil, unread(purpose, path, syscall.EISDIR)
	}
	return file, nil
}

// maxNamedBytes is the most that is read of a file that is read whole: keys, settings.
const maxNamedBytes = 1 << 20

// readNamed reads a whole file.
func readNamed(purpose, path string) ([]byte, error) {
	text, err := readWhole(path, maxNamedBytes)
	if err != nil {
		return nil, unread(purpose, path, err)
	}
	return text, nil
}

// tooLarge is why a file is not read whole: it has more bytes.
type tooLarge int

func (t tooLarge) Error() string { return fmt.Sprintf("it has more than %d bytes", int(t)) }

// readWhole reads a file that people or settings name, up to so many bytes: /dev/zero has no end, and would take all memory.
func readWhole(path string, most int) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	if err == nil && len(text) > most {
		err = tooLarge(most)
	}
	return text, err
}

// createNamed makes a file that is not there yet.
func createNamed(purpose, path string, mode fs.FileMode) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, unwritten(purpose, path, err)
	}
	return file, nil
}

// unread is why a path that somebody named cannot be read.
func unread(purpose, path string, err error) error { return unusable("read", purpose, path, err) }

// unwritten is why nothing can be written to a path that somebody named.
func unwritten(purpose, path string, err error) error { return unusable("write", purpose, path, err) }

func unusable(do, purpose, path string, err error) error {
	return usageError{&fault.Error{
		Kind: fault.Invalid, Detail: fmt.Sprintf("cannot %s %s: %s: %v", do, purpose, path, reason(err)),
		Hint: mendPath(do, path, err), Err: err,
	}}
}

// mendPath is what to do about a path that cannot be used.
func mendPath(do, path string, err error) string {
	if _, ok := errors.AsType[tooLarge](err); ok {
		return "is it the right file?"
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nearPath(path)
	case errors.Is(err, fs.ErrPermission):
		return "name a path that you may " + do
	case errors.Is(err, fs.ErrExist):
		return "name another one, or remove it first"
	case errors.Is(err, syscall.EISDIR):
		return "name a file in it"
	case errors.Is(err, syscall.ENOTDIR):
		return "name a directory"
	}
	return ""
}

// nearPath says where a path leads that has nothing at its end: to a name beside it, or to where it was looked for.
func nearPath(path string) string {
	whole, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	dir, base := filepath.Split(whole)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "there is no directory " + filepath.Clean(dir)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	if meant := fault.DidYouMean(base, names); meant != "" {
		return meant
	}
	return "it was looked for in " + filepath.Clean(dir)
}
