package facter

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/group"
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
	out, noise := bounded{most: f.MaxBytes, full: cancel}, bounded{most: maxNoise}
	cmd := exec.CommandContext(limited, path, args...) //nolint:gosec // the operator's puppet
	cmd.Env = append(os.Environ(), puppetenv.Environment(os.Getenv)...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &noise, lingering
	group.Own(cmd)
	err = cmd.Run()
	what := "puppet " + args[0] + " " + args[1]
	if text := noise.String(); text != "" {
		f.Log.DebugContext(ctx, "puppet wrote to standard error", "command", what, "text", text)
	}
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case out.over:
		return "", fault.New(fault.Unavailable, "%s printed more than %d bytes and was ended; a custom fact may be too large", what, f.MaxBytes)
	case limited.Err() != nil:
		return "", fault.New(fault.Unavailable, "%s took longer than %s and was ended; a custom fact may hang", what, f.Timeout)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // what it left in the background was cut off
		return "", fault.Wrap(fault.Unavailable, err, "%s: %v: %.300s", what, err, lastLine(noise.String()))
	}
	return out.String(), nil
}

// bounded keeps a bounded part of an output.
type bounded struct {
	kept bytes.Buffer // not embedded: copying would go past Write
	most int
	over bool
	full func() // nil: the rest is thrown away
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - b.kept.Len()
	b.kept.Write(p[:min(len(p), room)])
	if len(p) > room {
		b.over = true
		if b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}

func (b *bounded) String() string { return b.kept.String() }

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
