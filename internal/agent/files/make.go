package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Make implements orders.Cache.
func (c *Cache) Make(ctx context.Context, entry pxp.FileEntry) error {
	if !filepath.IsAbs(entry.Destination) {
		return fault.New(fault.Invalid, "The destination %.200q is not an absolute path", entry.Destination)
	}
	path := filepath.Clean(entry.Destination)
	info, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c.broken(err)
	}
	there := err == nil
	if err := os.MkdirAll(filepath.Dir(path), mode); err != nil {
		return c.broken(err)
	}
	switch {
	case entry.Kind == pxp.RegularFile && there && info.IsDir():
		return fault.New(fault.Invalid, "Destination %s already exists and is a directory!", path)
	case entry.Kind == pxp.RegularFile:
		return c.makeFile(ctx, entry, path)
	case entry.Kind == pxp.Directory:
		return c.makeDirectory(path, there)
	case entry.Kind == pxp.Symlink && there && info.Mode()&fs.ModeSymlink == 0:
		return fault.New(fault.Invalid, "Destination %s already exists and is not a symlink!", path)
	case entry.Kind == pxp.Symlink:
		return c.broken(link(entry.LinkSource, path))
	default:
		return fault.New(fault.Invalid, "The kind %.80q is none of file, directory and symlink", entry.Kind)
	}
}

// makeFile keeps a file that has the content already.
func (c *Cache) makeFile(ctx context.Context, entry pxp.FileEntry, path string) error {
	have, err := Has(path, entry.SHA256)
	switch {
	case err != nil:
		return c.broken(err)
	case have:
		return c.broken(os.Chmod(path, mode))
	default:
		return c.download(ctx, content{name: path, sha256: entry.SHA256, uri: entry.URI}, path)
	}
}

// makeDirectory takes a symlink to a directory for one, as the original does.
// Somebody else may make it meanwhile: two transactions with the same target, say.
func (c *Cache) makeDirectory(path string, there bool) error {
	if !there {
		if err := os.Mkdir(path, mode); !errors.Is(err, fs.ErrExist) {
			return c.broken(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return fault.New(fault.Invalid, "Destination %s already exists and is not a directory!", path)
	}
	return nil
}

// link makes a symlink, or lets one point elsewhere, all at once.
func link(to, path string) error {
	if now, err := os.Readlink(path); err == nil && now == to {
		return nil
	}
	fresh := filepath.Join(filepath.Dir(path), tempPrefix+uuid.NewString())
	if err := os.Symlink(to, fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return nil
}
