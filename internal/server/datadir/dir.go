package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/store/filelock"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// Files of the data directory that commands on the same machine read.
const (
	TokenFile   = api.TokenFile
	AddressFile = api.AddressFile
	CAFile      = api.CAFile
)

// Dir is a data directory that this process holds.
type Dir struct {
	Path  string
	lock  *os.File
	Fresh bool // it has no token: this is the first start
	HadCA bool // the first start found a certificate authority: an import, or an earlier start, made it
}

// OpenUsed is Open for commands that mend what a server has left behind: where none was, they make nothing.
func OpenUsed(path string) (*Dir, error) {
	if err := CheckUsed(path); err != nil {
		return nil, err
	}
	return Open(path)
}

// CheckUsed refuses a directory in which no server ever was.
func CheckUsed(path string) error {
	const hint = "name the server's own with --data"
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return &fault.Error{Kind: fault.Invalid, Detail: "there is no data directory " + path, Hint: hint, Err: err}
	}
	for _, name := range []string{"ca", "tutti.db"} {
		if _, err := os.Stat(filepath.Join(path, name)); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return &fault.Error{Kind: fault.Invalid, Detail: path + " is no server's data directory: neither its CA (ca) nor its records (tutti.db) are there", Hint: hint}
}

// Open makes the directory if need be and takes its lock. A directory
// that others may read, that cannot be written, or that another server holds is
// an error that says so.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, Unusable(path, err)
	}
	if err := CheckMode(path); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, Unusable(path, err)
	}
	if err := filelock.Exclusive(lock); err != nil {
		holder, _ := os.ReadFile(lock.Name())
		_ = lock.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, &fault.Error{
				Kind: fault.Conflict, Hint: sql.OneServer, Err: err,
				Detail: fmt.Sprintf("another server (process %s) uses the data directory %s; stop it, or give this one another --data",
					strings.TrimSpace(string(holder)), path),
			}
		}
		return nil, Unusable(path, err)
	}
	makeRoom(path)
	if err := writeHolder(lock); err != nil {
		_ = filelock.Release(lock)
		return nil, Unusable(path, err)
	}
	_, token := os.Stat(filepath.Join(path, TokenFile))
	_, ca := os.Stat(filepath.Join(path, CAFile))
	return &Dir{Path: path, lock: lock, Fresh: errors.Is(token, fs.ErrNotExist), HadCA: ca == nil}, nil
}

// CheckMode refuses a directory whose secrets others could read.
func CheckMode(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return Unusable(path, err)
	}
	if !info.IsDir() {
		return fault.New(fault.Invalid, "data directory %s is not a directory", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fault.New(fault.Invalid, "data directory %s has mode %04o, so others can read its keys; run: chmod 700 %s", path, mode, path)
	}
	return nil
}

// Unusable words what the file system says about the data directory.
func Unusable(path string, err error) error {
	switch {
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fault.Wrap(fault.Invalid, err, "data directory %s cannot be written (%v); mount it writable, or name another with --data", path, cause(err))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(fault.Unavailable, err, "data directory %s: the disk is full; make room and start again", path)
	}
	return fault.Wrap(fault.Invalid, err, "data directory %s cannot be used: %v", path, cause(err))
}

// cause is the system's own word for what went wrong.
func cause(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err
	}
	return err
}

func writeHolder(lock *os.File) error {
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err := lock.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}

// Join is the path of what lies in the directory by this name.
func (d *Dir) Join(name string) string { return filepath.Join(d.Path, name) }

// Close gives the directory back.
func (d *Dir) Close() error {
	_ = os.Remove(d.Join(AddressFile))
	return filelock.Release(d.lock)
}

// Token reads the administrator's token and makes it on the first start.
func (d *Dir) Token() (string, error) {
	path := d.Join(TokenFile)
	content, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(content))) >= 32 {
		return strings.TrimSpace(string(content)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", Unusable(d.Path, err)
	}
	token := rbac.NewSecret()
	return token, d.Write(TokenFile, token+"\n")
}

// idFile has the name by which this server is told from others that use the same records.
const idFile = "server-id"

// ID reads the server's name among servers, and makes it on the first start, of the name of its machine. It stays the same when the machine
// gets another one.
func (d *Dir) ID(machine string) (string, error) {
	content, err := os.ReadFile(d.Join(idFile))
	if id := strings.TrimSpace(string(content)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", Unusable(d.Path, err)
	}
	id := machine + "/" + uuid.NewString()[:8]
	return id, d.Write(idFile, id+"\n")
}

// Write replaces a file: the old or the new content is there, never half.
func (d *Dir) Write(name, content string) error {
	path := d.Join(name)
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return Unusable(d.Path, err)
	}
	_, err = file.WriteString(content)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return Unusable(d.Path, err)
	}
	return nil
}
