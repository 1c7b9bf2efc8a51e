package rest

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/store/usage"
)

// Usages measures what the data takes.
type Usages interface {
	// Usage is each part of the data, the largest first, and when they were measured.
	Usage(ctx context.Context) ([]usage.Area, time.Time, error)
	// Disk is the room on the data directory's disk, and whether it is full.
	Disk() (free int64, full bool)
}

// usages says what the data takes.
type usages struct {
	usages Usages
}

func (h *usages) bindings() []binding {
	return []binding{
		answer(api.ServerUsage, h.showUsage),
	}
}

func (h *usages) showUsage(ctx context.Context, _ api.Nothing) (api.Usage, error) {
	areas, at, err := h.usages.Usage(ctx)
	if err != nil {
		return api.Usage{}, err
	}
	told := api.Usage{At: at, Areas: []api.UsageArea{}}
	var growth int64
	for _, a := range areas {
		one := api.UsageArea{Area: a.Name, Bytes: a.Bytes}
		told.Bytes += a.Bytes
		if a.Known() {
			one.Growth, told.Since, told.Growth = &a.Growth, &a.Since, &growth
			growth += a.Growth
		}
		told.Areas = append(told.Areas, one)
	}
	told.Disk.FreeBytes, told.Disk.ReadOnly = h.usages.Disk()
	if full := usage.FullAt(at, told.Disk.FreeBytes, areas); !full.IsZero() {
		told.Disk.FullAt = &full
	}
	return told, nil
}
