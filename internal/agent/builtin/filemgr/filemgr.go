package filemgr

import (
	"cmp"
	"context"
	_ "embed" // the module's description
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/agent/builtin"
)

//go:embed module.json
var metadata []byte

// Module makes the module.
func Module() builtin.Module {
	return builtin.Module{Name: "filemgr", Metadata: metadata, Off: []string{"touch", "remove"}, Calls: map[string]builtin.Call{
		"status": builtin.Typed(status), "list": builtin.Typed(list), "read": builtin.Typed(read), "checksum": builtin.Typed(checksum),
		"touch": builtin.Typed(touch), "remove": builtin.Typed(remove),
	}}
}

type named struct {
	File    string `json:"file"`
	DirList bool   `json:"dirlist"`
}

// Status is what is known of a file. Without one only the first three fields are there.
type Status struct {
	Name    string `json:"name"`
	Output  string `json:"output"`  // present, absent, or why it is not known
	Present int    `json:"present"` // 1 if it is there
	*details
	Listing []entry `json:"dir_listing,omitempty"`
}

type details struct {
	Type   string `json:"type"`
	Size   int64  `json:"size"`
	Mode   string `json:"mode"` // octal, with the type
	MD5    string `json:"md5,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	UID    int    `json:"uid"`
	GID    int    `json:"gid"`

	Modified      string `json:"mtime"`
	ModifiedUnix  int64  `json:"mtime_seconds"`
	ModifiedAge   int64  `json:"mtime_age"`
	Changed       string `json:"ctime"`
	ChangedUnix   int64  `json:"ctime_seconds"`
	ChangedAge    int64  `json:"ctime_age"`
	Accessed      string `json:"atime"`
	AccessedUnix  int64  `json:"atime_seconds"`
	AccessedAge   int64  `json:"atime_age"`
	isFile, isDir bool
}

// stat is what the system says of a file.
type stat struct {
	mode                uint32 // with the type, as POSIX has it
	uid, gid            int
	size                int64
	mtime, ctime, atime time.Time
}

const (
	present = "present"
	absent  = "absent"
)

// maxSummed is the size up to which status computes checksums.
const maxSummed = 64 << 20

func status(ctx context.Context, in named) (any, error) {
	s, err := look(ctx, in.File)
	if err == nil && in.DirList && s.details != nil && s.isDir {
		s.Listing, _, err = entries(in.File)
	}
	return s, err
}

// Data answers the data functions fstat and file.
func Data() builtin.Data {
	return func(ctx context.Context, query string) (any, error) { return look(ctx, query) }
}

func look(ctx context.Context, path string) (Status, error) {
	s := Status{Name: path, Output: absent}
	is, err := lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || isNoDirectory(err):
		return s, nil
	case err != nil:
		return s, builtin.Abort("%s cannot be looked at: %v", path, cause(err))
	}
	s.Output, s.Present, s.details = present, 1, detailsOf(is, time.Now())
	if !s.isFile || is.size > maxSummed {
		return s, nil
	}
	sums, err := sumsOf(ctx, path, "md5", "sha256")
	switch {
	case errors.Is(err, fs.ErrNotExist): // it went away meanwhile
		return Status{Name: path, Output: absent}, nil
	case err != nil && ctx.Err() != nil:
		return s, err
	case err == nil: // what cannot be read has no checksums
		s.MD5, s.SHA256 = sums["md5"], sums["sha256"]
	}
	return s, nil
}

// cause is an error of the system without the path.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// The types of files in a mode.
const (
	typeBits = 0o170000
	fileBits = 0o100000
	dirBits  = 0o040000
)

var typeNames = map[uint32]string{
	fileBits: "file", dirBits: "directory", 0o120000: "symlink", 0o140000: "socket", 0o010000: "fifo", 0o020000: "chardev", 0o060000: "blockdev",
}

func typeName(mode uint32) string { return cmp.Or(typeNames[mode&typeBits], "unknown") }

func detailsOf(is stat, now time.Time) *details {
	d := &details{
		Type: typeName(is.mode), Size: is.size, Mode: fmt.Sprintf("%o", is.mode), UID: is.uid, GID: is.gid,
		isFile: is.mode&typeBits == fileBits, isDir: is.mode&typeBits == dirBits,
	}
	d.Modified, d.ModifiedUnix, d.ModifiedAge = stamp(is.mtime, now)
	d.Changed, d.ChangedUnix, d.ChangedAge = stamp(is.ctime, now)
	d.Accessed, d.AccessedUnix, d.AccessedAge = stamp(is.atime, now)
	return d
}

func stamp(t, now time.Time) (text string, unix, age int64) {
	return t.Format(time.DateTime), t.Unix(), now.Unix() - t.Unix()
}

// entry is one of a directory.
type entry struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Size     int64  `json:"size"`
	Mode     string `json:"mode"`
	Modified int64  `json:"mtime_seconds"`
	UID      int    `json:"uid"`
	GID      int    `json:"gid"`
}

const maxEntries = 1000

func list(_ context.Context, in named) (any, error) {
	all, cut, err := entries(in.File)
	return struct {
		Listing []entry `json:"dir_listing"`
		Cut     bool    `json:"cut"`
	}{all, cut}, err
}

// entries lists a directory by name.
func entries(dir string) (all []entry, cut bool, err error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, false, builtin.Abort("%s cannot be listed: %v", dir, cause(err))
	}
	defer func() { _ = file.Close() }()
	names, err := file.Readdirnames(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, builtin.Abort("%s cannot be listed: %v", dir, cause(err))
	}
	if len(names) > maxEntries {
		names, cut = names[:maxEntries], true
	}
	slices.Sort(names)
	all = []entry{}
	for _, name := range names {
		is, err := lstat(strings.TrimRight(dir, `/\`) + string(os.PathSeparator) + name)
		if err != nil {
			continue // it went away meanwhile
		}
		all = append(all, entry{strings.ToValidUTF8(name, "\uFFFD"), typeName(is.mode), is.size, fmt.Sprintf("%o", is.mode), is.mtime.Unix(), is.uid, is.gid})
	}
	return all, cut, nil
}

type said struct {
	Output string `json:"output"`
}

// touch makes an empty file, or sets the times of what is there.
func touch(_ context.Context, in named) (any, error) {
	file, err := os.OpenFile(in.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // as touch makes it
	if err == nil {
		if err = file.Close(); err == nil {
			return said{"the file was made"}, nil
		}
	}
	if errors.Is(err, fs.ErrExist) {
		now := time.Now()
		if err = os.Chtimes(in.File, now, now); err == nil {
			return said{"its times were set to now"}, nil
		}
	}
	return nil, builtin.Abort("%s was not touched: %v", in.File, cause(err))
}

// remove removes a file, a link or an empty directory. What is not there was removed.
func remove(_ context.Context, in named) (any, error) {
	switch err := os.Remove(in.File); {
	case err == nil:
		return said{"it was removed"}, nil
	case errors.Is(err, fs.ErrNotExist):
		return said{"it is not there"}, nil
	default:
		return nil, builtin.Abort("%s was not removed: %v", in.File, cause(err))
	}
}
