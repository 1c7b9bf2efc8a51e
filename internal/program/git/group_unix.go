//go:build unix

package git

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a cancelled command take its helpers with it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
