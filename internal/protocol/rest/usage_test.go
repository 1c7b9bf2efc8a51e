package rest_test

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/store/usage"
)

// nothingUsed is rest.Usages of a server without data.
type nothingUsed struct{}

func (nothingUsed) Usage(context.Context) ([]usage.Area, time.Time, error) {
	return nil, time.Time{}, nil
}

func (nothingUsed) Disk() (free int64, full bool) { return 0, false }
