package agent

import (
	"context"
	"errors"
	"io"

	"github.com/tutti-project/tutti/internal/agent/modules"
	"github.com/tutti-project/tutti/internal/agent/process"
	"github.com/tutti-project/tutti/internal/agent/puppetrun"
)

// Watch is what the agent starts its own binary for, so that an order outlives it: it runs the program that is ordered on in and
// leaves the outcome at a place of the spool.
func Watch(ctx context.Context, place string, in io.Reader, out io.Writer) error {
	return process.Watch(ctx, place, in, out)
}

// RunChoria is what the agent starts its own binary for to run a module's program by Choria's contract, as in says.
func RunChoria(in io.Reader, out io.Writer) error { return modules.Main(in, out) }

// RunPuppet is what the agent starts its own binary for to run Puppet as the order on in says.
func RunPuppet(ctx context.Context, in io.Reader, out, errs io.Writer) error {
	if puppetrun.Main(ctx, in, out, errs) != 0 {
		return errors.New("the Puppet run failed; its results say why")
	}
	return nil
}
