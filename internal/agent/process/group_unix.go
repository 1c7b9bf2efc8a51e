//go:build unix

package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// root is where programs work.
const root = "/"

// ownSession keeps a watcher apart from the agent: what ends the agent, or its terminal, does not reach it.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// group is a program, and all that it started and did not set apart.
type group struct{ id int }

func startGroup(cmd *exec.Cmd) (*group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &group{id: cmd.Process.Pid}, nil
}

// busy says whether a program could not be started because somebody has its file open for writing.
func busy(err error) bool { return errors.Is(err, syscall.ETXTBSY) }

func (g *group) ask()   { _ = syscall.Kill(-g.id, syscall.SIGTERM) }
func (g *group) kill()  { _ = syscall.Kill(-g.id, syscall.SIGKILL) }
func (g *group) close() {}

// ask tells a watcher to stop its program.
func ask(pid int, _ string) error {
	err := syscall.Kill(pid, syscall.SIGTERM)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// stopRequests never hears anything: signals come with the watcher's context.
func stopRequests(string) (asked <-chan struct{}, unwatch func()) { return nil, func() {} }

// bySignal is the exit code that shells give to what a signal ended.
func bySignal(state *os.ProcessState) (code int, signalled bool) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0, false
	}
	return 128 + int(status.Signal()), true
}
