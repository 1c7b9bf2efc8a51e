//go:build unix

package puppet

import (
	"errors"
	"syscall"
)

// alive says whether there is a process.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
