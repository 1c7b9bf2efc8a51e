package pki

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/durable"
)

const (
	caFile       = "ca.pem"
	caCopyFile   = "ca_crt.pem"
	serverFile   = "server.pem"
	chainCRLFile = "chain_crl.pem"

	// maxFileBytes bounds what is read from the directory and from an import.
	maxFileBytes = 64 << 20
)

// makeDir creates the directory for keys; nobody else may look into it.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return cannotWrite(dir, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return cannotWrite(dir, err)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory needs its x bit
		return fault.Wrap(fault.Unavailable, err, "others may read the CA directory %s: set its mode to 0700", dir)
	}
	return nil
}

// writeFile replaces a file in one step: after a crash the old or the new
// content is there, whole.
func writeFile(dir, name string, content []byte, mode fs.FileMode) (err error) {
	tmp, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return cannotWrite(dir, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(cannotWrite(dir, err), tmp.Close(), os.Remove(tmp.Name()))
		}
	}()
	if err := tmp.Chmod(mode); err != nil {
		return err
	}
	if _, err := tmp.Write(content); err != nil {
		return err
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	return durable.SyncDir(dir)
}

// removeFile removes a file that may be missing.
func removeFile(dir, name string) error {
	err := os.Remove(filepath.Join(dir, name))
	if err == nil {
		err = durable.SyncDir(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cannotWrite(dir, err)
	}
	return nil
}

func cannotWrite(dir string, err error) error {
	return fault.Wrap(fault.Unavailable, err, "the CA directory %s cannot be written: check its owner, the disk's space and that it is not read-only", dir)
}

// readFile reads a bounded file; a missing one gives nil.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "%s cannot be read", path)
	}
	defer func() { _ = f.Close() }() // only read
	content, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "%s cannot be read", path)
	}
	if len(content) > maxFileBytes {
		return nil, fault.New(fault.Invalid, "%s has more than %d bytes", path, maxFileBytes)
	}
	return content, nil
}
