//go:build unix

// Package group gives a program that is started a process group of its own, so that ending it ends all that it started.
package group

import (
	"os/exec"
	"syscall"
)

// Own makes a command that is cancelled take along all that it started.
func Own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
