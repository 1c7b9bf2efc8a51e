//go:build !unix

package filemgr

import (
	"io/fs"
	"os"
)

const nonBlocking = 0

// lstat looks at a file; links are not followed. The system knows no owner by number and no other times.
func lstat(path string) (stat, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return stat{}, err
	}
	mode := uint32(info.Mode().Perm())
	switch {
	case info.Mode().IsRegular():
		mode |= fileBits
	case info.IsDir():
		mode |= dirBits
	case info.Mode()&fs.ModeSymlink != 0:
		mode |= 0o120000
	}
	t := info.ModTime()
	return stat{mode: mode, size: info.Size(), mtime: t, ctime: t, atime: t}, nil
}

func isNoDirectory(error) bool { return false }
