//go:build !linux

package processes

import (
	"context"

	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/tool"
)

// running lists all processes by their IDs.
func running(ctx context.Context) ([]Process, error) {
	if (tool.Box{}).Find("ps") == "" {
		return nil, builtin.Abort("processes cannot be listed: this system has neither /proc nor ps")
	}
	done, err := tool.Box{}.Run(ctx, tool.Command{Name: "ps", Args: psColumns()})
	if err != nil {
		return nil, err
	}
	if done.Exit != 0 {
		return nil, builtin.Abort("ps failed, the exit code is %d: %s", done.Exit, done.Why())
	}
	return parsePS(done.Stdout), nil
}
