package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// diskEvery is the time between two looks at the disk.
const diskEvery = 5 * time.Second

// storage says whether what is sent here can be stored: whether the disk has room, and how the last write went.
type storage struct {
	disk  *datadir.Disk
	store *sql.Store
	log   *slog.Logger
}

// watch looks at the disk until ctx is done, and tries a write when the last one failed: whether
// writes succeed again is known without anybody who waits for it.
func (s storage) watch(ctx context.Context) error {
	tick := time.NewTicker(diskEvery)
	defer tick.Stop()
	for {
		if s.disk.Look(time.Now()) {
			if err := s.disk.Problem(); err != nil {
				s.log.ErrorContext(ctx, "the disk is full: nothing is stored", "err", err)
			} else {
				s.log.InfoContext(ctx, "the disk has room again")
			}
		}
		if err := s.disk.KeepBallast(); err != nil {
			s.log.WarnContext(ctx, "ballast not written, will retry", "err", err)
		}
		if at, _ := s.store.Trouble(); !at.IsZero() {
			_ = s.store.TryWrite(ctx) // it notes how that went
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// check returns why nothing can be stored; nil: it can.
func (s storage) check(context.Context) error {
	if err := s.disk.Problem(); err != nil {
		return err
	}
	if at, detail := s.store.Trouble(); !at.IsZero() {
		return fault.New(fault.Unavailable, "the last write failed: %s", detail)
	}
	return nil
}

// status is what /status says of it.
func (s storage) status(bool) map[string]any {
	free, full := s.disk.State()
	return map[string]any{"free_bytes": free, "read_only": full}
}
