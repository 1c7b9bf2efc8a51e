package facter

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/group"
	"github.com/tutti-project/tutti/internal/program/output"
)

const (
	// lingering is how long what a custom fact left in the background may hold the output.
	lingering = 2 * time.Second
	// maxNoise is how much of standard error is kept.
	maxNoise = 4 << 10
)

// run is one program: puppet with args. It returns what it prints.
func (f *Facter) run(ctx context.Context, args []string) (string, error) {
	path, err := f.Puppet()
	if err != nil {
		return "", err
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	out, noise := output.Beginning{Most: f.MaxBytes, Full: cancel}, output.Beginning{Most: maxNoise}
	cmd := exec.CommandContext(limited, path, args...) //nolint:gosec // the operator's puppet
	cmd.Env = append(os.Environ(), puppetenv.Environment(os.Getenv)...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &noise, lingering
	group.Own(cmd)
	err = cmd.Run()
	what := "puppet " + args[0] + " " + args[1]
	text := puppetenv.Plain(noise.String())
	if text != "" {
		f.Log.DebugContext(ctx, "puppet wrote to standard error", "command", what, "text", text)
	}
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case out.Cut():
		return "", fault.New(fault.Unavailable, "%s printed more than %d bytes and was ended; a custom fact may be too large", what, f.MaxBytes)
	case limited.Err() != nil:
		return "", fault.New(fault.Unavailable, "%s took longer than %s and was ended; a custom fact may hang", what, f.Timeout)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // what it left in the background was cut off
		return "", fault.Wrap(fault.Unavailable, err, "%s: %v: %.300s", what, err, lastLine(text))
	}
	return out.String(), nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
