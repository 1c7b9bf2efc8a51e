package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// A server that finds its disk full must still start, to serve what it has: that needs some
// small files and pages of a log. So it keeps a file of no meaning and gives it up then.
const (
	ballastFile  = "ballast"
	ballastBytes = 8 << 20

	fullBelow    = 4 << 20                    // nothing is written any more
	roomAbove    = ballastBytes + 2*fullBelow // writes go on: the ballast that was given up is no room
	ballastAbove = 2 * roomAbove              // the ballast is made again
	diskEvery    = 5 * time.Second            // between two looks
	diskComeBack = 30 * time.Second           // what who is refused is told
	diskFresh    = 200 * time.Millisecond
)

// disk watches the file system of the data directory, and refuses writes when it is full. What is
// left then is for the next start.
type disk struct {
	path string
	room func(path string) (free int64, err error) // as of now; tests put other disks here

	mu     sync.Mutex
	looked time.Time
	free   int64
	full   bool
}

// newDisk looks at the disk of a data directory. One whose ballast was given up is full until there is clearly room.
func newDisk(path string) *disk {
	d := &disk{path: path, room: freeBytes}
	_, err := os.Stat(filepath.Join(path, ballastFile))
	d.full = errors.Is(err, fs.ErrNotExist)
	d.look(time.Now())
	return d
}

// freeBytes is what a user without privileges may still write.
func freeBytes(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:gosec,unconvert // their types differ between systems
}

// makeRoom gives up the ballast of a data directory if its disk is full.
func makeRoom(path string) {
	if free, err := freeBytes(path); err == nil && free < fullBelow {
		_ = os.Remove(filepath.Join(path, ballastFile)) // without one, the start says what it could not write
	}
}

// look measures, and says whether that changed what may be written.
func (d *disk) look(now time.Time) (changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.measure(now)
}

func (d *disk) measure(now time.Time) (changed bool) {
	free, err := d.room(d.path)
	if err != nil { // what it was is the best that is known
		return false
	}
	was := d.full
	d.looked, d.free = now, free
	if d.full {
		d.full = free < roomAbove
	} else {
		d.full = free < fullBelow
	}
	return d.full != was
}

// admit refuses writes to a full disk. It looks anew, but not at each of many writes.
func (d *disk) admit() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); d.full || now.Sub(d.looked) > diskFresh {
		d.measure(now)
	}
	if d.full {
		return fault.Later(diskComeBack, "%s", d.words())
	}
	return nil
}

// words says what is wrong. The caller holds d.mu.
func (d *disk) words() string {
	return fmt.Sprintf("the server's disk is full (%d KiB are free): it reads and serves what it has, and stores nothing until %d KiB are free",
		d.free>>10, roomAbove>>10)
}

// problem is nil while there is room.
func (d *disk) problem() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return fault.New(fault.Unavailable, "%s", d.words())
	}
	return nil
}

// keepBallast makes the ballast when there is room for it.
func (d *disk) keepBallast() error {
	path := filepath.Join(d.path, ballastFile)
	if info, err := os.Stat(path); err == nil && info.Size() == ballastBytes {
		return nil
	}
	if free, err := d.room(d.path); err != nil || free < ballastAbove {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, ballastBytes)) // and not a hole
	return errors.Join(err, file.Close())
}

// storage says whether what is sent here can be stored: whether the disk has room, and how the last write went.
type storage struct {
	disk  *disk
	store *sql.Store
	log   *slog.Logger
}

// watch looks at the disk until ctx is done, and tries a write when the last one failed: whether
// writes succeed again is known without anybody who waits for it.
func (s storage) watch(ctx context.Context) error {
	tick := time.NewTicker(diskEvery)
	defer tick.Stop()
	for {
		if s.disk.look(time.Now()) {
			if err := s.disk.problem(); err != nil {
				s.log.ErrorContext(ctx, "the disk is full: nothing is stored", "err", err)
			} else {
				s.log.InfoContext(ctx, "the disk has room again")
			}
		}
		if err := s.disk.keepBallast(); err != nil {
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
	if err := s.disk.problem(); err != nil {
		return err
	}
	if at, detail := s.store.Trouble(); !at.IsZero() {
		return fault.New(fault.Unavailable, "the last write failed: %s", detail)
	}
	return nil
}

// status is what /status says of it.
func (s storage) status(bool) map[string]any {
	s.disk.mu.Lock()
	said := map[string]any{"free_bytes": s.disk.free, "read_only": s.disk.full}
	s.disk.mu.Unlock()
	return said
}
