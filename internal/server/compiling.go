package server

import (
	"context"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// compileDoor is httpapi.Compiling.
type compileDoor struct {
	*sql.Queue
	checkin.Wants
}

// Resume wakes the dispatcher of this server; others see it within a poll.
func (d compileDoor) Resume(ctx context.Context, env fleet.Environment) error {
	err := d.Queue.Resume(ctx, env)
	d.Wake()
	return err
}
