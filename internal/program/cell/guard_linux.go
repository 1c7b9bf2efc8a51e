//go:build amd64 || arm64

package cell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// able tells that this program can be its own guard.
const able = true

// A process that was started to guard a cell does so here, and never gets to its main: to initialise the packages that a guard has no use for
// would take longer than to build the cell.
func init() { //nolint:gochecknoinits // see above
	if len(os.Args) != 3 || os.Args[1] != command {
		return
	}
	fd, err := strconv.Atoi(os.Args[2])
	if err != nil || fd < 3 {
		_, _ = fmt.Fprintln(os.Stderr, "tutti "+command+": the server starts this by itself")
		os.Exit(2)
	}
	unix.CloseOnExec(fd)
	os.Exit(guard(os.NewFile(uintptr(fd), "server")))
}

// Exit codes of a guard that are not its program's.
const (
	exitRefused = 125 // no cell could be built
	exitKilled  = 137
)

// guard builds a cell, runs its program, and returns its exit code.
func guard(server *os.File) int {
	limited := &io.LimitedReader{R: server, N: maxOrderBytes}
	orders, answers := json.NewDecoder(limited), json.NewEncoder(server)
	var o order
	if err := orders.Decode(&o); err != nil {
		return exitRefused
	}
	spareThreads()
	report, err := build(o)
	if err != nil {
		report.Error = err.Error()
	}
	if answers.Encode(report) != nil || err != nil {
		return exitRefused
	}
	letGo(o.Files)
	g := &guardian{program: report.PID}
	ended := make(chan int, 1)
	go func() { ended <- g.reap() }()
	alone := make(chan struct{})
	go func() {
		defer close(alone)
		g.serve(orders, answers, limited)
	}()
	code := exitKilled
	select {
	case code = <-ended:
	case <-alone:
	}
	if !o.Spaces { // in a namespace, the kernel ends what is left
		killAll(func() []int { return descendants(os.Getpid()) })
	}
	return code
}

// spare is how many threads a guard has in store: more than ever wait for the system at once.
const spare = 8

// spareThreads makes threads, which are kept: when the cell has used up its processes, the guard could make none, and would end.
func spareThreads() {
	var made, done sync.WaitGroup
	made.Add(spare)
	for range spare {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			made.Wait() // each holds a thread until all have one
		})
	}
	done.Wait()
}

// build makes the cell and starts the program in it.
func build(o order) (Report, error) {
	report := Report{Spaces: o.Spaces, UID: os.Getuid()}
	if o.UID != 0 {
		report.UID = o.UID
	}
	standBack(o.Nice)
	if o.Spaces {
		if err := place(o); err != nil {
			return report, err
		}
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return report, fmt.Errorf("become the parent of orphans: %w", err)
	}
	rules, err := newRuleset(o)
	if err != nil {
		return report, err
	}
	if rules != nil {
		report.Landlock, report.Absent = rules.version, rules.absent
	}
	if err := limit(o); err != nil {
		return report, err
	}
	type start struct {
		pid int
		err error
	}
	started := make(chan start, 1)
	go aside(func() {
		pid, err := launch(o, rules)
		started <- start{pid, err}
	})
	s := <-started
	report.PID, report.Seccomp = s.pid, s.err == nil
	return report, s.err
}

// manyCells is for how many cells a user's number of processes must do.
const manyCells = 8

// processes is the limit of processes and threads. It counts all of a user: those that are no cell's come on top.
func processes(o order) int {
	switch {
	case o.UID != 0:
		return manyCells * o.Limits.Processes
	case os.Geteuid() != 0:
		return o.Limits.Processes + threadsOf(os.Geteuid())
	default:
		return o.Limits.Processes // which root does not obey
	}
}

// standBack gives the cell less of the processors than others. A guard leads a session, and the kernel may share processors among
// sessions before it looks at how nice a process is: so the session is told, too. Kernels that do not share so have no such file, and of
// those that do, whoever is not root gets a word in only ten times a second, on the whole machine (proc_sched_autogroup_set_nice of Linux).
func standBack(nice int) {
	for try := 0; nice > 0 && try < 50; try++ {
		if err := os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(nice)), 0); !errors.Is(err, syscall.EAGAIN) {
			return
		}
		<-time.After(time.Duration(10+rand.IntN(20)) * time.Millisecond) //nolint:gosec // a pause is no secret
	}
}

// limit sets the limits that are inherited.
func limit(o order) error {
	l := o.Limits
	for resource, most := range map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: uint64(l.FileBytes), //nolint:gosec // positive
		unix.RLIMIT_NOFILE: uint64(l.OpenFiles), unix.RLIMIT_NPROC: uint64(processes(o)), //nolint:gosec // positive
	} {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(resource, &now); err != nil {
			return fmt.Errorf("read limit %d: %w", resource, err)
		}
		most = min(most, now.Max)
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("set limit %d: %w", resource, err)
		}
	}
	return nil
}

// aside runs do on a thread for good that is not the process's first: Landlock and seccomp restrict threads, and what may be
// done to a process is judged by its first one. The thread stays, since the program is killed when it ends.
func aside(do func()) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		go aside(do)
	} else {
		do()
	}
	select {}
}

// launch restricts this thread and starts the program from it: it inherits all of that.
func launch(o order, rules *ruleset) (int, error) {
	if _, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return 0, fmt.Errorf("give up new privileges: %w", errno)
	}
	if err := dropCapabilities(o.UID != 0); err != nil {
		return 0, err
	}
	if rules != nil {
		if err := rules.enforce(); err != nil {
			return 0, err
		}
	}
	if err := newFilter().enforce(); err != nil {
		return 0, err
	}
	if o.Nice > 0 {
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, o.Nice); err != nil {
			return 0, fmt.Errorf("stand back for others: %w", err)
		}
	}
	files := make([]uintptr, 3+o.Files)
	for i := range files {
		files[i] = uintptr(i)
	}
	sys := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if o.UID != 0 {
		sys.Credential = &syscall.Credential{Uid: uint32(o.UID), Gid: uint32(o.GID)} //nolint:gosec // from the system's list of users
	}
	//nolint:gosec // the program that the guard was started for
	pid, err := syscall.ForkExec(o.Program, o.Args, &syscall.ProcAttr{Dir: o.Dir, Env: o.Env, Files: files, Sys: sys})
	if err != nil {
		return 0, fmt.Errorf("start %s in %s: %w", o.Program, o.Dir, err)
	}
	return pid, nil
}

// dropCapabilities leaves this thread none, nor any way to get some; but what it takes to become another user, if that is next.
func dropCapabilities(switches bool) error {
	for capability := uintptr(0); ; capability++ {
		_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, capability, 0)
		if errno == unix.EINVAL {
			break // there are no more
		}
		if errno == unix.EPERM { // without any, there is nothing to drop
			break
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if switches {
		data[0].Permitted = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID
		data[0].Effective = data[0].Permitted
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return nil
}

// letGo closes what the program got from us: who reads or writes at the other end shall meet it alone.
func letGo(files int) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer func() { _ = null.Close() }()
	for fd := range 3 + files {
		if fd < 3 {
			_ = unix.Dup3(int(null.Fd()), fd, 0)
		} else {
			_ = unix.Close(fd)
		}
	}
}

// guardian is what a guard knows of its cell.
type guardian struct{ program int }

// reap waits for every process that has no other parent, and returns how the program ended.
func (g *guardian) reap() int {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return exitKilled
		case pid != g.program:
		case status.Signaled():
			return 128 + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}

// serve answers the server until it is gone.
func (g *guardian) serve(orders *json.Decoder, answers *json.Encoder, limited *io.LimitedReader) {
	for {
		limited.N = maxOrderBytes
		var a ask
		if orders.Decode(&a) != nil {
			return
		}
		switch a.Op {
		case opKill:
			g.kill(a.PID)
		case opResident:
			if answers.Encode(ask{Serial: a.Serial, Bytes: residentBytes(a.PID)}) != nil {
				return
			}
		case opClear:
			if answers.Encode(ask{Serial: a.Serial, Found: g.clear(a.PID, a.Keep)}) != nil {
				return
			}
		}
	}
}

// clear ends what a process of the cell started, but for what is kept, and everything that lost its parent and came to us.
func (g *guardian) clear(of int, keep []int) (found bool) {
	self := os.Getpid()
	orphans := func() bool { return started(self, []int{g.program}) && len(descendants(self, g.program)) > 0 }
	if !started(of, keep) && !orphans() {
		return false
	}
	killAll(func() []int {
		left := descendants(self, g.program)
		if slices.Contains(descendants(self), of) { // code may have made the number up
			left = append(left, descendants(of, keep...)...)
		}
		return left
	})
	return true
}

// kill ends a process group, and everything that lost its parent: what the group left behind.
func (g *guardian) kill(pid int) {
	self := os.Getpid()
	ours := pid > 1 && pid != g.program && slices.Contains(descendants(self), pid)
	if ours {
		_ = unix.Kill(-pid, unix.SIGKILL)
	}
	killAll(func() []int {
		all := members()
		left := descendantsIn(all, self, g.program)
		if ours {
			left = append(left, withDescendants(all, pid)...)
		}
		return left
	})
}
