package rivals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// stopGrace is how long a server may take to stop by itself.
const stopGrace = 20 * time.Second

// process is a server's root process in a process group of its own.
type process struct {
	cmd     *exec.Cmd
	logPath string
	done    chan struct{} // closed when it ended
	err     error         // valid once done is closed
}

// command describes a process to start.
type command struct {
	path string
	args []string
	dir  string
	env  []string // nil: the harness's own
	log  string   // gets standard output and error
	user string   // empty: the harness's own
}

// start runs c. The process does not end with the context: it must survive the
// cancellation of the benchmark long enough to be stopped in order.
func start(ctx context.Context, c command) (*process, error) {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.path, err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), c.path, c.args...) //nolint:gosec // the programs of this package, under their own arguments
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.user != "" {
		if cmd.SysProcAttr.Credential, err = credential(c.user); err != nil {
			return nil, fmt.Errorf("start %s: %w", c.path, err)
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.path, err)
	}
	p := &process{cmd: cmd, logPath: c.log, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) usage() (measure.Usage, error) { return measure.Tree(p.pid()) }

// waitFor polls ready until it says yes, the process ends, or ctx is done.
func (p *process) waitFor(ctx context.Context, ready func(context.Context) bool) error {
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for {
		if ready(ctx) {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended at start: %w\n%s", p.cmd.Path, errors.Join(p.err), p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", p.cmd.Path, ctx.Err(), p.tail())
		case <-poll.C:
		}
	}
}

// stop asks the process to end with a signal, waits, and then kills whatever of
// the tree is left. Descendants in groups of their own are killed one by one.
func (p *process) stop(gentle syscall.Signal) error {
	tree, _ := measure.PIDs(p.pid())
	select {
	case <-p.done:
	default:
		_ = p.cmd.Process.Signal(gentle)
	}
	select {
	case <-p.done:
	case <-time.After(stopGrace):
	}
	return p.kill(tree)
}

// kill ends the process group and the given processes at once.
func (p *process) kill(tree []int) error {
	_ = syscall.Kill(-p.pid(), syscall.SIGKILL)
	select {
	case <-p.done:
	case <-time.After(stopGrace):
		return fmt.Errorf("%s (pid %d) does not die", p.cmd.Path, p.pid())
	}
	for _, pid := range tree {
		if pid != p.pid() {
			killIfOrphan(pid)
		}
	}
	return nil
}

// killIfOrphan kills a process whose parent is gone. A number that was reused
// by somebody else has a living parent of its own, and is left alone.
func killIfOrphan(pid int) {
	if measure.Parent(pid) == 1 || measure.Parent(pid) == os.Getpid() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// tail is the end of the log, for error messages.
func (p *process) tail() string {
	text, err := os.ReadFile(p.logPath)
	if err != nil {
		return ""
	}
	const most = 3000
	if len(text) > most {
		text = text[len(text)-most:]
		if nl := bytes.IndexByte(text, '\n'); nl >= 0 {
			text = text[nl+1:]
		}
	}
	return string(text)
}

func credential(name string) (*syscall.Credential, error) {
	who, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(who.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(who.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// accepts says whether somebody listens.
func accepts(ctx context.Context, port int) bool {
	dialer := net.Dialer{Timeout: time.Second}
	c, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
