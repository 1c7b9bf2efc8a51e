//go:build unix

package backup

import (
	"fmt"
	"io/fs"
	"syscall"
)

// inode tells a file from the one that took its place.
func inode(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(stat.Ino)
	}
	return ""
}
