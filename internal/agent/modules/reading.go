package modules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/program/group"
	"github.com/tutti-project/tutti/internal/program/output"
)

const (
	maxReadBytes = 8 << 20 // of an output of a program that answers a question
	maxReading   = 8       // questions that a module's programs answer at a time; the others wait
	cannotRun    = 127     // the exit code of what is no program, as in a shell
)

// reads lets a reading action answer questions: its program runs below the agent, ends with it, and leaves nothing on the disk.
func reads(into *orders.Action, places chan struct{}) {
	ordered := *into
	into.Read = func(ctx context.Context, o orders.Order) (jsontext.Value, error) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		left, err := answer(ctx, ordered, o)
		return ordered.Concluded(ctx, o, left, err)
	}
}

// answer does a reading action in a directory that it removes.
func answer(ctx context.Context, a orders.Action, o orders.Order) (left orders.Output, err error) {
	if o.Place, err = os.MkdirTemp("", "tutti-read-"); err != nil {
		return left, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.Place)) }()
	c, err := a.Prepare(ctx, o)
	if err != nil {
		return left, err
	}
	return run(ctx, c)
}

// run runs a program to its end, or until ctx is done, whose cause is its error then.
func run(ctx context.Context, c orders.Command) (orders.Output, error) {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...) //nolint:gosec // the operator's own executables
	group.Own(cmd)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.WaitDelay = append(os.Environ(), c.Env...), c.Dir, bytes.NewReader(c.Input), lingering
	if cmd.Dir == "" {
		cmd.Dir = string(filepath.Separator)
	}
	out, errs := output.Beginning{Most: maxReadBytes}, output.Beginning{Most: maxReadBytes}
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		return orders.Output{}, context.Cause(ctx)
	}
	exit := cannotRun
	if cmd.ProcessState != nil {
		exit = cmd.ProcessState.ExitCode()
	} else {
		_, _ = fmt.Fprintf(&errs, "Executable '%s' failed to run: %v\n", c.Path, err)
	}
	return orders.Output{Begun: true, Exit: &exit, Stdout: out.Bytes(), Stderr: errs.Bytes()}, nil
}
