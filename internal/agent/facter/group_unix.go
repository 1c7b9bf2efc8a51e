//go:build unix

package facter

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a program that is ended take along all that it started.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
