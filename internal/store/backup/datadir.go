package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Names of a data directory.
const (
	caDir    = "ca"
	records  = "tutti.db"
	blobsDir = "blobs"
)

// leftOut is what of a data directory is not copied as files: what is made again, what
// belongs to a process, and what is backed up in its own way.
var leftOut = map[string]bool{
	"lock": true, "address": true, "server-id": true, blobsDir: true, "blobcache": true, "trees": true, "ruby": true, "repositories": true,
	"worktrees": true, "r10k": true, MarkerFile: true, "lost+found": true,
}

// isLeftOut also knows the database with its log, its lock and copies, and files that are being
// replaced.
func isLeftOut(name string) bool {
	return leftOut[name] || strings.HasPrefix(name, records) || strings.HasSuffix(name, ".new") || strings.HasPrefix(name, ".")
}

// dataFile is a small file of a data directory.
type dataFile struct {
	name    string // below the directory, with slashes
	content []byte
}

// otherFiles reads the small files besides the CA's. What is new in the data directory is
// copied, too, unless it is left out by name: forgetting is worse.
func otherFiles(dir string) (files []dataFile, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, disk(dir, err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != caDir && !isLeftOut(name) {
			held, err := hold(dir, name)
			if err != nil {
				return nil, disk(dir, err)
			}
			more, err := held.read(dir)
			if err != nil {
				return nil, err
			}
			files = append(files, more...)
		}
	}
	return files, nil
}

// How often and how long a moment is looked for in which the CA's directory does not change.
const (
	momentTries = 100_000
	momentTime  = time.Minute
)

// moment calls begin while the CA's directory stays as it is, and returns what it holds then. The CA
// writes a change down beside its key, then in the records, then that they have it: whatever the
// records are as of such a moment, they are what a crash could have left, and a server starts on both.
func moment(ctx context.Context, dir string, begin func(context.Context) error) ([]dataFile, error) {
	for began, tries := time.Now(), 0; tries < momentTries && time.Since(began) < momentTime; tries++ {
		held, err := hold(dir, caDir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a file was replaced just now
		}
		if err != nil {
			return nil, disk(dir, err)
		}
		if err := begin(ctx); err != nil {
			held.close()
			return nil, err
		}
		if held.stay(dir) {
			return held.read(dir)
		}
		held.close()
	}
	return nil, fault.New(fault.Unavailable, "the CA in %s signs or revokes all the time, so records and CA could not be read as of one moment; try again", dir)
}

// heldFiles is files as they were: what is appended later is not read, and one that is replaced is
// still there.
type heldFiles struct {
	name  string
	files []heldFile
	state string
}

type heldFile struct {
	file *os.File
	path string
	size int64
}

// hold opens every file below name.
func hold(dir, name string) (h heldFiles, err error) {
	h.name = name
	var state strings.Builder
	err = walk(dir, name, func(path string, info fs.FileInfo) error {
		if info.Size() > maxPart {
			return fault.New(fault.Invalid, "%s has %d bytes; a backup takes files of the data directory up to %d", path, info.Size(), maxPart)
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		h.files = append(h.files, heldFile{file, path, info.Size()})
		state.WriteString(stateOf(path, info))
		return nil
	})
	if err != nil {
		h.close()
	}
	h.state = state.String()
	return h, err
}

func stateOf(path string, info fs.FileInfo) string {
	return fmt.Sprintf("%s %d %d %s\n", path, info.Size(), info.ModTime().UnixNano(), inode(info))
}

// stay says whether the files are still those that were opened.
func (h heldFiles) stay(dir string) bool {
	var state strings.Builder
	err := walk(dir, h.name, func(path string, info fs.FileInfo) error {
		state.WriteString(stateOf(path, info))
		return nil
	})
	return err == nil && state.String() == h.state
}

// read reads them, and closes them.
func (h heldFiles) read(dir string) (files []dataFile, err error) {
	defer h.close()
	for _, held := range h.files {
		content := make([]byte, held.size)
		if _, err := io.ReadFull(held.file, content); err != nil {
			return nil, disk(held.path, err)
		}
		below, err := filepath.Rel(dir, held.path)
		if err != nil {
			return nil, err
		}
		files = append(files, dataFile{filepath.ToSlash(below), content})
	}
	return files, nil
}

func (h heldFiles) close() {
	for _, held := range h.files {
		_ = held.file.Close()
	}
}

// walk calls fn with every file; sockets, links and temporary files are passed over.
func walk(dir, name string, fn func(path string, info fs.FileInfo) error) error {
	err := filepath.WalkDir(filepath.Join(dir, name), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || !entry.Type().IsRegular() || isLeftOut(entry.Name()) {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return fn(path, info)
	})
	if errors.Is(err, fs.ErrNotExist) && name == caDir {
		if _, there := os.Stat(filepath.Join(dir, name)); there != nil {
			return fault.New(fault.NotFound, "%s has no directory %s: is it the data directory of a server?", dir, caDir)
		}
	}
	return err
}

// writeFile writes one of the files back.
func writeFile(dir, name string, content []byte) error {
	if !filepath.IsLocal(filepath.FromSlash(name)) || isLeftOut(strings.Split(name, "/")[0]) {
		return fmt.Errorf("%.80q is no file of a data directory", name)
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return disk(dir, err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return disk(dir, err)
	}
	_, err = file.Write(content)
	return disk(dir, errors.Join(err, file.Sync(), file.Close()))
}
