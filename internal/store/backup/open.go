package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Listed is what can be said of a backup without its key.
type Listed struct {
	ID    string    `json:"id"`
	Path  string    `json:"path"`
	Made  time.Time `json:"made"`
	Bytes int64     `json:"bytes"`
}

// List names the backups of a directory, oldest first; or the one that is a file.
func List(target string) ([]Listed, error) {
	info, err := os.Stat(target)
	if err != nil {
		return nil, disk(target, err)
	}
	if !info.IsDir() {
		return []Listed{listed(target, info)}, nil
	}
	if _, err := readLayout(target); err != nil {
		return nil, noDirectory(target, err)
	}
	paths, err := filepath.Glob(filepath.Join(escape(target), "*"+extension))
	if err != nil {
		return nil, err
	}
	list := []Listed{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, disk(path, err)
		}
		list = append(list, listed(path, info))
	}
	slices.SortFunc(list, func(a, b Listed) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// escape makes a path one that Glob takes as it is.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func listed(path string, info fs.FileInfo) Listed {
	l := Listed{ID: strings.TrimSuffix(filepath.Base(path), extension), Path: path, Bytes: info.Size(), Made: info.ModTime().UTC()}
	if stamp, _, _ := strings.Cut(l.ID, "-"); stamp != "" {
		if made, err := time.Parse("20060102T150405Z", stamp); err == nil {
			l.Made = made
		}
	}
	return l
}

func noDirectory(target string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.NotFound, "%s is no directory of backups: it has no %s", target, layoutFile)
	}
	return err
}

// found is an archive that is to be read.
type found struct {
	path string
	dir  string // of the blobs beside it; empty: none
	key  Key
}

// find finds the archive: a file, or one of a directory, by its ID; the newest if that is empty.
func find(target, id string, key Key) (found, error) {
	info, err := os.Stat(target)
	if err != nil {
		return found{}, disk(target, err)
	}
	f := found{path: target, key: key}
	if !info.IsDir() {
		if id != "" {
			return f, fault.New(fault.Invalid, "%s is one archive: a backup is named only for a directory", target)
		}
		if _, err := readLayout(filepath.Dir(target)); err == nil { // it is a directory's: its key may be there
			f.dir = filepath.Dir(target)
		}
	} else {
		list, err := List(target)
		if err != nil {
			return f, err
		}
		if len(list) == 0 {
			return f, fault.New(fault.NotFound, "%s has no backup yet", target)
		}
		at := len(list) - 1
		if id != "" {
			if at = slices.IndexFunc(list, func(l Listed) bool { return l.ID == id }); at < 0 {
				return f, fault.New(fault.NotFound, "%s has no backup %s; tutti backup list %s names them", target, id, target)
			}
		}
		f.path, f.dir = list[at].Path, target
	}
	if f.dir != "" && key.passphrase != "" {
		f.key, err = ownKey(f.dir, key)
	}
	return f, err
}
