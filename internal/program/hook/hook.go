// Package hook runs an operator's own programs: the autosign policy, the external
// node classifier and the trusted external command.
//
// A program gets a bounded time, a small environment of its own (PATH, LANG, HOME
// and nothing of the server's, which may hold secrets), and a bounded ear: output
// beyond the limit is thrown away, or is an error where it matters. It runs in a cell
// (package cell), where there are cells: it was written by the operator, but what it reads
// came from strangers. All that it started is killed when it ends, when its time is up or the
// caller goes away. Only so many run at once; others wait their turn.
//
// Errors: Invalid for a path that is no executable file; Unavailable when a program
// cannot be started, runs out of time, or ends in a way that decides nothing.
//
// Concurrency: a Runner is safe for concurrent use.
package hook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/cell"
	"github.com/tutti-project/tutti/internal/program/output"
)

// Config bounds programs. Zero values mean the defaults.
type Config struct {
	Timeout        time.Duration // of one program; 30 seconds
	MaxOutputBytes int           // of standard output; 1 MB
	MaxConcurrent  int           // programs at once; 4
	Log            *slog.Logger

	Cells *cell.Keeper // nil: programs run as the server does
	Reach cell.Spec    // what a program reaches besides itself and the system
	Dir   string       // of the server's own, for private directories; needed with Cells
}

const (
	maxErrorBytes = 4 << 10 // of standard error, for the log
	// grace is how long a killed program's pipes may stay open.
	grace = 2 * time.Second
)

// Runner runs programs.
type Runner struct {
	cfg   Config
	turns *semaphore.Weighted
}

// New returns a Runner.
func New(cfg Config) *Runner {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.MaxOutputBytes <= 0 {
		cfg.MaxOutputBytes = 1 << 20
	}
	if cfg.MaxConcurrent <= 0 {
		cfg.MaxConcurrent = 4
	}
	return &Runner{cfg: cfg, turns: semaphore.NewWeighted(int64(cfg.MaxConcurrent))}
}

// result is how a program ended by itself.
type result struct {
	exit   int
	stdout []byte
	cut    bool // stdout was longer than allowed
}

// run starts path with one argument and waits for its end.
func (r *Runner) run(ctx context.Context, path, arg string, stdin []byte) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	if err := r.turns.Acquire(ctx, 1); err != nil {
		return result{}, fault.Wrap(fault.Unavailable, err, "no turn came to run %s", path)
	}
	defer r.turns.Release(1)

	stdout, stderr := &output.Beginning{Most: r.cfg.MaxOutputBytes}, &output.Beginning{Most: maxErrorBytes}
	home, leave, err := r.private()
	if err != nil {
		return result{}, fault.Wrap(fault.Unavailable, err, "no directory could be made for %s", path)
	}
	defer leave()
	cmd := exec.CommandContext(ctx, path, arg) //nolint:gosec // the operator's own program; arg is a checked certname
	cmd.Env = environment(home)
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), stdout, stderr
	cmd.WaitDelay = grace
	reach := r.cfg.Reach
	reach.Run, reach.Write = append(slices.Clip(reach.Run), path), home
	program, err := r.cfg.Cells.Start(cmd, reach)
	if err != nil {
		return result{}, fault.Wrap(fault.Unavailable, err, "%s cannot be started: %s", path, cmp.Or(fault.Detail(err), err.Error()))
	}
	err = program.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		_ = killGroup(cmd.Process.Pid) // a child that it left behind still holds its pipes
	}
	return r.outcome(ctx, path, err, stdout, stderr)
}

// private makes the directory that a program in a cell may write to; leave removes it. Without cells there is none.
func (r *Runner) private() (dir string, leave func(), err error) {
	if r.cfg.Cells.Standing().Mode == cell.Off {
		return "", func() {}, nil
	}
	outer, err := os.MkdirTemp(r.cfg.Dir, "program-")
	if err != nil {
		return "", nil, err
	}
	leave = func() { _ = os.RemoveAll(outer) }
	dir = filepath.Join(outer, "home")
	if err := r.cfg.Cells.Private(dir); err != nil {
		leave()
		return "", nil, err
	}
	return dir, leave, nil
}

func (r *Runner) outcome(ctx context.Context, path string, err error, stdout, stderr *output.Beginning) (result, error) {
	if text := strings.TrimSpace(stderr.String()); text != "" {
		r.cfg.Log.InfoContext(ctx, "program wrote to standard error", "program", path, "text", text)
	}
	switch exit, exited := errors.AsType[*exec.ExitError](err); {
	case ctx.Err() != nil:
		return result{}, fault.Wrap(fault.Unavailable, ctx.Err(), "%s was stopped: it did not end in time", path)
	case exited && exit.Exited():
		return result{exit: exit.ExitCode(), stdout: stdout.Bytes(), cut: stdout.Cut()}, nil
	case err != nil && !onlySlowReader(err):
		return result{}, fault.Wrap(fault.Unavailable, err, "%s could not be run to its end", path)
	default:
		return result{stdout: stdout.Bytes(), cut: stdout.Cut()}, nil
	}
}

// onlySlowReader is true if the program ended well, without reading all of its
// input or leaving a child with its pipes.
func onlySlowReader(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, exec.ErrWaitDelay)
}

func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// environment is what a program may know of ours. home is its own; empty: the server's.
func environment(home string) []string {
	env := []string{"LANG=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	names := []string{"HOME", "TZ"}
	if home != "" {
		env, names = append(env, "HOME="+home, "TMPDIR="+home), names[1:]
	}
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// checkProgram refuses a path that cannot be run, at the start rather than at the first node.
func checkProgram(path string) error {
	if !filepath.IsAbs(path) {
		return fault.New(fault.Invalid, "the program %q must be named with its whole path", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the program %s cannot be found", path)
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fault.New(fault.Invalid, "%s is not an executable file", path)
	}
	return nil
}
