package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// root is where programs work: the watcher's own directory.
const root = ""

// ownSession keeps a watcher apart from the agent's console.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
}

// group is a job object: a program, and all that it starts.
type group struct {
	job     windows.Handle // 0: there is none, only the program itself can be ended
	program *os.Process
}

// stoppedCode is the exit code of a program that was ended: what SIGTERM gives elsewhere.
const stoppedCode = 143

func startGroup(cmd *exec.Cmd) (*group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	//nolint:gosec // a pid is not negative
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
	if err == nil {
		err = windows.AssignProcessToJobObject(job, process)
		_ = windows.CloseHandle(process)
	}
	if err != nil { // it ended already, or only it itself can be stopped
		_ = windows.CloseHandle(job)
		job = 0
	}
	return &group{job: job, program: cmd.Process}, nil
}

// busy says whether a program could not be started because somebody has its file open for writing.
func busy(err error) bool { return errors.Is(err, windows.ERROR_SHARING_VIOLATION) }

func (g *group) ask() { g.kill() }

func (g *group) kill() {
	if g.job == 0 {
		_ = g.program.Kill()
		return
	}
	_ = windows.TerminateJobObject(g.job, stoppedCode)
}

func (g *group) close() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
	}
}

// stopFile asks a watcher to stop its program: there are no signals here.
const stopFile = "stop"

func ask(_ int, place string) error {
	return os.WriteFile(filepath.Join(place, stopFile), nil, 0o600)
}

// stopRequests looks for the file.
func stopRequests(place string) (asked <-chan struct{}, unwatch func()) {
	found, done := make(chan struct{}), make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(looking)
		defer tick.Stop()
		for {
			if _, err := os.Lstat(filepath.Join(place, stopFile)); err == nil {
				close(found)
				return
			}
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	return found, func() {
		close(done)
		watching.Wait()
	}
}

func bySignal(*os.ProcessState) (int, bool) { return 0, false }
