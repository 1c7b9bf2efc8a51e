package server

import (
	"context"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// compilePauses are pauses whose end wakes the dispatcher of this server; others see it within a poll.
type compilePauses struct {
	rows compile.Pauses
	wake func()
}

// Pauses implements compile.Pauses.
func (d compilePauses) Pauses(ctx context.Context) ([]compile.Pause, error) {
	return d.rows.Pauses(ctx)
}

// Pause implements compile.Pauses.
func (d compilePauses) Pause(ctx context.Context, p compile.Pause) error { return d.rows.Pause(ctx, p) }

// Resume implements compile.Pauses.
func (d compilePauses) Resume(ctx context.Context, env fleet.Environment) error {
	err := d.rows.Resume(ctx, env)
	d.wake()
	return err
}
