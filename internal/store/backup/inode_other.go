//go:build !unix

package backup

import "io/fs"

func inode(fs.FileInfo) string { return "" }
