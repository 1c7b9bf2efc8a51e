package cell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tutti-project/tutti/internal/fault"
)

const (
	// buildTime bounds how long a guard may take to build a cell.
	buildTime = time.Minute
	// answerTime bounds how long a guard may take to answer.
	answerTime = 2 * time.Second
	// clearTime is how long a guard may take to kill what its program started.
	clearTime = 10 * time.Second
)

// Process is a started program: in a cell, or without one where there are none.
type Process struct {
	cmd    *exec.Cmd
	spaces bool
	report Report
	ended  atomic.Bool

	server *net.UnixConn // to the guard; nil: there is no cell
	asking sync.Mutex
	answer *json.Decoder
	writes sync.Mutex
	serial int // of the last question
}

// Start starts cmd as spec allows. What cmd says of descriptors, variables, arguments and the working directory holds for the program;
// its SysProcAttr is replaced. The program leads a process group. The caller must call Wait.
func (k *Keeper) Start(cmd *exec.Cmd, spec Spec) (*Process, error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	p := &Process{cmd: cmd}
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { p.Kill(); return nil }
	}
	if !k.built() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		err := cmd.Start()
		if err == nil && spec.Nice > 0 {
			_ = unix.Setpriority(unix.PRIO_PROCESS, p.PID(), spec.Nice) // it may have ended
		}
		return p, err
	}
	o := k.order(cmd, spec.withSystem())
	p.spaces = o.Spaces
	theirs, err := p.connect()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	k.guarded(cmd, o, theirs)
	if err := cmd.Start(); err != nil {
		_ = p.server.Close()
		return nil, fault.Wrap(fault.Unavailable, err, "the guard of a cell could not be started")
	}
	if err := p.hello(o); err != nil {
		p.Kill()
		_ = p.Wait()
		return nil, fault.Wrap(fault.Unavailable, err, "no cell could be built to run %s in: %s", o.Program, err)
	}
	return p, nil
}

// order is what the guard shall do.
func (k *Keeper) order(cmd *exec.Cmd, spec Spec) order {
	env := cmd.Env
	if env == nil {
		env = os.Environ()
	}
	return order{
		Program: cmd.Path, Args: cmd.Args, Env: env, Dir: cmd.Dir, Files: len(cmd.ExtraFiles),
		Read: spec.Read, Run: spec.Run, Write: spec.Write, Hide: spec.Hide, Ports: spec.Ports, Nice: spec.Nice, Limits: spec.Limits,
		UID: k.uid, GID: k.gid, Spaces: k.spaces,
	}
}

// connect makes the socket that guard and server talk over.
func (p *Process) connect() (theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket pair: %w", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "cell")
	theirs = os.NewFile(uintptr(fds[1]), "cell")
	defer func() { _ = ours.Close() }() // FileConn keeps a duplicate
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a socket pair: %w", err), theirs.Close())
	}
	p.server, p.answer = conn.(*net.UnixConn), json.NewDecoder(conn)
	return theirs, nil
}

// ambient are the capabilities that a guard needs in a user namespace of its own; they are good for nothing outside.
var ambient = []uintptr{unix.CAP_KILL, unix.CAP_SETPCAP, unix.CAP_SYS_PTRACE, unix.CAP_SYS_ADMIN}

// guarded turns cmd into its guard.
func (k *Keeper) guarded(cmd *exec.Cmd, o order, socket *os.File) {
	cmd.Path = "/proc/self/exe" // which is this version, even after an update
	cmd.Args = []string{"tutti", command, strconv.Itoa(3 + len(cmd.ExtraFiles))}
	cmd.Env, cmd.Dir = []string{"GOMAXPROCS=2"}, "/"
	cmd.ExtraFiles = append(slices.Clip(cmd.ExtraFiles), socket)
	sys := &syscall.SysProcAttr{Setsid: true}
	if o.Spaces {
		sys.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
		if len(o.Ports) == 0 {
			sys.Cloneflags |= unix.CLONE_NEWNET
		}
		if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
			sys.Cloneflags |= unix.CLONE_NEWUSER
			sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
			sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
			sys.AmbientCaps = ambient
		}
	}
	cmd.SysProcAttr = sys
}

// hello sends the order and hears what became of it.
func (p *Process) hello(o order) error {
	if err := p.server.SetDeadline(time.Now().Add(buildTime)); err != nil {
		return err
	}
	if err := json.NewEncoder(p.server).Encode(o); err != nil {
		return fmt.Errorf("the guard did not listen: %w", err)
	}
	if err := p.answer.Decode(&p.report); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the guard ended without a word")
		}
		return fmt.Errorf("the guard did not answer: %w", err)
	}
	if p.report.Error != "" {
		return errors.New(p.report.Error)
	}
	return p.server.SetDeadline(time.Time{})
}

// Report is what the cell has; the zero value without a cell.
func (p *Process) Report() Report { return p.report }

// PID is the number by which this machine knows the process that was started: the program, or its guard.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Program is the program's number in its own cell.
func (p *Process) Program() int {
	if p.server == nil {
		return p.PID()
	}
	return p.report.PID
}

// Wait waits for the end of the program, and of everything that it started.
func (p *Process) Wait() error {
	err := p.cmd.Wait()
	p.ended.Store(true)
	if p.server != nil {
		_ = p.server.Close()
	}
	return err
}

// Kill ends the program with everything that it started. It may be called repeatedly, and does not wait.
func (p *Process) Kill() {
	switch {
	case p.server == nil:
		p.KillGroup(p.PID())
	case p.spaces: // the guard is the first process of its namespace: all others end with it
		_ = p.cmd.Process.Kill()
		_ = p.server.Close()
	case p.server.Close() == nil: // the guard sees that, and kills
		time.AfterFunc(clearTime, func() { _ = p.cmd.Process.Kill() })
	}
}

// KillGroup ends a process group of the program, by the number it has in the cell, and what it left behind.
func (p *Process) KillGroup(pid int) {
	switch {
	case pid < 2:
	case p.server == nil:
		if pid != p.PID() || !p.ended.Load() { // its number may be another's by now
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	default:
		_, _ = p.say(ask{Op: opKill, PID: pid}) // a guard that does not listen has ended, and all with it
	}
}

// Unknown is the memory of a process whose guard is busy.
const Unknown = -1

// Resident is the memory, in bytes, of a process of the cell with all that it started; 0 when it has ended.
func (p *Process) Resident(pid int) int64 {
	if p.server == nil {
		return residentBytes(pid)
	}
	a, err := p.question(ask{Op: opResident, PID: pid}, answerTime)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Unknown
	case err != nil:
		return 0
	}
	return a.Bytes
}

// Clear ends what a process of the program started and did not end, in a session of its own or not, but for those to keep and what these started; in
// a cell also everything that lost its parent. It waits for that, and tells whether there was anything, or nobody knows.
func (p *Process) Clear(pid int, keep ...int) (found bool) {
	if p.server != nil {
		a, err := p.question(ask{Op: opClear, PID: pid, Keep: keep}, clearTime)
		return err != nil || a.Found
	}
	if !started(pid, keep) {
		return false
	}
	killAll(func() []int {
		if pid != p.PID() && !slices.Contains(descendants(p.PID()), pid) { // code may have made the number up
			return nil
		}
		return descendants(pid, keep...)
	})
	return true
}

// question asks the guard and waits for its answer.
func (p *Process) question(q ask, most time.Duration) (ask, error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	serial, err := p.say(q)
	if err != nil {
		return ask{}, err
	}
	if err := p.server.SetReadDeadline(time.Now().Add(most)); err != nil {
		return ask{}, err
	}
	for {
		var a ask
		if err := p.answer.Decode(&a); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				p.answer = json.NewDecoder(io.MultiReader(p.answer.Buffered(), p.server)) // it keeps its first error
			}
			return ask{}, err
		}
		if a.Serial == serial {
			return a, nil
		}
	}
}

// say sends one line to the guard.
func (p *Process) say(a ask) (serial int, err error) {
	p.writes.Lock()
	defer p.writes.Unlock()
	p.serial++
	a.Serial = p.serial
	if err := p.server.SetWriteDeadline(time.Now().Add(answerTime)); err != nil {
		return 0, err
	}
	return a.Serial, json.NewEncoder(p.server).Encode(a)
}
