package r10k

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/fault"
)

// unpack writes an archive below a root. Nothing of it gets out: the root follows no link that leads there.
func (r Resolver) unpack(from io.Reader, root *os.Root) error {
	archive := tar.NewReader(from)
	files, left := 0, r.MaxBytes
	for {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if files++; files > r.MaxFiles {
			return fault.New(fault.Invalid, "the modules of the Puppetfile have more than %d files", r.MaxFiles)
		}
		if left -= entry.Size; left < 0 {
			return fault.New(fault.Invalid, "the modules of the Puppetfile take more than %d MiB", r.MaxBytes>>20)
		}
		if err := place(root, entry, archive); err != nil {
			return err
		}
	}
}

// place makes one entry of an archive. What was there in its place goes, but for directories.
func place(root *os.Root, entry *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(path.Clean(entry.Name))
	if name == "." {
		return nil
	}
	if !filepath.IsLocal(name) {
		return fault.New(fault.Invalid, "the modules of the Puppetfile have a path that leads out of the repository: %.200q", entry.Name)
	}
	switch entry.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeReg, tar.TypeSymlink, tar.TypeLink:
	default:
		return fault.New(fault.Invalid, "the modules of the Puppetfile have something that is neither a file, a directory nor a link: %.200q", entry.Name)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch entry.Typeflag {
	case tar.TypeSymlink:
		return root.Symlink(entry.Linkname, name) // whoever makes a version of the tree refuses links that lead out
	case tar.TypeLink:
		return root.Link(filepath.FromSlash(path.Clean(entry.Linkname)), name)
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(entry.Mode&0o777)|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
