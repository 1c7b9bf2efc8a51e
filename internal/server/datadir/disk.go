package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tutti-project/tutti/internal/fault"
)

// A server that finds its disk full must still start, to serve what it has: that needs some
// small files and pages of a log. So it keeps a file of no meaning and gives it up then.
const (
	ballastFile  = "ballast"
	ballastBytes = 8 << 20

	fullBelow    = 4 << 20                    // nothing is written any more
	RoomAbove    = ballastBytes + 2*fullBelow // writes go on: the ballast that was given up is no room
	ballastAbove = 2 * RoomAbove              // the ballast is made again
	diskComeBack = 30 * time.Second           // what who is refused is told
	diskFresh    = 200 * time.Millisecond
)

// Disk watches the file system of the data directory, and refuses writes when it is full. What is
// left then is for the next start.
type Disk struct {
	path string
	room func(path string) (free int64, err error) // as of now; tests put other disks here

	mu     sync.Mutex
	looked time.Time
	free   int64
	full   bool
}

// NewDisk looks at the disk of a data directory. One whose ballast was given up is full until there is clearly room.
func NewDisk(path string) *Disk {
	d := &Disk{path: path, room: FreeBytes}
	_, err := os.Stat(filepath.Join(path, ballastFile))
	d.full = errors.Is(err, fs.ErrNotExist)
	d.Look(time.Now())
	return d
}

// FreeBytes is what a user without privileges may still write.
func FreeBytes(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:gosec,unconvert // their types differ between systems
}

// makeRoom gives up the ballast of a data directory if its disk is full.
func makeRoom(path string) {
	if free, err := FreeBytes(path); err == nil && free < fullBelow {
		_ = os.Remove(filepath.Join(path, ballastFile)) // without one, the start says what it could not write
	}
}

// Look measures, and says whether that changed what may be written.
func (d *Disk) Look(now time.Time) (changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.measure(now)
}

func (d *Disk) measure(now time.Time) (changed bool) {
	free, err := d.room(d.path)
	if err != nil { // what it was is the best that is known
		return false
	}
	was := d.full
	d.looked, d.free = now, free
	if d.full {
		d.full = free < RoomAbove
	} else {
		d.full = free < fullBelow
	}
	return d.full != was
}

// Admit refuses writes to a full disk. It looks anew, but not at each of many writes.
func (d *Disk) Admit() error {
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
func (d *Disk) words() string {
	return fmt.Sprintf("the server's disk is full (%d KiB are free): it reads and serves what it has, and stores nothing until %d KiB are free",
		d.free>>10, RoomAbove>>10)
}

// Problem is nil while there is room.
func (d *Disk) Problem() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return fault.New(fault.Unavailable, "%s", d.words())
	}
	return nil
}

// KeepBallast makes the ballast when there is room for it.
func (d *Disk) KeepBallast() error {
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

// State is what is free, in bytes, and whether that is too little for writes, as of the last look.
func (d *Disk) State() (free int64, full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.free, d.full
}
