package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/store/filelock"
)

// Rotated is a new token in a data directory.
type Rotated struct {
	File   string // that holds it
	Server int    // the process that was told; 0: none runs
}

// RotateAdmin puts another administrator's token into a data directory and tells the server that holds it, if there
// is one. Whoever may write there may do it.
func RotateAdmin(path string) (Rotated, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Rotated{}, err
	}
	if err := CheckUsed(path); err != nil {
		return Rotated{}, err
	}
	if err := CheckMode(path); err != nil {
		return Rotated{}, err
	}
	d := &Dir{Path: path}
	rotated := Rotated{File: d.Join(TokenFile)}
	if err := d.Write(TokenFile, rbac.NewSecret()+"\n"); err != nil {
		return rotated, err
	}
	if rotated.Server, err = d.holder(); err != nil || rotated.Server == 0 {
		return rotated, err
	}
	if err := unix.Kill(rotated.Server, unix.SIGHUP); err != nil {
		return rotated, fault.Wrap(fault.Unavailable, err,
			"the new token is in %s, but the server (process %d) could not be told: %v; send it SIGHUP, or start it again", rotated.File, rotated.Server, err)
	}
	return rotated, nil
}

// holder is the process that holds the directory's lock; 0: nobody does.
func (d *Dir) holder() (int, error) {
	lock, err := os.OpenFile(d.Join("lock"), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, Unusable(d.Path, err)
	}
	defer func() { _ = filelock.Release(lock) }()
	if err := filelock.Exclusive(lock); err == nil {
		return 0, nil
	}
	text, err := os.ReadFile(lock.Name())
	if err != nil {
		return 0, Unusable(d.Path, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return 0, fault.New(fault.Internal, "%s names no process; send the server SIGHUP, or start it again", lock.Name())
	}
	return pid, nil
}
