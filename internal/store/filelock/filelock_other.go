//go:build !unix

package filelock

import (
	"errors"
	"os"
)

// ErrHeld is what each lock fails with here: the server is for Unix systems, the package only has to compile.
var ErrHeld = errors.ErrUnsupported

func take(*os.File, bool) error { return ErrHeld }
