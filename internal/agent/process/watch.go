package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofrs/flock"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

const (
	// ready is what a watcher says when it can take an order.
	ready = "ready\n"
	// maxOrderBytes bounds an order: parameters, as base64.
	maxOrderBytes = 2*pxp.MaxParamsBytes + 1<<20
	// lingering is how long pipes may stay open that a program left to others.
	lingering = 2 * time.Second
	// mostPause bounds the pauses before a busy file is tried again: about four seconds in all.
	mostPause = 2 * time.Second
	// cannotRun is the exit code for what cannot be started, as in a shell.
	cannotRun = 127
)

// Watch is a watcher's life: it reads an order from in, runs its program, and leaves
// at place what became of it. When ctx ends, the program is stopped. It says on out
// that it is ready, or why it cannot be.
func Watch(ctx context.Context, place string, in io.Reader, out io.Writer) error {
	w, err := watchOver(place)
	if err != nil {
		_, _ = fmt.Fprintln(out, err)
		return err
	}
	defer func() { _ = w.lock.Close() }()
	// Without this a write to an agent that is gone would end the watcher here and now. It is not
	// ignored: the program would inherit that.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)
	if _, err := io.WriteString(out, ready); err != nil {
		return errors.Join(err, os.Remove(w.path(orders.PIDFile))) // nothing was begun
	}
	var o order
	if err := json.UnmarshalRead(io.LimitReader(in, maxOrderBytes), &o); err != nil {
		return errors.Join(err, os.Remove(w.path(orders.PIDFile))) // nothing was begun
	}
	return w.leave(w.run(ctx, o))
}

// watch is a place that is watched over.
type watch struct {
	place string
	lock  *flock.Flock
	exit  *os.File // room on the disk for the exit code
}

// watchOver takes a place: from here on, whoever looks sees that somebody watches.
// It fails early if the disk is full.
func watchOver(place string) (*watch, error) {
	w := &watch{place: place, lock: flock.New(filepath.Join(place, orders.AliveFile), flock.SetPermissions(0o640))}
	if err := w.lock.Lock(); err != nil {
		return nil, err
	}
	var err error
	if w.exit, err = os.OpenFile(w.path(orders.ExitFile+".new"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640); err != nil { //nolint:gosec // as the original's
		return nil, err
	}
	if _, err := w.exit.WriteString(blank); err != nil {
		return nil, err
	}
	if err := w.exit.Sync(); err != nil {
		return nil, err
	}
	if err := os.WriteFile(w.path(reserveFile), make([]byte, reserveBytes), 0o600); err != nil {
		return nil, err
	}
	return w, w.writePID()
}

// blank is room for any exit code.
const blank = "                \n"

// The reserve is room on the disk for what is to be said when the program has filled it.
const (
	reserveFile  = "reserve"
	reserveBytes = 16 << 10
)

func (w *watch) path(name string) string { return filepath.Join(w.place, name) }

func (w *watch) writePID() error {
	fresh := w.path(orders.PIDFile + ".new")
	if err := os.WriteFile(fresh, fmt.Appendln(nil, os.Getpid()), 0o640); err != nil { //nolint:gosec // as the original's
		return err
	}
	return os.Rename(fresh, w.path(orders.PIDFile))
}

// ending is how a program ended.
type ending struct {
	exit  int
	why   string // one of pxp's words; empty: by itself
	notes []string
}

// run runs an order's program to its end.
func (w *watch) run(ctx context.Context, o order) ending {
	stdout, stderr, err := w.outputs(o.MaxBytes)
	if err != nil {
		return ending{exit: cannotRun, notes: []string{err.Error()}}
	}
	defer stdout.close()
	defer stderr.close()
	cmd, group, err := begin(ctx, o, stdout, stderr)
	if err != nil {
		stderr.add(fmt.Sprintf("Executable '%s' failed to run: %v\n", o.Path, err))
		return ending{exit: cannotRun}
	}
	defer group.close()
	e := w.await(ctx, cmd, group, o)
	if err := os.Remove(w.path(reserveFile)); err != nil {
		e.notes = append(e.notes, err.Error())
	}
	for _, cut := range []*limited{stdout, stderr} {
		if note := cut.note(); note != "" {
			e.notes = append(e.notes, note)
		}
	}
	for _, note := range e.notes {
		stderr.add("tutti: " + note + "\n")
	}
	return e
}

// begin starts an order's program. A file that the agent has just written can be busy: a watcher that was started
// meanwhile holds it open until it is its own program.
func begin(ctx context.Context, o order, stdout, stderr io.Writer) (*exec.Cmd, *group, error) {
	for pause := time.Millisecond; ; pause *= 2 {
		cmd := exec.Command(o.Path, o.Args...) //nolint:gosec,noctx // what was ordered; stop ends it
		cmd.Env = append(os.Environ(), o.Env...)
		cmd.Dir = o.Dir
		if cmd.Dir == "" {
			cmd.Dir = root
		}
		cmd.Stdin = newInput(o.Input)
		cmd.Stdout, cmd.Stderr = stdout, stderr
		cmd.WaitDelay = lingering
		group, err := startGroup(cmd)
		if err == nil || !busy(err) || pause > mostPause {
			return cmd, group, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, nil, err
		}
	}
}

// await waits for a program, and stops it when ctx or its time ends.
func (w *watch) await(ctx context.Context, cmd *exec.Cmd, group *group, o order) ending {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timeout, patience := time.Duration(o.Timeout)*time.Millisecond, time.Duration(o.Grace)*time.Millisecond
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	if timeout <= 0 { // there is no limit
		limit.Stop()
	}
	asked, unwatch := stopRequests(w.place)
	defer unwatch()
	var e ending
	var err error
	select {
	case err = <-ended:
		return ending{exit: exitCode(cmd, err)}
	case <-limit.C:
		e.why = pxp.EndedByTime
		e.notes = append(e.notes, fmt.Sprintf("ended after its longest time, %s", fault.Duration(timeout)))
	case <-ctx.Done():
		e.why = pxp.EndedByOrder
	case <-asked:
		e.why = pxp.EndedByOrder
	}
	if e.why == pxp.EndedByOrder {
		e.notes = append(e.notes, "ended because it was cancelled")
	}
	group.ask()
	grace := time.NewTimer(patience)
	defer grace.Stop()
	select {
	case err = <-ended:
		group.kill() // what is left of it
	case <-grace.C:
		group.kill()
		err = <-ended
		e.notes = append(e.notes, fmt.Sprintf("killed, because it did not end in %s", fault.Duration(patience)))
	}
	e.exit = exitCode(cmd, err)
	return e
}

func exitCode(cmd *exec.Cmd, err error) int {
	if cmd.ProcessState == nil {
		return cannotRun
	}
	if code, signalled := bySignal(cmd.ProcessState); signalled {
		return code
	}
	if err == nil || cmd.ProcessState.Exited() {
		return cmd.ProcessState.ExitCode()
	}
	return cannotRun
}

// leave writes how a program ended; the exit code is last, and makes it final.
func (w *watch) leave(e ending) error {
	var err error
	if e.why != "" {
		err = os.WriteFile(w.path(orders.EndedFile), []byte(e.why), 0o640) //nolint:gosec // as the original's
	}
	code := fmt.Sprintf("%-*d\n", len(blank)-1, e.exit)
	if _, writeErr := w.exit.WriteAt([]byte(code), 0); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	if syncErr := errors.Join(w.exit.Sync(), w.exit.Close()); syncErr != nil {
		return errors.Join(err, syncErr)
	}
	return errors.Join(err, os.Rename(w.path(orders.ExitFile+".new"), w.path(orders.ExitFile)))
}
