//go:build !unix

package blobdir

import (
	"errors"
	"io/fs"
	"os"
)

// lockFile refuses: the server is for Unix systems, the package only has to compile here.
func lockFile(*os.File) error { return errors.ErrUnsupported }

func lockShared(*os.File) error { return errors.ErrUnsupported }

var errLocked = errors.ErrUnsupported

func inode(fs.FileInfo) uint64 { return 0 }
