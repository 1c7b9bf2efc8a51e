//go:build !unix

package filelock

import (
	"errors"
	"os"
)

// ErrHeld is the error of a lock that somebody else has.
var ErrHeld = errors.New("somebody else has the lock")

// take refuses: the server is for Unix systems, the package only has to compile here.
func take(*os.File, bool) error { return errors.ErrUnsupported }

func free(*os.File) {}
